//===- PackCarried.h - Loops carry short numbers in words --------------------===//
#ifndef KILN_LOWERING_PACKCARRIED_H
#define KILN_LOWERING_PACKCARRIED_H

#include "mlir/IR/Operation.h"

namespace kiln::lowering {

/// In every loop of a function that kiln-lower-tiles has lowered: two carried 16-bit numbers, or four of 8 bits, that a
/// round computes and the next one only uses as one word are carried as that word, which is put together where they are
/// computed.
void packCarried(mlir::Operation *function);

} // namespace kiln::lowering

#endif // KILN_LOWERING_PACKCARRIED_H
