//===- MemoryOrigin.h - The arguments that addresses come from, for the proof -//
//
// For verify-barriers, which shares nothing with insert-barriers: where a pointer or a view comes from, by walking back
// from it over everything that it is computed from and through scf.for, scf.if, scf.while and exchanges.  Two addresses
// of different arguments are different memory; of everything else that is not known.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_MEMORYORIGIN_H
#define KILN_PASSES_BARRIERS_MEMORYORIGIN_H

#include "compiler/tile/MemoryInterfaces.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace kiln::proof {

struct MemoryOrigin {
  llvm::SmallSetVector<mlir::Value, 2> arguments; ///< of the function
  mlir::Value unknown;                            ///< of which nobody knows where it comes from; null if there is none
  bool anywhere = false;                          ///< not even an address is known

  bool known() const { return !unknown && !anywhere; }
};

/// Of an operation's accesses to global memory that `wanted` takes; nothing if it takes none.
std::optional<MemoryOrigin> originOf(mlir::Operation *op, llvm::function_ref<bool(const tile::MemoryAccess &)> wanted);

/// What an operation reads that goes on reading until a wait (a copy); nothing for other operations.
std::optional<MemoryOrigin> copiedFrom(mlir::Operation *op);

/// What an operation writes in global memory; nothing for one that writes none.
std::optional<MemoryOrigin> writtenTo(mlir::Operation *op);

/// What an operation tells other programs of, without being atomic there: that it was accessed (a count).
std::optional<MemoryOrigin> releasedBy(mlir::Operation *op);

/// Both may be the same memory.
bool mayMeet(const MemoryOrigin &a, const MemoryOrigin &b);

} // namespace kiln::proof

#endif // KILN_PASSES_BARRIERS_MEMORYORIGIN_H
