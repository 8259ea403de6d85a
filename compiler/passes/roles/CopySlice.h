//===- CopySlice.h - The part of a kernel that copying warps execute --------===//
//
// What one thread does alone (`elected`), the barriers of the block, and what decides whether and with which numbers
// either comes: loops, conditionals, scalars.  In the kernel's order.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_ROLES_COPYSLICE_H
#define KILN_PASSES_ROLES_COPYSLICE_H

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace kiln {

class CopySlice {
public:
  explicit CopySlice(mlir::func::FuncOp kernel);

  /// An operation of the slice that takes all warps that compute: a tile, an access to shared memory (but a number's
  /// that is read between two barriers of the block) or to global memory that the kernel writes, control flow that is
  /// not cut.  Null: there is none, and the slice may be made.
  mlir::Operation *obstacle() const { return hindrance; }

  /// Copies the slice of the kernel's body to where the builder stands.
  void cloneTo(mlir::OpBuilder &b) const;

private:
  void need(mlir::Operation *op);
  void need(mlir::Value v);
  void needAround(mlir::Operation *op);
  void clone(mlir::Block &from, mlir::OpBuilder &b, mlir::IRMapping &map) const;
  bool isNeeded(mlir::Value v) const { return values.contains(v); }

  mlir::func::FuncOp kernel;
  mlir::Operation *hindrance = nullptr;
  llvm::DenseSet<mlir::Operation *> operations;
  llvm::DenseSet<mlir::Value> values; ///< results and carried values of loops and conditionals
  llvm::SmallVector<mlir::Value> work;
};

} // namespace kiln

#endif // KILN_PASSES_ROLES_COPYSLICE_H
