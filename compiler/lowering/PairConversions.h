//===- PairConversions.h - Conversions to 8-bit floats, two at a time --------===//
#ifndef KILN_LOWERING_PAIRCONVERSIONS_H
#define KILN_LOWERING_PAIRCONVERSIONS_H

#include "mlir/IR/Operation.h"

namespace kiln {

/// The instruction converts two numbers to e4m3 or e5m2; lower-numbers gives each one of its own, with a zero.  Where
/// four become a word, two instructions make its halves, and nothing takes bytes apart to join them again.
void pairConversions(mlir::Operation *root);

} // namespace kiln

#endif // KILN_LOWERING_PAIRCONVERSIONS_H
