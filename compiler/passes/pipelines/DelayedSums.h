//===- DelayedSums.h - Products that only memory gets, made a round late ----===//
//
// A round that ends by adding a product to memory makes that product in the next round, after that one's first product,
// and adds it while its other products go on:
//
//   for i ..:                            for i .., carrying x, j and whether there was a round before:
//     s = a * B(i)                         s = a * B(i)
//     p = .. s ..; x = .. p ..     =>      t = x * c                   x of the round before; in flight ..
//     u = p * D(i)                         p = .. s ..
//     t = x * c                            u = p * D(i)
//     memory(i) += t                       memory(j) += t if j exists  .. to here
//                                          x = .. p ..
//                                        memory(j) += x * c if there was a round
//
// x is what warps exchange: they need not meet between making it and multiplying it, but once a round, wherever.
//
// Sums after those of other programs are counted a round later still, and waited for a round before, at once, right
// after the product has begun: neither keeps anybody waiting, and the round's barrier serves both.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_PIPELINES_DELAYEDSUMS_H
#define KILN_PASSES_PIPELINES_DELAYEDSUMS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kiln {

/// Makes the loop so, if it has that form: false if not.  A product of warpgroups whose right tile is the same in every
/// round; relaxed atomic operations whose results nobody looks at; addresses that follow from the counter and from
/// scalars of the round.
bool delaySums(mlir::scf::ForOp loop);

} // namespace kiln

#endif // KILN_PASSES_PIPELINES_DELAYEDSUMS_H
