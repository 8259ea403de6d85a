//===- LoweredKernel.h - Kernels given at stage llvm -------------------------===//
//
// A program may be a module of the LLVM and NVVM dialects whose kernel says itself what the stages would have found:
// `nvvm.kernel`, its block `nvvm.reqntid`, its cluster `nvvm.cluster_dim`, the recipes of its tensor maps
// (`tile_gpu.tensor_map`), its dynamic shared memory `tile_gpu.shared_bytes`, and of its arguments names, elements of
// pointers, and the facts that the code relies on (`tile.name`, `tile.element`, `tile.divisibility`, `tile.equals`).
// What the lowering leaves is such a module.  Nothing proves its barriers.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_LOWEREDKERNEL_H
#define KILN_PIPELINE_LOWEREDKERNEL_H

#include "compiler/pipeline/Metadata.h"
#include "compiler/target/Target.h"

namespace kiln {

/// Whether the module has a kernel at stage llvm and none at another.
bool isLowered(mlir::ModuleOp module);

/// Checks the module, removes its kernels but the one called `name` (empty: the only one), and describes that one.
mlir::FailureOr<Metadata> describeLoweredKernel(mlir::ModuleOp module, llvm::StringRef name, const Target &target);

} // namespace kiln

#endif // KILN_PIPELINE_LOWEREDKERNEL_H
