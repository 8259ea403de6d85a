#include "compiler/passes/Passes.h"

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {
#define GEN_PASS_DEF_VERIFYSTAGE
#include "compiler/passes/Passes.h.inc"

namespace {

struct VerifyStage : impl::VerifyStageBase<VerifyStage> {
  using impl::VerifyStageBase<VerifyStage>::VerifyStageBase;
  void runOnOperation() override {}
};

} // namespace
} // namespace kiln
