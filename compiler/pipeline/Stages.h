//===- Stages.h - The passes in order ----------------------------------------===//
//
//   tile       pick and specialise the kernel, inline, canonicalise
//   tile_gpu   layouts, conversions, shared memory, barriers
//   lowering   LLVM and NVVM dialects; what codegen/Ptx.h takes
//
// The same three lists serve the JIT (Compile.h) and kiln-opt (`--kiln-stage-tile`, `--kiln-stage-tile-gpu`,
// `--kiln-stage-lowering`): PTX made stage by stage is byte-equal to the JIT's.  A module printed between two stages
// parses to the same module.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_STAGES_H
#define KILN_PIPELINE_STAGES_H

#include "support/Status.h"

#include "mlir/Pass/PassManager.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// What the tile stage states (Passes.td, kiln-specialize).
struct SpecializeFacts {
  std::string target, kernel;
  std::vector<std::string> divisible, equals; ///< "0=16"
  bool noTensorMaps = false;
};

/// Passes that are added to the stages, as MLIR writes pipelines: "my-pass{limit=4},canonicalize".  Each runs after
/// what the stage does itself and before the pass that checks its result.
struct StageInsertions {
  std::string tile = {};     ///< on canonical tile text, before verify-stage
  std::string tileGpu = {};  ///< every tile has a layout; before verify-stage and shared memory
  std::string barriers = {}; ///< buffers have places and barriers stand; before verify-barriers
  std::string lowering = {}; ///< on the LLVM and NVVM dialects, last
  bool empty() const { return tile.empty() && tileGpu.empty() && barriers.empty() && lowering.empty(); }
};

/// "tile=my-pass,cse; tile_gpu=other".  The failure names what is wrong and the stages.
Result<StageInsertions> parseInsertions(std::string_view text);

/// These fail if a name in the insertions is no registered pass.
Status buildTileStage(mlir::OpPassManager &pm, const SpecializeFacts &facts, const StageInsertions &added = {});
Status buildTileGpuStage(mlir::OpPassManager &pm, const StageInsertions &added = {});
/// What checks a text that the tile_gpu stage is said to have left: its operations and the proof of its barriers.
Status buildProofStage(mlir::OpPassManager &pm);
Status buildLoweringStage(mlir::OpPassManager &pm, const StageInsertions &added = {});

/// The stages as pipelines of kiln-opt, insertions as their options.
void registerStages();

} // namespace kiln

#endif // KILN_PIPELINE_STAGES_H
