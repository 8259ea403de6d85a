//===- TurnCheck.h - Turns that warpgroups take, on every path ---------------===//
//
// For verify-barriers.  Every warpgroup goes the same way through a kernel, so turns come out even where on each path
// they begin, are taken and passed on alternately, and end: the n-th turn that a warpgroup waits for is the one that
// the warpgroup before passed on as its n-th, and the first one's first is there from the beginning.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_TURNCHECK_H
#define KILN_PASSES_BARRIERS_TURNCHECK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln::proof {

/// Reports what is wrong.  False if there was something.
bool checkTurns(mlir::func::FuncOp function);

} // namespace kiln::proof

#endif // KILN_PASSES_BARRIERS_TURNCHECK_H
