//===- NarrowAccess.h - Accesses that are narrow for want of a fact ---------===//
//
// A thread moves as many neighbours at once as are known to lie together, aligned, and inside or outside together.
// Which of a kernel's arguments would have to be known for more is found by asking the axis analysis again, as if they
// were multiples of 16 (pointers: of 16 bytes).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_ANALYSIS_NARROWACCESS_H
#define KILN_ANALYSIS_NARROWACCESS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln::analysis {

class AxisAnalysis;

struct NarrowAccess {
  mlir::Operation *op;
  unsigned bytes, possible; ///< that a thread moves at once, and would if the arguments were known
  llvm::SmallVector<mlir::BlockArgument> unknown;
};

/// Those of tiles with several elements a thread; `axes` describes the kernel.
llvm::SmallVector<NarrowAccess> narrowAccesses(mlir::func::FuncOp kernel, const AxisAnalysis &axes);

/// Says so in remarks: one for each set of arguments with an integer among them, at the first access that lacks them.
void remarkNarrowAccesses(mlir::func::FuncOp kernel, const AxisAnalysis &axes);

} // namespace kiln::analysis

#endif // KILN_ANALYSIS_NARROWACCESS_H
