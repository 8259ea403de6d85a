//===- TileRegisters.h - Registers that a kernel's tiles take at least ------===//
//
// From the tiles alone, before any register is allocated: where most of them are alive at once, so many words a thread.
// Meant to be low, for who must not believe that a kernel has more registers than it will use: integers, masks and
// addresses count nothing (they may be computed again where they are used), nor does a tile that can be computed where
// it is used because what it is made of is still alive there.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_SHARED_TILEREGISTERS_H
#define KILN_PASSES_SHARED_TILEREGISTERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// 32-bit registers a thread.
unsigned tileRegisters(mlir::func::FuncOp function);

} // namespace kiln

#endif // KILN_PASSES_SHARED_TILEREGISTERS_H
