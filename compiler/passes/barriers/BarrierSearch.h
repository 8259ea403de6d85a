//===- BarrierSearch.h - Accesses to memory that need a barrier between them ---===//
//
// For insert-barriers, and for allocate-shared, which asks where a barrier could be saved.  One walk over a function
// follows the accesses since the last barrier along every path, back edges until nothing changes, and knows for each
// access which of them it must not meet without a barrier between.
//
// What operations access and what two of them need of each other is worked out once; barriers may come and go between
// two walks, other operations must not.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_BARRIERSEARCH_H
#define KILN_PASSES_BARRIERS_BARRIERSEARCH_H

#include "compiler/passes/barriers/SharedFootprint.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>

namespace kiln {

class BarrierSearch {
public:
  explicit BarrierSearch(mlir::func::FuncOp function);
  ~BarrierSearch();

  /// What every operation accesses.  Reports what cannot be analysed.
  mlir::LogicalResult prepare();
  /// No operation accesses memory.
  bool empty() const;

  /// Makes the barriers that are missing and takes back those of them that later ones made needless.  Gives what stays.
  llvm::SmallVector<mlir::Operation *> insert();

  /// Every two accesses to different buffers that no barrier of the block lies between on some path, though one would
  /// have to if the buffers began at the same byte.  Before: the operation that it would stand before.
  using Neighbours =
      llvm::function_ref<void(tile_gpu::LocalAllocOp first, tile_gpu::LocalAllocOp second, mlir::Operation *before)>;
  void neighbours(Neighbours report);

private:
  struct Walk;
  std::unique_ptr<Walk> walk;
};

/// How many loops lie around the operation.
unsigned loopDepth(mlir::Operation *op);

} // namespace kiln

#endif // KILN_PASSES_BARRIERS_BARRIERSEARCH_H
