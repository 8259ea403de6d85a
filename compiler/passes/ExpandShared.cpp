#include "compiler/passes/Passes.h"

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {
#define GEN_PASS_DEF_EXPANDSHARED
#include "compiler/passes/Passes.h.inc"

namespace {

struct ExpandShared : impl::ExpandSharedBase<ExpandShared> {
  void runOnOperation() override {}
};

} // namespace
} // namespace kiln
