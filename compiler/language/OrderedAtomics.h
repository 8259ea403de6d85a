//===- OrderedAtomics.h - Atomic sums of programs that add one after the other -----===//
//
//   const auto number = atomicAdd(ticket, 1);          // in the order in which programs start
//   atomicAddAfter(number, counter, pointers, part);   // after those with smaller numbers
//
// So floating-point sums are the same bit for bit from run to run.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_ORDEREDATOMICS_H
#define KILN_LANGUAGE_ORDEREDATOMICS_H

#include "Memory.h"

namespace kiln::language {

namespace detail {
void atomicAddAfter(const Operand &before, const Operand &counter, const Operand &pointer, const Operand &value,
                    const Operand &mask, Location loc);
} // namespace detail

/// Adds after `before` other programs: waits until `counter`, which is 0 before the launch, is `before`, and adds 1 to
/// it when all of the tile is added.  Less than 0: at once, and without counting.  Programs may only wait for such as
/// have started before them, or they may wait for ever: programId() does not say so, a number taken from memory does.
template <detail::AtomicNumber T>
void atomicAddAfter(const Scalar<i32> &before, const Pointer<i32> &counter, const Tile<Pointer<T>> &p,
                    detail::AtOf<Tile<T>> value, detail::MaybeOf<Tile<i1>> mask = {},
                    Location loc = Location::current()) {
  detail::atomicAddAfter(detail::operandOf(before, loc), detail::operandOf(counter, loc), detail::operandOf(p, loc),
                         value, mask, loc);
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_ORDEREDATOMICS_H
