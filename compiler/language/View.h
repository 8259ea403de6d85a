//===- View.h - Strided, bounds-checked windows on memory -------------------===//
//
// A view reads and writes memory tile by tile.  Extents and strides count elements and are values of the kernel; reads
// outside the extents give zero, writes outside do nothing.  Coordinates name the first element of a tile.
//
//   auto x = makeView(pointer, {rows, cols}, {stride, 1}, {64, 32});
//   auto tile = loadView(x, {i, j});
//
// Extents, strides and coordinates are i32, i64 or C++ integers, mixed at will.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_VIEW_H
#define KILN_LANGUAGE_VIEW_H

#include "Value.h"

#include <initializer_list>

namespace kiln::language {

/// Which dimension of a view has the stride 1.
enum class Unit : int { None = -1, Last = -2 };
constexpr Unit unitDim(int dim) {
  return static_cast<Unit>(dim);
}

template <Element T> class View {
public:
  using Tag = T;
  View() = default;
  explicit View(detail::Handle h) : value(h) {}
  detail::Handle handle() const { return value; }
  /// The shape of one tile.
  Shape shape() const { return detail::shapeOf(value); }

private:
  detail::Handle value;
};

using Indices = std::initializer_list<detail::Index>;

namespace detail {
/// Initializer lists hold Index, operations take operands.
class IndexList {
public:
  IndexList(Indices from) {
    for (const Index &i : from)
      if (count <= Shape::maxRank)
        list[count++] = i;
  }
  operator Operands() const { return {list, count}; }

private:
  Operand list[Shape::maxRank + 1];
  std::size_t count = 0;
};
} // namespace detail

/// A view that reads and writes tiles of the shape `tile`.  The stride of the unit dimension must be 1.
template <Element T>
View<T> makeView(const Pointer<T> &p, Indices extents, Indices strides, const Shape &tile, Unit unit = Unit::Last,
                 Location loc = Location::current()) {
  return View<T>(detail::makeView(detail::operandOf(p, loc), detail::IndexList(extents), detail::IndexList(strides),
                                  tile, static_cast<int>(unit), loc));
}

/// Part of a view: coordinates start .. start + size - 1 of one dimension, counted from 0 again.
template <Element T>
View<T> narrow(const View<T> &view, Along dim, std::type_identity_t<detail::Index> start,
               std::type_identity_t<detail::Index> size, Location loc = Location::current()) {
  return View<T>(detail::narrowView(view.handle(), dim.dim, start, size, loc));
}

template <Element T>
Tile<T> loadView(const View<T> &view, Indices coords, Cache cache = Cache::Default,
                 Location loc = Location::current()) {
  return Tile<T>(detail::loadView(view.handle(), elementOf<T>, detail::IndexList(coords), cache, loc));
}

/// The tile goes from memory to registers where the load stands, also in a loop that copies others ahead to shared
/// memory: for large ones that nothing multiplies.
template <Element T> Tile<T> loadViewUnstaged(const View<T> &view, Indices coords, Location loc = Location::current()) {
  return Tile<T>(
      detail::loadView(view.handle(), elementOf<T>, detail::IndexList(coords), Cache::Default, loc, /*unstaged=*/true));
}

template <Element T>
void storeView(const View<T> &view, Indices coords, const std::type_identity_t<Tile<T>> &value,
               Cache cache = Cache::Default, Location loc = Location::current()) {
  detail::storeView(view.handle(), detail::IndexList(coords), detail::operandOf(value, loc), cache, loc);
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_VIEW_H
