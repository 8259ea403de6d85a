#include "compiler/passes/Passes.h"

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {
#define GEN_PASS_DEF_VERIFYBARRIERS
#include "compiler/passes/Passes.h.inc"

namespace {

struct VerifyBarriers : impl::VerifyBarriersBase<VerifyBarriers> {
  void runOnOperation() override {}
};

} // namespace
} // namespace kiln
