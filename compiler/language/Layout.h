//===- Layout.h - A hint of how a tile lies in registers ------------------------===//
//
//   auto x = withLayout(loadView(v, {i, 0}),
//                       {.sizePerThread = {1, 8}, .threadsPerWarp = {8, 4}, .warpsPerCTA = {4, 1}});
//
// The compiler chooses layouts, and mostly should.  Where an author knows better, the hint is an anchor of
// kiln-assign-layouts: what is computed of the tile lies so, and what it is computed from, as far as that is not bound
// otherwise: loads and stores by their addresses, products by their unit.  There a conversion stands.  Values are the
// same with any hint.
//
// A thread has sizePerThread neighbours; so many for each of a warp's threadsPerWarp lanes, then for each of the
// warpsPerCTA warps, as they lie along each dimension; what is left of the tile repeats in the thread's registers.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_LAYOUT_H
#define KILN_LANGUAGE_LAYOUT_H

#include "Value.h"

namespace kiln::language {

/// The same tile, with a layout that is asked for.  Each list has a number for each dimension, powers of two; lanes
/// multiply to 32, warps to the kernel's.
template <typename T>
Tile<T> withLayout(const Tile<T> &x, const BlockedLayout &layout, Location loc = Location::current()) {
  return Tile<T>(detail::withLayout(detail::operandOf(x, loc), layout, loc));
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_LAYOUT_H
