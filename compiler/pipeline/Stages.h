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

#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace kiln {

/// What the tile stage states (Passes.td, kiln-specialize).
struct SpecializeFacts {
  std::string target, kernel;
  std::vector<std::string> divisible, equals; ///< "0=16"
};

void buildTileStage(mlir::OpPassManager &pm, const SpecializeFacts &facts);
void buildTileGpuStage(mlir::OpPassManager &pm);
void buildLoweringStage(mlir::OpPassManager &pm);

/// The stages as pipelines of kiln-opt.
void registerStages();

} // namespace kiln

#endif // KILN_PIPELINE_STAGES_H
