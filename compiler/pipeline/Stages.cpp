#include "compiler/pipeline/Stages.h"

#include "compiler/passes/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace kiln {
namespace {

std::unique_ptr<Pass> verifyStage(llvm::StringRef stage) {
  VerifyStageOptions options;
  options.stage = stage.str();
  return createVerifyStage(options);
}

struct TileStageOptions : PassPipelineOptions<TileStageOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("code target, such as sm_80")};
  Option<std::string> kernel{*this, "kernel", llvm::cl::desc("kernel to keep; empty: the only one")};
  ListOption<std::string> divisible{*this, "divisible", llvm::cl::desc("ARGUMENT=DIVISOR, as in 0=16")};
  ListOption<std::string> equals{*this, "equals", llvm::cl::desc("ARGUMENT=VALUE, as in 4=1")};
};

} // namespace

void buildTileStage(OpPassManager &pm, const SpecializeFacts &facts) {
  SpecializeOptions options;
  options.target = facts.target;
  options.kernel = facts.kernel;
  options.divisible.assign(facts.divisible.begin(), facts.divisible.end());
  options.equals.assign(facts.equals.begin(), facts.equals.end());
  pm.addPass(createSpecialize(options));
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(verifyStage("tile"));
}

void buildTileGpuStage(OpPassManager &pm) {
  pm.addPass(createAssignLayouts());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createOptimizeLayouts());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(verifyStage("tile_gpu"));
  pm.addPass(createExpandShared());
  pm.addPass(createAllocateShared());
  pm.addPass(createInsertBarriers());
  pm.addPass(createVerifyBarriers());
}

void buildLoweringStage(OpPassManager &pm) {
  pm.addPass(createLowerTiles());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLowerNumbers());
  pm.addPass(createToLLVM());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCSEPass());
}

void registerStages() {
  PassPipelineRegistration<TileStageOptions>(
      "kiln-stage-tile", "Kiln's first stage: one kernel, specialised and canonical",
      [](OpPassManager &pm, const TileStageOptions &o) {
        buildTileStage(pm, {o.target, o.kernel, std::vector<std::string>(o.divisible.begin(), o.divisible.end()),
                            std::vector<std::string>(o.equals.begin(), o.equals.end())});
      });
  PassPipelineRegistration<>("kiln-stage-tile-gpu", "Kiln's second stage: layouts, shared memory, barriers",
                             buildTileGpuStage);
  PassPipelineRegistration<>("kiln-stage-lowering", "Kiln's third stage: to the LLVM and NVVM dialects",
                             buildLoweringStage);
}

} // namespace kiln
