//===- Triangular.h - Triangular parts of tiles, and an inverse -------------===//
//
//   auto lower = tril(x);                         elements on and below the diagonal, else 0
//   auto strict = tril(x, -1);                    below it
//   auto m = inverseUnitLower(a, Precision::Tf32x3);   (I - a)^-1 of the part of a below the diagonal
//
// The last two dimensions are rows and columns, those in front a batch.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_TRIANGULAR_H
#define KILN_LANGUAGE_TRIANGULAR_H

#include "Dot.h"
#include "Math.h"
#include "Shapes.h"

namespace kiln::language {
namespace detail {
/// Row or column numbers of a tile of so many dimensions, with extents of 1 elsewhere.
inline Tile<i32> numbersAlong(std::int64_t extent, int dim, int rank, Location loc) {
  Tile<i32> out = language::range(0, extent, loc);
  for (int d = 0; d < rank; ++d)
    if (d != dim)
      out = language::expandDims(out, d, loc);
  return out;
}
/// `x` where row - column + k is at least 0 (`lower`) or at most 0.
template <Element T> Tile<T> triangle(const Tile<T> &x, std::int64_t k, bool lower, Location loc) {
  const LocationScope scope(loc);
  const int rank = static_cast<int>(x.rank());
  if (rank < 2)
    return language::expandDims(x, -1, loc); // refused: no such dimension
  const auto rows = numbersAlong(x.extent(static_cast<unsigned>(rank - 2)), rank - 2, rank, loc),
             columns = numbersAlong(x.extent(static_cast<unsigned>(rank - 1)), rank - 1, rank, loc);
  return language::select(lower ? columns - rows <= k : columns - rows >= k, x, zeros<T>(x.shape()));
}
} // namespace detail

/// x where column - row <= k, else 0; as NumPy's.
template <Element T> Tile<T> tril(const Tile<T> &x, std::int64_t k = 0, Location loc = Location::current()) {
  return detail::triangle(x, k, true, loc);
}
/// x where column - row >= k, else 0.
template <Element T> Tile<T> triu(const Tile<T> &x, std::int64_t k = 0, Location loc = Location::current()) {
  return detail::triangle(x, k, false, loc);
}

/// (I - L)^-1 for L = the part of `a` below its diagonal; the rest of `a` is not used.  [.., n, n], any n; f32, its
/// products taken as `precision` says.
///
/// By doubling: from the inverses M of the diagonal blocks of s rows, those of 2 s rows are M + M L' M, where L' is
/// what of L lies in such a block and in none of s.  2 log2 n - 2 products, and unlike products of powers (I + L)(I +
/// L^2).. no large numbers that cancel: its error is that of substitution but for a factor of log2 n.
inline Tile<f32> inverseUnitLower(const Tile<f32> &a, Precision precision = Precision::Ieee,
                                  Location loc = Location::current()) {
  const LocationScope scope(loc);
  const int rank = static_cast<int>(a.rank());
  if (rank < 2)
    return tril(a, 0, loc);
  const std::int64_t n = a.extent(static_cast<unsigned>(rank - 1));
  const auto rows = detail::numbersAlong(n, rank - 2, rank, loc),
             columns = detail::numbersAlong(n, rank - 1, rank, loc);
  const auto none = zeros<f32>(a.shape());
  Tile<f32> inverse = select(rows == columns, full<f32>(a.shape(), 1.0f), none);
  for (int log = 0; (std::int64_t(1) << log) < n; ++log) {
    // The second half of a block of 2 s rows against its first half.
    const auto between = ((rows >> (log + 1)) == (columns >> (log + 1))) & ((rows >> log) > (columns >> log));
    const auto part = select(between, a, none);
    inverse = log == 0 ? inverse + part : dot(inverse, dot(part, inverse, none, precision), inverse, precision);
  }
  return inverse;
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_TRIANGULAR_H
