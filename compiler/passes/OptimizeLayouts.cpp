#include "compiler/passes/Passes.h"

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {
#define GEN_PASS_DEF_OPTIMIZELAYOUTS
#include "compiler/passes/Passes.h.inc"

namespace {

struct OptimizeLayouts : impl::OptimizeLayoutsBase<OptimizeLayouts> {
  void runOnOperation() override {}
};

} // namespace
} // namespace kiln
