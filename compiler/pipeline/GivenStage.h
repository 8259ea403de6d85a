//===- GivenStage.h - Kernels given at a later stage --------------------------===//
//
// Whose text is at which stage: seen in what it holds, never in a file's name.
//
//   tile      a kernel as authors write it, with or without layouts; also what the tile stage leaves
//   tile_gpu  what the tile_gpu stage leaves: its kernel says how much shared memory it has (tile_gpu.shared_bytes), so
//             buffers have places and barriers stand
//   llvm      LLVM and NVVM dialects (LoweredKernel.h): what the lowering leaves
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_GIVENSTAGE_H
#define KILN_PIPELINE_GIVENSTAGE_H

#include "compiler/target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace kiln {

enum class Stage : unsigned char { Tile, TileGpu, Llvm };

/// "tile", "tile_gpu", "llvm".
llvm::StringRef stageName(Stage stage);
/// The stage whose passes leave a text at this stage: "tile", "tile_gpu", "lowering".
llvm::StringRef passesName(Stage stage);

Stage stageOf(mlir::ModuleOp module);

/// Fails with an error at the module if it names another target than this.
mlir::LogicalResult checkTargetName(mlir::ModuleOp module, const Target &target);

/// The kernel of a module at stage tile_gpu: the one called `name` (empty: the only one).  Erases the others.  Fails
/// with an error, also if the module is for another target.
mlir::FailureOr<mlir::func::FuncOp> pickFinishedKernel(mlir::ModuleOp module, llvm::StringRef name,
                                                       const Target &target);

} // namespace kiln

#endif // KILN_PIPELINE_GIVENSTAGE_H
