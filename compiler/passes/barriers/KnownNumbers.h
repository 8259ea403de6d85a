//===- KnownNumbers.h - Integers worked out where a program is --------------===//
//
// For verify-barriers, which shares nothing with insert-barriers.  Constants, what follows from them, and the numbers
// that loops carry, round by round: which of several equal buffers an access takes is a number there, not an
// expression.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_KNOWNNUMBERS_H
#define KILN_PASSES_BARRIERS_KNOWNNUMBERS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace kiln::proof {

class KnownNumbers {
public:
  void set(mlir::Value v, const llvm::APInt &number) { carried[v] = number; }

  /// Nothing for a value that is not known here.
  std::optional<llvm::APInt> of(mlir::Value v) const;

  /// What is known here and there.
  KnownNumbers operator&(const KnownNumbers &o) const;

private:
  std::optional<llvm::APInt> work(mlir::Value v, llvm::DenseMap<mlir::Value, std::optional<llvm::APInt>> &worked) const;

  llvm::DenseMap<mlir::Value, llvm::APInt> carried;
};

/// The rounds of a loop as far as the numbers that it carries tell them apart: round k of any run of the loop has the
/// numbers states[k] while k < states.size(); after the last come those of states[back] again.
struct Rounds {
  llvm::SmallVector<KnownNumbers> states;
  size_t back = 0;
  /// The carried numbers that operations in it go by and that the first round has, and whether the states have all of
  /// them.  They have not where the next round's depend on which way a round goes: on how many a loop in it makes.
  llvm::SmallVector<mlir::BlockArgument> wanted;
  bool whole = true;
};

/// The numbers that an operation goes by: of a buffer among several, of an mbarrier among several, of its phase.
llvm::SmallVector<mlir::Value, 2> numbersOf(mlir::Operation *op);

/// The last operation after the loop or the conditional in its block that goes by a number that this one ends with;
/// null if none does.  `ends`: values of the block's terminator that the place around goes by.
mlir::Operation *lastGoingBy(mlir::Operation *op, mlir::ValueRange ends = {});

/// Follows the carried numbers that numbersOf the loop's operations depend on.  Numbers that are not known, or do
/// not come back within `most` rounds, are left out; with none left there is one state.
Rounds roundsOf(mlir::scf::ForOp loop, const KnownNumbers &around, size_t most);

} // namespace kiln::proof

#endif // KILN_PASSES_BARRIERS_KNOWNNUMBERS_H
