//===- Reduce.h - Reductions and scans ---------------------------------------===//
//
// A reverse scan too gives its function the lower index on the left, what was combined so far on the right (in Triton
// it is the other way round: exchange the two sides of a function of there).
//
//   auto rowMax = max(x, along(1));                       a tile of one rank less
//   auto total = sum(x);                                  all dimensions: a scalar
//   auto p = reduce(x, along(0), [](auto a, auto b) { return a * b; });
//   auto [best, at] = reduce(std::tuple{x, i}, along(1), [](auto a, auto i, auto b, auto j) {
//     auto left = a > b;
//     return std::tuple{select(left, a, b), select(left, i, j)};
//   });
//
// The combine function works on scalars, those of the left side first; it is associative, for reductions commutative
// too, and uses its arguments and C++ numbers only.  16-bit sums round each addition: cast to f32 first.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_REDUCE_H
#define KILN_LANGUAGE_REDUCE_H

#include "Control.h"
#include "Math.h"
#include "Shapes.h"

namespace kiln::language {
namespace detail {

template <typename F, typename... Ts>
concept Combines = std::invocable<F &, const Scalar<Ts> &..., const Scalar<Ts> &...>;

template <typename F, Element... Ts, std::size_t... I>
std::array<Handle, sizeof...(Ts)> combine(bool isScan, std::span<const Operand> sources, int dim, bool reverse,
                                          bool scalars, F &f, std::tuple<Tile<Ts>...> *, std::index_sequence<I...>,
                                          Location loc) {
  constexpr std::size_t n = sizeof...(Ts);
  std::array<Handle, 2 * n> inside = {};
  std::array<Handle, n> results = {};
  if (beginCombine(isScan, sources, dim, reverse, scalars, inside, loc)) {
    const auto combined = callBundled(f, Scalar<Ts>(inside[I])..., Scalar<Ts>(inside[n + I])...);
    static_assert(std::same_as<std::remove_cvref_t<decltype(combined)>, std::tuple<Scalar<Ts>...>>,
                  "a combine function returns one scalar for each operand, of the operands' element types");
    const auto yielded = operandsOf(combined, loc);
    endCombine({yielded.data(), n}, results);
  }
  return results;
}

template <typename Result, typename F, Element... Ts>
Result combineTiles(bool isScan, const std::tuple<Tile<Ts>...> &xs, Along dim, bool reverse, F &f, Location loc) {
  const auto sources = operandsOf(xs, loc);
  const auto results = combine(isScan, {sources.data(), sizeof...(Ts)}, dim.dim, reverse, false, f,
                               static_cast<std::tuple<Tile<Ts>...> *>(nullptr), std::index_sequence_for<Ts...>(), loc);
  return fromHandles<Result>(results, std::index_sequence_for<Ts...>());
}

/// All dimensions, the last one first.
template <typename F, Element... Ts>
std::tuple<Scalar<Ts>...> combineAll(std::tuple<Tile<Ts>...> xs, F &f, Location loc) {
  for (unsigned rank = std::get<0>(xs).rank(); rank > 1; --rank)
    xs = combineTiles<std::tuple<Tile<Ts>...>>(false, xs, along(static_cast<int>(rank) - 1), false, f, loc);
  const auto sources = operandsOf(xs, loc);
  const auto results = combine(false, {sources.data(), sizeof...(Ts)}, 0, false, true, f,
                               static_cast<std::tuple<Tile<Ts>...> *>(nullptr), std::index_sequence_for<Ts...>(), loc);
  return fromHandles<std::tuple<Scalar<Ts>...>>(results, std::index_sequence_for<Ts...>());
}
} // namespace detail

/// Tiles combined along one dimension.  A tile of rank 1 has no result of lower rank: leave out `along`.
template <Element... Ts, detail::Combines<Ts...> F>
std::tuple<Tile<Ts>...> reduce(const std::tuple<Tile<Ts>...> &xs, Along dim, F &&f,
                               Location loc = Location::current()) {
  return detail::combineTiles<std::tuple<Tile<Ts>...>>(false, xs, dim, false, f, loc);
}
template <Element T, detail::Combines<T> F>
Tile<T> reduce(const Tile<T> &x, Along dim, F &&f, Location loc = Location::current()) {
  return std::get<0>(detail::combineTiles<std::tuple<Tile<T>>>(false, std::tuple<Tile<T>>(x), dim, false, f, loc));
}
/// Tiles combined along all dimensions.
template <Element... Ts, detail::Combines<Ts...> F>
std::tuple<Scalar<Ts>...> reduce(const std::tuple<Tile<Ts>...> &xs, F &&f, Location loc = Location::current()) {
  return detail::combineAll(xs, f, loc);
}
template <Element T, detail::Combines<T> F>
Scalar<T> reduce(const Tile<T> &x, F &&f, Location loc = Location::current()) {
  return std::get<0>(detail::combineAll(std::tuple<Tile<T>>(x), f, loc));
}

/// Which end a scan starts from: Forward gives element i what 0 .. i combine to, Reverse what i .. last do.
enum class Direction : std::uint8_t { Forward, Reverse };

/// Running combination along one dimension; the left side is the one of the lower indices, in a reverse scan too: what
/// was combined so far is its right side.
template <Element... Ts, detail::Combines<Ts...> F>
std::tuple<Tile<Ts>...> scan(const std::tuple<Tile<Ts>...> &xs, Along dim, F &&f,
                             Direction direction = Direction::Forward, Location loc = Location::current()) {
  return detail::combineTiles<std::tuple<Tile<Ts>...>>(true, xs, dim, direction == Direction::Reverse, f, loc);
}
template <Element T, detail::Combines<T> F>
Tile<T> scan(const Tile<T> &x, Along dim, F &&f, Direction direction = Direction::Forward,
             Location loc = Location::current()) {
  return std::get<0>(detail::combineTiles<std::tuple<Tile<T>>>(true, std::tuple<Tile<T>>(x), dim,
                                                               direction == Direction::Reverse, f, loc));
}

namespace detail {
struct Sum {
  Location loc;
  template <typename S> S operator()(const S &a, const S &b) const {
    return S(
        arithmetic(Arith::Add, elementOf<typename S::Tag>, operandOf(a, loc), operandOf(b, loc), Grade::Precise, loc));
  }
};
struct Product {
  Location loc;
  template <typename S> S operator()(const S &a, const S &b) const {
    return S(
        arithmetic(Arith::Mul, elementOf<typename S::Tag>, operandOf(a, loc), operandOf(b, loc), Grade::Precise, loc));
  }
};
/// The larger (or smaller) value and its index; the smaller index of equal ones, and NaN before every number.
struct Best {
  bool largest;
  Location loc;
  template <typename S, typename I> std::tuple<S, I> operator()(const S &a, const I &i, const S &b, const I &j) const {
    constexpr DType e = elementOf<typename S::Tag>;
    const Operand x = operandOf(a, loc), y = operandOf(b, loc), s = operandOf(i, loc), t = operandOf(j, loc);
    Scalar<i1> better(compare(largest ? Compare::Gt : Compare::Lt, e, x, y, loc));
    Scalar<i1> equal(compare(Compare::Eq, e, x, y, loc));
    if constexpr (FloatElement<typename S::Tag>) {
      const Scalar<i1> nanA = isNan(a, loc), nanB = isNan(b, loc);
      better = both(Arith::Or, better, nanA);
      equal = both(Arith::Or, equal, both(Arith::And, nanA, nanB));
    }
    const Scalar<i1> earlier(compare(Compare::Lt, elementOf<typename I::Tag>, s, t, loc));
    const Scalar<i1> left = language::select(equal, earlier, better, loc);
    return {language::select(left, a, b, loc), language::select(left, i, j, loc)};
  }
  Scalar<i1> both(Arith kind, const Scalar<i1> &a, const Scalar<i1> &b) const {
    return Scalar<i1>(arithmetic(kind, DType::I1, operandOf(a, loc), operandOf(b, loc), Grade::Precise, loc));
  }
};
struct Extreme {
  Arith kind;
  Location loc;
  template <typename S> S operator()(const S &a, const S &b) const {
    return S(arithmetic(kind, elementOf<typename S::Tag>, operandOf(a, loc), operandOf(b, loc), Grade::Precise, loc));
  }
};
/// The coordinate along `dim` of each element of x.
template <Element T> Tile<i32> coordinate(const Tile<T> &x, int dim, Location loc) {
  const Shape shape = x.shape();
  if (dim < 0 || dim >= static_cast<int>(shape.rank()))
    return zeros<i32>(shape, loc); // the reduction reports the dimension
  Tile<i32> i = language::range(0, shape[static_cast<unsigned>(dim)], loc);
  for (int d = 0; d < static_cast<int>(shape.rank()); ++d)
    if (d != dim)
      i = language::expandDims(i, d, loc);
  return language::broadcastTo(i, shape, loc);
}
} // namespace detail

#define KILN_REDUCTION(name, concept_, ...)                                                                            \
  template <concept_ T> Tile<T> name(const Tile<T> &x, Along dim, Location loc = Location::current()) {                \
    return reduce(x, dim, detail::__VA_ARGS__, loc);                                                                   \
  }                                                                                                                    \
  template <concept_ T> Scalar<T> name(const Tile<T> &x, Location loc = Location::current()) {                         \
    return reduce(x, detail::__VA_ARGS__, loc);                                                                        \
  }
KILN_REDUCTION(sum, NumberElement, Sum{loc})
KILN_REDUCTION(prod, NumberElement, Product{loc})
/// max and min ignore NaN (all NaN gives NaN); maximum and minimum propagate it.
KILN_REDUCTION(max, NumberElement, Extreme{detail::Arith::Max, loc})
KILN_REDUCTION(min, NumberElement, Extreme{detail::Arith::Min, loc})
KILN_REDUCTION(maximum, FloatElement, Extreme{detail::Arith::Maximum, loc})
KILN_REDUCTION(minimum, FloatElement, Extreme{detail::Arith::Minimum, loc})
#undef KILN_REDUCTION

/// The largest (smallest) elements along a dimension, and the first coordinate that has each; NaN counts as the largest
/// (smallest).
template <NumberElement T>
std::tuple<Tile<T>, Tile<i32>> maxWithIndex(const Tile<T> &x, Along dim, Location loc = Location::current()) {
  return reduce(std::tuple<Tile<T>, Tile<i32>>(x, detail::coordinate(x, dim.dim, loc)), dim, detail::Best{true, loc},
                loc);
}
template <NumberElement T>
std::tuple<Tile<T>, Tile<i32>> minWithIndex(const Tile<T> &x, Along dim, Location loc = Location::current()) {
  return reduce(std::tuple<Tile<T>, Tile<i32>>(x, detail::coordinate(x, dim.dim, loc)), dim, detail::Best{false, loc},
                loc);
}
template <NumberElement T> Tile<i32> argmax(const Tile<T> &x, Along dim, Location loc = Location::current()) {
  return std::get<1>(maxWithIndex(x, dim, loc));
}
template <NumberElement T> Tile<i32> argmin(const Tile<T> &x, Along dim, Location loc = Location::current()) {
  return std::get<1>(minWithIndex(x, dim, loc));
}

/// Running sums, products, largest elements along a dimension.
template <NumberElement T>
Tile<T> cumsum(const Tile<T> &x, Along dim, Direction direction = Direction::Forward,
               Location loc = Location::current()) {
  return scan(x, dim, detail::Sum{loc}, direction, loc);
}
template <NumberElement T>
Tile<T> cumprod(const Tile<T> &x, Along dim, Direction direction = Direction::Forward,
                Location loc = Location::current()) {
  return scan(x, dim, detail::Product{loc}, direction, loc);
}
template <NumberElement T>
Tile<T> cummax(const Tile<T> &x, Along dim, Direction direction = Direction::Forward,
               Location loc = Location::current()) {
  return scan(x, dim, detail::Extreme{detail::Arith::Max, loc}, direction, loc);
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_REDUCE_H
