//===- SharedBuffers.h - The buffers of a kernel and when they are alive -----===//
//
// Size, alignment and life of every local_alloc, as allocate-shared places them and `kiln explain` shows them.  Lives
// are in operation numbers: an operation with regions spans the numbers of everything inside.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_SHARED_SHAREDBUFFERS_H
#define KILN_PASSES_SHARED_SHAREDBUFFERS_H

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

struct SharedBuffer {
  tile_gpu::LocalAllocOp op;
  uint64_t bytes = 0, alignment = 1;
  unsigned first = 0, last = 0;                   ///< alive from .. to, in operation numbers
  mlir::Operation *from = nullptr, *to = nullptr; ///< the operations that these numbers are of
  uint64_t offset = 0;                            ///< filled in by who places it
  uint64_t end() const { return offset + bytes; }
  bool aliveWith(const SharedBuffer &other) const { return first <= other.last && other.first <= last; }
};

/// Every buffer of the function, in the order of the operations.  Failures are reported at the operation: sizes that
/// no target has, an author's offset that is not aligned.
mlir::LogicalResult collectSharedBuffers(mlir::func::FuncOp function, llvm::SmallVector<SharedBuffer> &buffers);

/// The most bytes of shared memory that are alive at once; all there could be if that cannot be said.
uint64_t mostSharedBytes(mlir::func::FuncOp function);

} // namespace kiln

#endif // KILN_PASSES_SHARED_SHAREDBUFFERS_H
