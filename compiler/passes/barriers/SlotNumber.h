//===- SlotNumber.h - Numbers that a loop counts modulo the slots -----------===//
//
// For insert-barriers.  A pipelined loop takes one of several equal buffers by a number that it carries and counts
// modulo their number: 0, 1, .., count - 1, 0, ..  Two such numbers of one loop are told apart by where they start and
// by how many rounds lie between.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_SLOTNUMBER_H
#define KILN_PASSES_BARRIERS_SLOTNUMBER_H

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace kiln {

/// In round k of the loop the number is (start + first + k * step) mod count.
struct SlotNumber {
  mlir::scf::ForOp loop;
  int64_t first = 0, step = 0, count = 1;
  mlir::Value start; ///< null: 0

  /// Nothing for a value of which that is not known, constants among them.
  static std::optional<SlotNumber> of(mlir::Value number);

  /// Whether it is another number in that round, counted from 0.
  bool isNot(int64_t number, int64_t round) const { return !start && (first + round % count * step) % count != number; }

  /// This number, so many rounds ago, is another one than `later` now.
  bool differs(const SlotNumber &later, int64_t roundsAgo) const {
    return loop == later.loop && start == later.start && step == later.step && count == later.count &&
           (first - later.first - step * roundsAgo) % count != 0;
  }
};

} // namespace kiln

#endif // KILN_PASSES_BARRIERS_SLOTNUMBER_H
