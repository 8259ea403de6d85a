//===- PipelinedLoops.h - What the passes of pipelines share ----------------===//
//
// pipeline-loops, rotate-products and resident-operands: which loops they look at, the values that they make a loop
// carry in addition, and whether a later round exists.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_PIPELINES_PIPELINEDLOOPS_H
#define KILN_PASSES_PIPELINES_PIPELINEDLOOPS_H

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace kiln {

/// Calls `visit` with the loops of each function that `wanted` takes, inner ones first, and the target.  Fails, with an
/// error, at a function that has such loops and names no target.
mlir::LogicalResult forEachLoops(mlir::ModuleOp module, llvm::function_ref<bool(mlir::scf::ForOp)> wanted,
                                 llvm::function_ref<void(llvm::ArrayRef<mlir::scf::ForOp>, const Target &)> visit);

/// It waits for a slot of a pipeline itself, not in a loop or a conditional inside of it.
bool waitsForSlots(mlir::scf::ForOp loop);

/// Its rounds are programs, from this block's own on, as many apart as there are blocks.
bool isOverPrograms(mlir::scf::ForOp loop);

/// It writes no memory and orders nothing, nor does anything inside of it.
bool onlyReads(mlir::Operation *op);

/// The loop that carries these values too, after its own, unchanged from round to round until their yields are set.
mlir::scf::ForOp carryAlso(mlir::RewriterBase &rewriter, mlir::scf::ForOp loop, mlir::ValueRange inits);

/// i1: a counter that is `distance` after `from`, the counter of a round that exists, is one of the loop's.  The
/// difference of the bounds is exact as an unsigned number, whatever the bounds.
mlir::Value roundExists(mlir::OpBuilder &b, mlir::scf::ForOp loop, mlir::Value from, int64_t distance);

} // namespace kiln

#endif // KILN_PASSES_PIPELINES_PIPELINEDLOOPS_H
