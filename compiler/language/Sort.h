//===- Sort.h - Tiles in order, their largest elements, histograms ------------===//
//
//   auto y = sort(x, along(1));                                  each row in ascending order, NaN last
//   auto [value, at] = sortWithIndex(x, along(0), SortOrder::Descending);
//   auto [best, where] = topK(logits, 8, along(1));              the eight largest of each row, largest first
//   auto counts = histogram(labels, 16);                         how often 0 .. 15 occur
//
// Bitonic networks over tiles as they lie: a step exchanges pairs within a thread, a warp or through shared memory,
// and no tile changes its layout.  Extents that are sorted along are powers of two.  NaN comes last in both orders, -0
// before 0; of equal elements those of lower coordinates come first where coordinates are asked for.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_SORT_H
#define KILN_LANGUAGE_SORT_H

#include "Kernel.h"
#include "Math.h"
#include "Memory.h"
#include "Reduce.h"
#include "Shapes.h"

#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <tuple>

namespace kiln::language {

enum class SortOrder : std::uint8_t { Ascending, Descending };

namespace detail {

/// What is compared: signed integers in the elements' order.
template <NumberElement T> using KeyOf = std::conditional_t<bitsOf(elementOf<T>) == 64, i64, i32>;

/// The signed integer of a float's bits that is ordered as the floats are, and back.
template <Element Key> Tile<Key> orderedBits(const Tile<Key> &bits, unsigned width) {
  return bits ^ ((bits >> (bitsOf(elementOf<Key>) - 1)) & ((std::int64_t(1) << (width - 1)) - 1));
}
template <NumberElement T> Tile<KeyOf<T>> keysOf(const Tile<T> &x, SortOrder order) {
  using Key = KeyOf<T>;
  constexpr unsigned bits = bitsOf(elementOf<T>);
  const auto ordered = [&] {
    if constexpr (FloatElement<T>)
      return orderedBits(language::cast<Key>(language::bitcast<std::conditional_t<bits == 16, i16, Key>>(x)), bits);
    else if constexpr (isUnsigned(elementOf<T>) && bits >= 32)
      return language::bitcast<Key>(x) ^
             std::numeric_limits<std::conditional_t<bits == 64, std::int64_t, std::int32_t>>::min();
    else
      return language::cast<Key>(x);
  }();
  const Tile<Key> key = order == SortOrder::Descending ? ~ordered : Tile<Key>(ordered);
  if constexpr (FloatElement<T>) // the largest of the width: bits of a NaN in either order
    return language::select(isNan(x), (std::int64_t(1) << (bits - 2)) - 1 + (std::int64_t(1) << (bits - 2)), key);
  else
    return key;
}
template <NumberElement T> Tile<T> ofKeys(const Tile<KeyOf<T>> &key, SortOrder order) {
  using Key = KeyOf<T>;
  constexpr unsigned bits = bitsOf(elementOf<T>);
  const Tile<Key> ordered = order == SortOrder::Descending ? ~key : key;
  if constexpr (FloatElement<T>)
    return language::bitcast<T>(language::cast<std::conditional_t<bits == 16, i16, Key>>(orderedBits(ordered, bits)));
  else if constexpr (isUnsigned(elementOf<T>) && bits >= 32)
    return language::bitcast<T>(ordered ^
                                std::numeric_limits<std::conditional_t<bits == 64, std::int64_t, std::int32_t>>::min());
  else
    return language::cast<T>(ordered);
}

/// Elements in order along one dimension and, if asked for, where they were.
template <Element Key> struct Sorter {
  Tile<Key> keys;
  std::optional<Tile<i32>> places;
  Shape whole; ///< of which the tile is, whatever its dimensions are for one step
  int dim = 0;
  Location loc;

  std::int64_t extent() const { return whole[static_cast<unsigned>(dim)]; }

  /// Bitonic blocks of `size` made ascending; each second one descending if `alternate`.
  void merge(std::int64_t size, bool alternate) {
    const int rank = static_cast<int>(whole.rank()) + 2;
    for (std::int64_t distance = size / 2; distance > 0; distance /= 2) {
      pairUp(distance);
      auto exchanged = numbersAlong(2, dim + 1, rank, loc) == 1; // the second of each pair
      if (alternate) {
        const int log = std::countr_zero(static_cast<std::uint64_t>(size / (2 * distance)));
        exchanged = exchanged ^ (((numbersAlong(extent() / (2 * distance), dim, rank, loc) >> log) & 1) == 1);
      }
      const auto otherKey = partner(keys);
      if (!places) {
        keys = language::select(exchanged, language::max(keys, otherKey), language::min(keys, otherKey));
        continue;
      }
      const auto otherPlace = partner(*places);
      exchanged = exchanged ^ ((otherKey < keys) | ((otherKey == keys) & (otherPlace < *places)));
      keys = language::select(exchanged, otherKey, keys);
      places = language::select(exchanged, otherPlace, *places);
    }
  }
  /// Blocks of `size`, from any order.
  void sort(std::int64_t size, bool alternate) {
    for (std::int64_t s = 2; s <= size; s *= 2)
      merge(s, s < size || alternate);
  }
  /// Of an ascending and a descending block of `size` the smaller elements, which are a bitonic block.
  void keepSmaller(std::int64_t size) {
    pairUp(size);
    std::tie(keys, *places) =
        language::reduce(std::tuple{keys, *places}, along(dim + 1), [](auto a, auto i, auto b, auto j) {
          const auto first = (a < b) | ((a == b) & (i < j));
          return std::tuple{language::select(first, a, b), language::select(first, i, j)};
        });
    whole.set(static_cast<unsigned>(dim), extent() / 2);
  }
  /// The dimension as three: pairs of blocks, the two of a pair, `distance` elements.
  void pairUp(std::int64_t distance) {
    Shape shape;
    for (int d = 0; d < static_cast<int>(whole.rank()); ++d)
      if (d == dim)
        for (const std::int64_t e : {extent() / (2 * distance), std::int64_t(2), distance})
          shape.append(e);
      else
        shape.append(whole[static_cast<unsigned>(d)]);
    reshapeTo(shape);
  }
  void reshapeTo(const Shape &shape) {
    keys = language::reshape(keys, shape);
    if (places)
      places = language::reshape(*places, shape);
  }
  /// The other element of each pair: what both together leave of it.
  template <Element T> Tile<T> partner(const Tile<T> &x) const {
    return x ^ language::expandDims(language::reduce(x, along(dim + 1), [](auto a, auto b) { return a ^ b; }), dim + 1);
  }
};

template <NumberElement T>
Sorter<KeyOf<T>> sorterOf(const char *operation, const Tile<T> &x, int dim, SortOrder order, bool places,
                          Location loc) {
  const Shape shape = x.shape();
  const int rank = static_cast<int>(shape.rank());
  const std::int64_t extent = shape[static_cast<unsigned>(dim)];
  if (dim < 0 || dim >= rank)
    refuse(operation, "the dimension " + std::to_string(dim) + " is not in 0 .. " + std::to_string(rank - 1),
           "name a dimension of the tile with along(d)", loc);
  else if (!std::has_single_bit(static_cast<std::uint64_t>(extent)))
    refuse(operation,
           "the dimension " + std::to_string(dim) + " of " + shape.toString() + " has " + std::to_string(extent) +
               " elements",
           "extents that are sorted along are powers of two: load the rest as a number that comes last", loc);
  else if (constexpr int most = Shape::maxRank - 3; rank > most)
    refuse(operation, "a tile of " + std::to_string(rank) + " dimensions",
           "a tile that is sorted has at most " + std::to_string(most) + ": reshape it", loc);
  Sorter<KeyOf<T>> out{keysOf(x, order), {}, shape, dim, loc};
  if (places)
    out.places = coordinate(x, dim, loc);
  return out;
}
} // namespace detail

/// The elements of each line along a dimension, in order.
template <NumberElement T>
Tile<T> sort(const Tile<T> &x, Along dim, SortOrder order = SortOrder::Ascending, Location loc = Location::current()) {
  const LocationScope scope(loc);
  auto sorter = detail::sorterOf("sort", x, dim.dim, order, false, loc);
  sorter.sort(sorter.extent(), false);
  sorter.reshapeTo(sorter.whole);
  return detail::ofKeys<T>(sorter.keys, order);
}

/// The same, and the coordinate along the dimension that each element had.
template <NumberElement T>
std::tuple<Tile<T>, Tile<i32>> sortWithIndex(const Tile<T> &x, Along dim, SortOrder order = SortOrder::Ascending,
                                             Location loc = Location::current()) {
  const LocationScope scope(loc);
  auto sorter = detail::sorterOf("sortWithIndex", x, dim.dim, order, true, loc);
  sorter.sort(sorter.extent(), false);
  sorter.reshapeTo(sorter.whole);
  return {detail::ofKeys<T>(sorter.keys, order), *sorter.places};
}

/// The k largest elements along a dimension, the largest first, and their coordinates; k is a power of two.  A NaN is
/// among them only where k numbers are not there.
template <NumberElement T>
std::tuple<Tile<T>, Tile<i32>> topK(const Tile<T> &x, std::int64_t k, Along dim, Location loc = Location::current()) {
  const LocationScope scope(loc);
  auto sorter = detail::sorterOf("topK", x, dim.dim, SortOrder::Descending, true, loc);
  if (k < 1 || k > sorter.extent() || !std::has_single_bit(static_cast<std::uint64_t>(k))) {
    detail::refuse("topK", "k is " + std::to_string(k) + " of " + std::to_string(sorter.extent()) + " elements",
                   "k is a power of two and at most the extent: take more than are wanted, and mask the rest", loc);
    return {};
  }
  sorter.sort(k, sorter.extent() > k);
  while (sorter.extent() > k) {
    sorter.keepSmaller(k);
    sorter.merge(k, sorter.extent() > k);
  }
  sorter.reshapeTo(sorter.whole);
  return {detail::ofKeys<T>(sorter.keys, SortOrder::Descending), *sorter.places};
}

/// How many elements are 0, 1, .. bins - 1; others are not counted.  x has 2^n elements, in any shape.
inline Tile<i32> histogram(const Tile<i32> &x, std::int64_t bins, Location loc = Location::current()) {
  const LocationScope scope(loc);
  const std::int64_t n = x.shape().elements();
  if (!std::has_single_bit(static_cast<std::uint64_t>(n)))
    detail::refuse("histogram", "the tile " + x.shape().toString() + " has " + std::to_string(n) + " elements",
                   "give a power of two: load the rest as -1, which is not counted", loc);
  const auto flat = reshape(x, {n}), sorted = sort(flat, along(0));
  // How many are at most b, by bisection.
  const auto b = range(0, bins);
  auto upTo = zeros<i32>({bins});
  const auto take = [&](std::int64_t step) {
    return select(gather(sorted, upTo + (step - 1), along(0)) <= b, upTo + step, upTo);
  };
  for (std::int64_t step = n / 2; step > 0; step /= 2)
    upTo = take(step);
  upTo = take(1);
  const auto before = select(b == 0, sum(cast<i32>(flat < 0)), gather(upTo, max(b - 1, 0), along(0)));
  return upTo - before;
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_SORT_H
