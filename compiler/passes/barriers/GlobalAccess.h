//===- GlobalAccess.h - What an operation does to global memory -------------===//
//
// For insert-barriers.  A program's loads and stores take effect in program order, also where different threads carry
// them out: what one thread stored another must see.  Two accesses may meet if their addresses come from the same
// argument (analysis::mayOverlap), and need nothing between them if each element is accessed by the same thread both
// times.  Of two stores to one element either may stay: loops store one tile after the other, and a barrier a round
// would be the price of an order that nearly no kernel needs.
// A tensor that is given for two arguments is read and written element for element, in place: then only other copies of
// a loaded tile than the one that is stored could come too late.
// An atomic operation that releases comes after everything before it, one that acquires before everything after it.
// What releases without being atomic (the count of who has accessed elements) comes after accesses to the same memory,
// and nothing has to come after it.
// An asynchronous copy reads (or writes) from the operation on, until a wait: that counts as one more read, of
// everything that the function copies.  In place it needs nothing: a tile is stored only after the wait and the barrier
// that it came by.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_GLOBALACCESS_H
#define KILN_PASSES_BARRIERS_GLOBALACCESS_H

#include "compiler/analysis/PointerRoots.h"
#include "compiler/passes/barriers/SharedFootprint.h"

#include <optional>

namespace kiln {

class GlobalAccess {
public:
  /// Nothing for an operation that does not access global memory.
  static llvm::SmallVector<GlobalAccess, 1> of(mlir::Operation *op, const analysis::PointerRoots &roots);

  /// What `later` needs before it.  Carried: this access is of an earlier round of a loop.
  Hazard against(const GlobalAccess &later, bool carried) const;

private:
  GlobalAccess() = default;
  GlobalAccess(const tile::MemoryAccess &access, const analysis::PointerRoots &known);
  bool sameElements(const GlobalAccess &other, bool carried) const;
  /// Between what all threads that have a copy of an element do, and what its owner does.
  Hazard betweenCopies() const;

  llvm::SmallVector<mlir::Value, 4> address; ///< the pointer, or the view and its coordinates
  mlir::Type tile;                           ///< that is accessed, null for a scalar
  mlir::Type element;
  analysis::Roots roots;
  bool writes = false, atomic = false, acquires = false, releases = false;
  bool copies = false;  ///< asynchronously
  bool oneWarp = false; ///< the program has no other
};

} // namespace kiln

#endif // KILN_PASSES_BARRIERS_GLOBALACCESS_H
