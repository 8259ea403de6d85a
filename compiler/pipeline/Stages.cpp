#include "compiler/pipeline/Stages.h"

#include "compiler/passes/Passes.h"
#include "support/Text.h"

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

/// Adds the passes that a pipeline's text names.
Status insert(OpPassManager &pm, const char *stage, llvm::StringRef passes) {
  if (passes.trim().empty())
    return {};
  std::string why;
  llvm::raw_string_ostream os(why);
  if (succeeded(parsePassPipeline(passes.trim(), pm, os)))
    return {};
  // MLIR repeats the text with a mark below: the first line says it.
  llvm::StringRef line = llvm::StringRef(why).split('\n').first;
  if (const size_t at = line.find("error: "); at != llvm::StringRef::npos)
    line = line.drop_front(at + 7);
  return Status::invalid("the passes '" + passes.trim().str() + "' cannot be added to stage '" + stage +
                             "': " + line.str(),
                         "name passes of Kiln, of MLIR (kiln-opt --help lists them) or of a plugin that is loaded "
                         "(KILN_PLUGINS, --load-pass-plugin)");
}

struct Point {
  const char *name;
  std::string StageInsertions::*passes;
};
constexpr Point points[] = {{"tile", &StageInsertions::tile},
                            {"tile_gpu", &StageInsertions::tileGpu},
                            {"barriers", &StageInsertions::barriers},
                            {"lowering", &StageInsertions::lowering}};

struct TileStageOptions : PassPipelineOptions<TileStageOptions> {
  Option<std::string> passes{*this, "passes", llvm::cl::desc("passes to add before the check at the end")};
  Option<std::string> target{*this, "target", llvm::cl::desc("code target, such as sm_80")};
  Option<std::string> kernel{*this, "kernel", llvm::cl::desc("kernel to keep; empty: the only one")};
  ListOption<std::string> divisible{*this, "divisible", llvm::cl::desc("ARGUMENT=DIVISOR, as in 0=16")};
  ListOption<std::string> equals{*this, "equals", llvm::cl::desc("ARGUMENT=VALUE, as in 4=1")};
  Option<bool> noTensorMaps{*this, "no-tensor-maps", llvm::cl::desc("passes make no tensor maps for the kernel")};
};

struct TileGpuStageOptions : PassPipelineOptions<TileGpuStageOptions> {
  Option<std::string> passes{*this, "passes", llvm::cl::desc("passes to add before shared memory is laid out")};
  Option<std::string> barriers{*this, "barrier-passes", llvm::cl::desc("passes to add before barriers are checked")};
};

struct LoweringStageOptions : PassPipelineOptions<LoweringStageOptions> {
  Option<std::string> passes{*this, "passes", llvm::cl::desc("passes to add at the end")};
};

/// A pipeline whose builder can fail.
template <typename Options, typename Build> void registerStage(const char *name, const char *description, Build build) {
  registerPassPipeline(
      name, description,
      [build](OpPassManager &pm, llvm::StringRef text, llvm::function_ref<LogicalResult(const llvm::Twine &)> error) {
        Options options;
        if (failed(options.parseFromString(text)))
          return failure();
        const Status status = build(pm, options);
        return status.ok() ? success() : error(status.toString());
      },
      [](llvm::function_ref<void(const detail::PassOptions &)> show) { show(Options()); });
}

} // namespace

