//===- Triangular.h - Triangular parts of tiles, and an inverse -------------===//
//
//   auto lower = tril(x);                         elements on and below the diagonal, else 0
//   auto strict = tril(x, -1);                    below it
//   auto m = inverseUnitLower(a, Precision::Tf32x3);   (I - a)^-1 of the part of a below the diagonal
//
// The last two dimensions are rows and columns, those before them a batch.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_TRIANGULAR_H
#define KILN_LANGUAGE_TRIANGULAR_H

#include "Dot.h"
#include "Math.h"
#include "Reduce.h"
#include "Shapes.h"

#include <bit>

namespace kiln::language {
namespace detail {
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

namespace detail {

/// The square blocks of `size` rows on the diagonal: [.., n, n] to [.., n / size, size, size].
inline Tile<f32> diagonalBlocks(const Tile<f32> &a, std::int64_t size, Location loc) {
  const int rank = static_cast<int>(a.rank());
  const std::int64_t blocks = a.extent(static_cast<unsigned>(rank - 1)) / size;
  Shape shape;
  for (int d = 0; d < rank - 2; ++d)
    shape.append(a.extent(static_cast<unsigned>(d)));
  for (const std::int64_t extent : {blocks, size, blocks, size})
    shape.append(extent);
  const auto same = numbersAlong(blocks, rank - 2, rank + 2, loc) == numbersAlong(blocks, rank, rank + 2, loc);
  return sum(select(same, reshape(a, shape, loc), zeros<f32>(shape)), along(rank), loc);
}

/// Pairs of blocks on the diagonal of one block each, zero elsewhere: [.., m, s, s] to [.., m / 2, 2 s, 2 s].
inline Tile<f32> pairedBlocks(const Tile<f32> &blocks, Location loc) {
  const int rank = static_cast<int>(blocks.rank());
  const std::int64_t m = blocks.extent(static_cast<unsigned>(rank - 3)), s = blocks.extent(static_cast<unsigned>(rank - 1));
  Shape wide, shape, out;
  for (int d = 0; d < rank - 3; ++d)
    for (Shape *to : {&wide, &shape, &out})
      to->append(blocks.extent(static_cast<unsigned>(d)));
  for (const std::int64_t extent : {m / 2, std::int64_t(2), s, std::int64_t(1), s})
    wide.append(extent);
  for (const std::int64_t extent : {m / 2, std::int64_t(2), s, std::int64_t(2), s})
    shape.append(extent);
  for (const std::int64_t extent : {m / 2, 2 * s, 2 * s})
    out.append(extent);
  const auto same = numbersAlong(2, rank - 2, rank + 2, loc) == numbersAlong(2, rank, rank + 2, loc);
  return reshape(select(same, broadcastTo(reshape(blocks, wide, loc), shape, loc), zeros<f32>(shape)), out, loc);
}

/// `inverse` of the diagonal blocks of s rows made that of blocks of twice and more, up to `to` rows.
template <typename Product>
Tile<f32> doubledInverse(Tile<f32> inverse, const Tile<f32> &a, std::int64_t from, std::int64_t to, Product product,
                         Location loc) {
  const int rank = static_cast<int>(a.rank());
  const std::int64_t n = a.extent(static_cast<unsigned>(rank - 1));
  const auto rows = numbersAlong(n, rank - 2, rank, loc), columns = numbersAlong(n, rank - 1, rank, loc);
  const auto none = zeros<f32>(a.shape());
  for (int log = std::countr_zero(static_cast<std::uint64_t>(from)); (std::int64_t(1) << log) < to; ++log) {
    // The second half of a block of 2 s rows against its first half.
    const auto between = ((rows >> (log + 1)) == (columns >> (log + 1))) & ((rows >> log) > (columns >> log));
    const auto part = select(between, a, none);
    inverse = log == 0 ? inverse + part : inverse + product(inverse, product(part, inverse));
  }
  return inverse;
}

template <typename Product>
Tile<f32> inverseUnitLower(const Tile<f32> &a, Product product, Location loc) {
  const LocationScope scope(loc);
  const int rank = static_cast<int>(a.rank());
  if (rank < 2)
    return tril(a, 0, loc);
  const std::int64_t n = a.extent(static_cast<unsigned>(rank - 1)), s = 16;
  const auto unit = [&](const Tile<f32> &like) {
    const int r = static_cast<int>(like.rank());
    const std::int64_t size = like.extent(static_cast<unsigned>(r - 1));
    return select(numbersAlong(size, r - 2, r, loc) == numbersAlong(size, r - 1, r, loc),
                  full<f32>(like.shape(), 1.0f), zeros<f32>(like.shape()));
  };
  // Blocks of 16 rows are the smallest that matrix instructions take: only those on the diagonal are multiplied.
  const bool inBlocks = n > s && n % s == 0 && std::has_single_bit(static_cast<std::uint64_t>(n));
  if (!inBlocks)
    return doubledInverse(unit(a), a, 1, n, product, loc);
  const Tile<f32> first = diagonalBlocks(a, s, loc);
  Tile<f32> inverse = doubledInverse(unit(first), first, 1, s, product, loc);
  for (std::int64_t size = 2 * s; size <= n; size *= 2) {
    const Tile<f32> blocks = diagonalBlocks(a, size, loc);
    inverse = doubledInverse(pairedBlocks(inverse, loc), blocks, size / 2, size, product, loc);
  }
  return reshape(inverse, a.shape(), loc);
}

} // namespace detail

/// (I - L)^-1 for L = the part of `a` below its diagonal; the rest of `a` is not used.  [.., n, n], any n; f32, its
/// products taken as `precision` says.
///
/// By doubling: from the inverses M of the diagonal blocks of s rows, those of 2 s rows are M + M L' M, where L' is
/// what of L lies in such a block and in none of s.  2 log2 n - 2 products, and unlike products of powers (I + L)(I +
/// L^2).. no large numbers that cancel: its error is that of substitution but for a factor of log2 n.
inline Tile<f32> inverseUnitLower(const Tile<f32> &a, Precision precision = Precision::Ieee,
                                  Location loc = Location::current()) {
  return detail::inverseUnitLower(
      a, [&](const Tile<f32> &x, const Tile<f32> &y) { return dot(x, y, precision, loc); }, loc);
}
/// The same with operands of the products rounded to a 16-bit type: `inverseUnitLower<f16>(a)`.
template <Element Operand>
Tile<f32> inverseUnitLower(const Tile<f32> &a, Location loc = Location::current()) {
  return detail::inverseUnitLower(
      a,
      [&](const Tile<f32> &x, const Tile<f32> &y) { return dot(cast<Operand>(x, loc), cast<Operand>(y, loc), loc); },
      loc);
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_TRIANGULAR_H
