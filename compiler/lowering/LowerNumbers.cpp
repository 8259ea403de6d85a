#include "compiler/passes/Passes.h"

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {
#define GEN_PASS_DEF_LOWERNUMBERS
#include "compiler/passes/Passes.h.inc"

namespace {

struct LowerNumbers : impl::LowerNumbersBase<LowerNumbers> {
  using impl::LowerNumbersBase<LowerNumbers>::LowerNumbersBase;
  void runOnOperation() override {}
};

} // namespace
} // namespace kiln