Result<StageInsertions> parseInsertions(std::string_view text) {
  StageInsertions out;
  const auto refuse = [&](const std::string &what) {
    return Status::invalid("the passes '" + std::string(text) + "': " + what,
                           "write STAGE=PASSES, several with ';' between; the stages are tile, tile_gpu, barriers and "
                           "lowering");
  };
  // Options of passes stand in braces and may hold anything.
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += (c == '{') - (c == '}');
    if (c == ';' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (const std::string &part : parts) {
    if (llvm::StringRef(part).trim().empty())
      continue;
    const auto [name, passes] = llvm::StringRef(part).split('=');
    const Point *point = llvm::find_if(points, [&](const Point &p) { return name.trim() == p.name; });
    if (point == std::end(points))
      return refuse("there is no stage '" + name.trim().str() + "'");
    std::string &slot = out.*point->passes;
    if (passes.trim().empty())
      return refuse("stage '" + name.trim().str() + "' gets no pass");
    if (!slot.empty())
      return refuse("stage '" + name.trim().str() + "' is named twice");
    slot = passes.trim().str();
  }
  return out;
}

Status buildTileStage(OpPassManager &pm, const SpecializeFacts &facts, const StageInsertions &added) {
  SpecializeOptions options;
  options.target = facts.target;
  options.kernel = facts.kernel;
  options.divisible.assign(facts.divisible.begin(), facts.divisible.end());
  options.equals.assign(facts.equals.begin(), facts.equals.end());
  options.noTensorMaps = facts.noTensorMaps;
  pm.addPass(createSpecialize(options));
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  KILN_TRY(insert(pm, "tile", added.tile));
  pm.addPass(verifyStage("tile"));
  return {};
}

Status buildTileGpuStage(OpPassManager &pm, const StageInsertions &added) {
  pm.addPass(createUnrollLoops());
  pm.addPass(createAccelerateDot());
  pm.addPass(createAssignLayouts());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createDelayProducts());
  // Before conversions are hoisted and sunk: those that staged loads need are none, shared memory is read in any
  // layout.
  pm.addPass(createPipelineLoops());
  pm.addPass(createRotateProducts());
  pm.addPass(createResidentOperands());
  pm.addPass(createFetchProgramTiles());
  pm.addPass(createCarryPipelines());
  pm.addPass(createLowerPipelines());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createOptimizeLayouts());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  KILN_TRY(insert(pm, "tile_gpu", added.tileGpu));
  pm.addPass(verifyStage("tile_gpu"));
  pm.addPass(createExpandShared());
  pm.addPass(createRelieveRegisters());
  pm.addPass(createBulkSums());
  pm.addPass(createAllocateShared());
  pm.addPass(createCountGroups());
  pm.addPass(createSpecializeWarps());
  pm.addPass(createInsertBarriers());
  pm.addPass(createSpecializeWarps({.again = true}));
  pm.addPass(createTakeTurns()); // not where all meet: it looks for barriers
  KILN_TRY(insert(pm, "barriers", added.barriers));
  pm.addPass(createVerifyBarriers());
  return {};
}

Status buildProofStage(OpPassManager &pm) {
  pm.addPass(verifyStage("tile_gpu"));
  pm.addPass(createVerifyBarriers());
  return {};
}

Status buildLoweringStage(OpPassManager &pm, const StageInsertions &added) {
  pm.addPass(createSplitRoles());
  pm.addPass(createLowerTiles());
  // From the last operation up: thousands of scalars and wide loops take 0.02 s instead of 0.6 from the first one down.
  pm.addPass(createCanonicalizerPass(GreedyRewriteConfig()));
  pm.addPass(createCSEPass());
  pm.addPass(createLowerNumbers());
  pm.addPass(createToLLVM());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCSEPass());
  return insert(pm, "lowering", added.lowering);
}

void registerStages() {
  registerStage<TileStageOptions>(
      "kiln-stage-tile", "Kiln's first stage: one kernel, specialised and canonical",
      [](OpPassManager &pm, const TileStageOptions &o) {
        return buildTileStage(pm,
                              {o.target, o.kernel, std::vector<std::string>(o.divisible.begin(), o.divisible.end()),
                               std::vector<std::string>(o.equals.begin(), o.equals.end()), o.noTensorMaps},
                              {.tile = o.passes});
      });
  registerStage<TileGpuStageOptions>("kiln-stage-tile-gpu", "Kiln's second stage: layouts, shared memory, barriers",
                                     [](OpPassManager &pm, const TileGpuStageOptions &o) {
                                       return buildTileGpuStage(pm, {.tileGpu = o.passes, .barriers = o.barriers});
                                     });
  registerStage<LoweringStageOptions>(
      "kiln-stage-lowering", "Kiln's third stage: to the LLVM and NVVM dialects",
      [](OpPassManager &pm, const LoweringStageOptions &o) { return buildLoweringStage(pm, {.lowering = o.passes}); });
}

} // namespace kiln
