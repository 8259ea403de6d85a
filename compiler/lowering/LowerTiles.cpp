#include "compiler/passes/Passes.h"

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {
#define GEN_PASS_DEF_LOWERTILES
#include "compiler/passes/Passes.h.inc"

namespace {

struct LowerTiles : impl::LowerTilesBase<LowerTiles> {
  void runOnOperation() override {}
};

} // namespace
} // namespace kiln
