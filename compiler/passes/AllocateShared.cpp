#include "compiler/passes/Passes.h"

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {
#define GEN_PASS_DEF_ALLOCATESHARED
#include "compiler/passes/Passes.h.inc"

namespace {

struct AllocateShared : impl::AllocateSharedBase<AllocateShared> {
  void runOnOperation() override {}
};

} // namespace
} // namespace kiln
