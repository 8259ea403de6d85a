//===- WritesInFlight.h - Global memory that accesses in flight write -------===//
//
// For verify-barriers.  What the copy engine writes in global memory is no thread's of the program until the kernel
// ends: a wait shows it to the thread that began it, and only a count shows it to others, of other programs.  So nobody
// else reads there, nor writes in another way; several sums, atomic all of them, may meet.  And the kernel ends after a
// wait, since its shared memory is another block's then.
//
// Assumed, since PTX promises it for accesses of one proxy only: a sum that begins after a program has seen another's
// count comes after the sums that were counted.  These are in L2 then, where all sums are carried out.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_WRITESINFLIGHT_H
#define KILN_PASSES_BARRIERS_WRITESINFLIGHT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln::proof {

/// Reports what is wrong.  False if there was something.
bool checkWritesInFlight(mlir::func::FuncOp function);

} // namespace kiln::proof

#endif // KILN_PASSES_BARRIERS_WRITESINFLIGHT_H
