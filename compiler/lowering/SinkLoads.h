//===- SinkLoads.h - Reads of shared memory are sunk to their first use -----===//
#ifndef KILN_LOWERING_SINKLOADS_H
#define KILN_LOWERING_SINKLOADS_H

#include "mlir/IR/Operation.h"

namespace kiln::lowering {

/// In every block of a function that kiln-lower-tiles has lowered.
void sinkSharedLoads(mlir::Operation *function);

} // namespace kiln::lowering

#endif // KILN_LOWERING_SINKLOADS_H
