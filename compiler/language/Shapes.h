//===- Shapes.h - Tiles made, and their shapes changed ----------------------===//
//
// Where a program is in the grid, tiles of indices and of one value, and changes of shape.  Extents are C++ integers:
// a tile's shape is fixed when the kernel is recorded.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_SHAPES_H
#define KILN_LANGUAGE_SHAPES_H

#include "Kernel.h"
#include "Value.h"

#include <utility>
#include <vector>

namespace kiln::language {

/// Number of this program along one dimension of the grid.
inline Scalar<i32> programId(Axis axis = Axis::X, Location loc = Location::current()) {
  return Scalar<i32>(detail::programId(axis, loc));
}
/// Number of programs along one dimension of the grid.
inline Scalar<i32> numPrograms(Axis axis = Axis::X, Location loc = Location::current()) {
  return Scalar<i32>(detail::numPrograms(axis, loc));
}

/// begin, begin + 1, .., end - 1.
template <IndexElement T = i32>
Tile<T> range(std::int64_t begin, std::int64_t end, Location loc = Location::current()) {
  return Tile<T>(detail::range(elementOf<T>, begin, end, loc));
}

/// A tile of one value: `full<f32>({64, 32}, 0.5)`, or `full({64, 32}, scalar)`.
template <Element T>
Tile<T> full(const Shape &shape, std::type_identity_t<detail::At<Scalar<T>>> value,
             Location loc = Location::current()) {
  return Tile<T>(detail::full(shape, value, loc));
}
template <Element T> Tile<T> full(const Shape &shape, const Scalar<T> &value, Location loc = Location::current()) {
  return Tile<T>(detail::full(shape, detail::operandOf(value, loc), loc));
}
template <Element T> Tile<T> zeros(const Shape &shape, Location loc = Location::current()) {
  return Tile<T>(detail::full(shape, detail::Operand::number(detail::Constant(0), elementOf<T>, loc), loc));
}
/// A tile of one value or pointer.
template <Element T> Tile<T> splat(const Scalar<T> &value, const Shape &shape, Location loc = Location::current()) {
  return Tile<T>(detail::full(shape, detail::operandOf(value, loc), loc));
}
template <Element T>
Tile<Pointer<T>> splat(const Pointer<T> &value, const Shape &shape, Location loc = Location::current()) {
  return Tile<Pointer<T>>(detail::full(shape, detail::operandOf(value, loc), loc));
}

/// A new dimension of extent 1 before dimension `dim`.
template <typename T> Tile<T> expandDims(const Tile<T> &x, int dim, Location loc = Location::current()) {
  return Tile<T>(detail::expandDims(detail::operandOf(x, loc), dim, loc));
}
/// Dimensions of extent 1 repeated.
template <typename T> Tile<T> broadcastTo(const Tile<T> &x, const Shape &shape, Location loc = Location::current()) {
  return Tile<T>(detail::broadcastTo(detail::operandOf(x, loc), shape, loc));
}
/// Dimension i of the result is dimension permutation[i] of x.
template <typename T>
Tile<T> transpose(const Tile<T> &x, std::initializer_list<int> permutation, Location loc = Location::current()) {
  return Tile<T>(detail::transpose(detail::operandOf(x, loc), {permutation.begin(), permutation.size()}, loc));
}
/// All dimensions in the opposite order.
template <typename T> Tile<T> transpose(const Tile<T> &x, Location loc = Location::current()) {
  return Tile<T>(detail::transpose(detail::operandOf(x, loc), {}, loc));
}
/// The same elements in row-major order, in another shape.
template <typename T> Tile<T> reshape(const Tile<T> &x, const Shape &shape, Location loc = Location::current()) {
  return Tile<T>(detail::reshape(detail::operandOf(x, loc), shape, loc));
}
/// Two tiles of one shape side by side in a new last dimension of extent 2.
template <typename T> Tile<T> join(const Tile<T> &a, const Tile<T> &b, Location loc = Location::current()) {
  return Tile<T>(detail::join(detail::operandOf(a, loc), detail::operandOf(b, loc), loc));
}
/// b after a along one dimension, of equal shapes.
template <typename T>
Tile<T> concat(const Tile<T> &a, const Tile<T> &b, Along along, Location loc = Location::current()) {
  const LocationScope scope(loc);
  const Tile<T> both = join(a, b, loc); // [.., 2]
  Shape shape;
  std::vector<int> order;
  for (int d = 0; d < static_cast<int>(a.rank()); ++d) {
    if (d == along.dim)
      order.push_back(static_cast<int>(a.rank()));
    order.push_back(d);
    shape.append(a.extent(static_cast<unsigned>(d)) * (d == along.dim ? 2 : 1));
  }
  return reshape(Tile<T>(detail::transpose(detail::operandOf(both, loc), order, loc)), shape, loc);
}
/// The two halves of a last dimension of extent 2: `auto [a, b] = split(x);`
template <typename T> std::pair<Tile<T>, Tile<T>> split(const Tile<T> &x, Location loc = Location::current()) {
  detail::Handle a, b;
  detail::split(detail::operandOf(x, loc), a, b, loc);
  return {Tile<T>(a), Tile<T>(b)};
}
/// The two halves along one dimension of even extent: `auto [upper, lower] = halves(x, along(0));`
template <typename T>
std::pair<Tile<T>, Tile<T>> halves(const Tile<T> &x, Along along, Location loc = Location::current()) {
  const LocationScope scope(loc);
  Shape shape;
  std::vector<int> order;
  int at = 0;
  for (int d = 0; d < static_cast<int>(x.rank()); ++d) {
    const std::int64_t extent = x.extent(static_cast<unsigned>(d));
    if (d == along.dim) {
      shape.append(2);
      ++at;
    }
    shape.append(d == along.dim ? extent / 2 : extent);
    order.push_back(at++);
  }
  order.push_back(along.dim);
  return split(Tile<T>(detail::transpose(detail::operandOf(reshape(x, shape, loc), loc), order, loc)), loc);
}

namespace detail {
/// 0 .. extent - 1 along one of so many dimensions, with extents of 1 elsewhere.
inline Tile<i32> numbersAlong(std::int64_t extent, int dim, int rank, Location loc) {
  Tile<i32> out = language::range(0, extent, loc);
  for (int d = 0; d < rank; ++d)
    if (d != dim)
      out = language::expandDims(out, d, loc);
  return out;
}
} // namespace detail

} // namespace kiln::language

#endif // KILN_LANGUAGE_SHAPES_H
