//===- GlobalAccess.h - Which registers one access moves, and how ----------===//
//
// Loads, stores, views and atomics share these: the distinct registers of a tile, their grouping into vector accesses
// along one dimension, and the instructions for one access with its cache hint.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LOWERING_GLOBALACCESS_H
#define KILN_LOWERING_GLOBALACCESS_H

#include "compiler/lowering/Emit.h"

namespace kiln::lowering {

/// For each register the one of the same thread that stands for its element: itself unless it is a copy.
llvm::SmallVector<unsigned> representatives(const layout::TileLayout &layout);

/// One access of a thread: the registers it moves, in order of their addresses.
using AccessGroup = llvm::SmallVector<unsigned, 8>;

/// All distinct registers in groups of `elements` (a power of two that the layout allows: vectorElements) neighbours
/// along `dim`.
llvm::SmallVector<AccessGroup> groupRegisters(const layout::TileLayout &layout, unsigned dim, unsigned elements);

/// `count` elements at `address`, aligned to their total size (at most 16 bytes), where `mask` holds, else `other` (of
/// scalarType; empty: zeros).  Without a mask always.  Values are of scalarType.
Scalars emitLoad(const Emit &e, mlir::Value mask, llvm::ArrayRef<mlir::Value> other, mlir::Value address,
                 mlir::Type element, unsigned count, tile::Cache cache);
/// The same way where `condition` holds, or always without one.
void emitStore(const Emit &e, mlir::Value condition, mlir::Value address, llvm::ArrayRef<mlir::Value> values,
               tile::Cache cache);

} // namespace kiln::lowering

#endif // KILN_LOWERING_GLOBALACCESS_H
