//===- Control.h - Loops and conditions with carried values -----------------===//
//
//   auto total = loop(over(0, n, 64), zero, [&](auto i, auto total) { return total + load(x + i); });
//   auto [m, s] = loop(over(0, n), m0, s0, [&](auto i, auto m, auto s) { ..; return std::tuple{m1, s1}; });
//   auto acc = loop(over(0, n, 64).stages(3).unroll(2).grade(approx), acc0, [&](auto i, auto acc) { .. });
//   auto [n, x] = whileLoop(n0, x0, [&](auto n, auto x) { return n > 1; }, [&](auto n, auto x) { ..; return
//   std::tuple{..}; }); when(first, [&] { store(out, y); }); auto y = when(first, [&] { return a; }, [&] { return b;
//   }); auto y = whenRows(grown, [&] { return x * 2; }, [&] { return x; }); // grown: a mask [M]; x: a tile [M, N]
//
// The body is called once, when the kernel is recorded; it takes the counter and the carried values, and gives the
// carried values of the next round: nothing, one value, or a std::tuple.  Types and shapes stay what they were.  A
// value computed inside a body leaves it only by being returned: using it outside otherwise is an error. A C++ `for`
// around recorded operations repeats them in the text, which is unrolling.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_CONTROL_H
#define KILN_LANGUAGE_CONTROL_H

#include "Math.h"
#include "Shapes.h"

#include <array>
#include <tuple>
#include <utility>

namespace kiln::language {
namespace detail {

/// What a body returned, as a tuple of plain values.
template <typename R> struct Bundle {
  static_assert(sizeof(R) == 0, "a body returns nothing, recorded values, or a std::tuple of them: write "
                                "constant<f32>(0) for a C++ number");
};
template <> struct Bundle<void> {
  using Type = std::tuple<>;
};
template <Value V> struct Bundle<V> {
  using Type = std::tuple<Plain<V>>;
};
template <Value... Vs> struct Bundle<std::tuple<Vs...>> {
  using Type = std::tuple<Plain<Vs>...>;
};
template <Value A, Value B> struct Bundle<std::pair<A, B>> {
  using Type = std::tuple<Plain<A>, Plain<B>>;
};
template <typename R> using BundleOf = typename Bundle<std::remove_cvref_t<R>>::Type;

/// Calls `f` and packs what it returns.
template <typename F, typename... As> auto callBundled(F &f, const As &...as) {
  using R = std::invoke_result_t<F &, const As &...>;
  if constexpr (std::is_void_v<R>) {
    f(as...);
    return std::tuple<>();
  } else {
    return BundleOf<R>(f(as...));
  }
}

template <typename... Vs>
std::array<Operand, sizeof...(Vs) + 1> operandsOf(const std::tuple<Vs...> &values, Location loc) {
  return std::apply(
      [&](const Vs &...v) { return std::array<Operand, sizeof...(Vs) + 1>{operandOf(v, loc)..., Operand()}; }, values);
}

template <typename Tuple, std::size_t... I>
Tuple fromHandles(std::span<const Handle> handles, std::index_sequence<I...>) {
  return Tuple(std::tuple_element_t<I, Tuple>(handles[I])...);
}

/// void, the value, or the tuple.
template <typename Tuple> auto unbundle(std::span<const Handle> handles) {
  constexpr std::size_t n = std::tuple_size_v<Tuple>;
  if constexpr (n == 1)
    return std::tuple_element_t<0, Tuple>(handles[0]);
  else if constexpr (n > 1)
    return fromHandles<Tuple>(handles, std::make_index_sequence<n>());
}

template <typename V>
concept Counter = (Value<V> && IndexElement<typename TagOf<V>::Type> && !isTile<V>() && !Traits<Plain<V>>::isPointer) ||
                  (std::integral<V> && !std::same_as<V, bool>);

/// The counter's type: that of the values among the bounds, i32 if all are C++ numbers, void if they differ.
template <typename... Vs> constexpr auto counterTag() {
  constexpr bool narrow = (std::same_as<typename TagOf<Vs>::Type, i32> || ...);
  constexpr bool wide = (std::same_as<typename TagOf<Vs>::Type, i64> || ...);
  if constexpr (wide && !narrow)
    return i64{};
  else if constexpr (!wide)
    return i32{};
}
template <typename V> Operand counterOperand(DType e, const V &v, Location loc) {
  if constexpr (Value<V>)
    return operandOf(v, loc);
  else
    return Operand::number(v, e, loc);
}
} // namespace detail

/// begin, begin + step, .. below end.
template <IndexElement T> struct Steps {
  detail::Operand begin, end, step;
  Location location;
  std::optional<int> ownStages = {};
  Grade ownGrade = Grade::OfScope;
  std::optional<int> ownUnroll = {};

  /// Tiles in flight of this loop's loads, 1 to 8, in place of KernelOptions::stages.  Loops inside it have the
  /// kernel's, or their own.
  Steps stages(int count) const {
    Steps out = *this;
    out.ownStages = count;
    return out;
  }
  /// So many rounds at once, by copies of the body, 1 to 64, and a loop for the rest.  With constant bounds a loop of
  /// `count` rounds or fewer becomes straight code.
  Steps unroll(int count) const {
    Steps out = *this;
    out.ownUnroll = count;
    return out;
  }
  /// Of what the body records and names no grade, inner loops included: withGrade (Math.h).
  Steps grade(Grade g) const {
    Steps out = *this;
    out.ownGrade = g;
    return out;
  }
};

/// The rounds of a loop, as signed numbers: `over(0, n, 64)`.  Values among the bounds are all i32 or all i64; the step
/// is positive.
template <detail::Counter B, detail::Counter E, detail::Counter S = int>
  requires IndexElement<decltype(detail::counterTag<B, E, S>())>
auto over(const B &begin, const E &end, const S &step = 1, Location loc = Location::current()) {
  using T = decltype(detail::counterTag<B, E, S>());
  constexpr DType e = elementOf<T>;
  return Steps<T>{detail::counterOperand(e, begin, loc), detail::counterOperand(e, end, loc),
                  detail::counterOperand(e, step, loc), loc};
}

namespace detail {
template <typename T, typename F, detail::Value... Carried, std::size_t... I>
auto loopOver(const Steps<T> &steps, F &body, const std::tuple<Carried...> &carried,
              std::index_sequence<I...> sequence) {
  static_assert(std::is_invocable_v<F &, const Scalar<T> &, const Carried &...>,
                "the body of a loop takes the counter and one parameter for each carried value");
  using Bundled = std::tuple<Carried...>;
  constexpr std::size_t n = sizeof...(Carried);
  std::array<Handle, n + 1> inside = {}, results = {};
  Handle counter;
  const auto first = operandsOf(carried, steps.location);
  if (beginLoop(elementOf<T>, steps.begin, steps.end, steps.step, {steps.ownStages, steps.ownUnroll}, {first.data(), n},
                counter, {inside.data(), n}, steps.location)) {
    const GradeScope grade(steps.ownGrade);
    const auto next = callBundled(body, Scalar<T>(counter), Carried(inside[I])...);
    static_assert(
        std::same_as<std::remove_cvref_t<decltype(next)>, Bundled>,
        "the body of a loop returns the carried values of the next round, of the same types in the same order");
    const auto yielded = operandsOf(next, steps.location);
    endLoop({yielded.data(), n}, {results.data(), n});
  }
  return unbundle<Bundled>({results.data(), n});
}
} // namespace detail

/// Repeats `body`, the last argument; the arguments before it are the carried values of the first round.
template <IndexElement T, typename... Rest>
  requires(sizeof...(Rest) >= 1)
auto loop(const Steps<T> &steps, Rest &&...rest) {
  constexpr std::size_t n = sizeof...(Rest) - 1;
  auto all = std::forward_as_tuple(rest...);
  return [&]<std::size_t... I>(std::index_sequence<I...> sequence) {
    static_assert((detail::Value<std::remove_cvref_t<std::tuple_element_t<I, decltype(all)>>> && ...),
                  "carried values are scalars, tiles, pointers and pipelines; write constant<f32>(0) for a C++ number");
    const std::tuple<detail::Plain<std::remove_cvref_t<std::tuple_element_t<I, decltype(all)>>>...> carried(
        std::get<I>(all)...);
    return detail::loopOver(steps, std::get<n>(all), carried, sequence);
  }(std::make_index_sequence<n>());
}

namespace detail {
template <typename Condition, typename Body, Value... Carried, std::size_t... I>
auto whileHolds(Condition &condition, Body &body, const std::tuple<Carried...> &carried, std::index_sequence<I...>,
                Location loc) {
  static_assert(std::is_invocable_v<Condition &, const Carried &...> && std::is_invocable_v<Body &, const Carried &...>,
                "the condition and the body of a whileLoop take one parameter for each carried value");
  using Bundled = std::tuple<Carried...>;
  constexpr std::size_t n = sizeof...(Carried);
  std::array<Handle, n + 1> inside = {}, results = {};
  const auto first = operandsOf(carried, loc);
  if (beginWhile({first.data(), n}, {inside.data(), n}, loc)) {
    const auto goesOn = condition(Carried(inside[I])...);
    static_assert(std::is_convertible_v<decltype(goesOn), Scalar<i1>>,
                  "the condition of a whileLoop returns a Scalar<i1>: reduce a mask with `max(cast<i32>(mask)) != 0`");
    if (beginWhileBody(operandOf(Scalar<i1>(goesOn), loc), {inside.data(), n})) {
      const auto next = callBundled(body, Carried(inside[I])...);
      static_assert(
          std::same_as<std::remove_cvref_t<decltype(next)>, Bundled>,
          "the body of a whileLoop returns the carried values of the next round, of the same types in the same order");
      const auto yielded = operandsOf(next, loc);
      endLoop({yielded.data(), n}, {results.data(), n});
    }
  }
  return unbundle<Bundled>({results.data(), n});
}
} // namespace detail

namespace detail {
template <typename... Vs, typename Condition, typename Body>
auto whileWith(Condition &condition, Body &body, Location loc, const Vs &...first) {
  static_assert((Value<Vs> && ...),
                "carried values are scalars, tiles, pointers and pipelines; write constant<f32>(0) for a C++ number");
  return whileHolds(condition, body, std::tuple<Plain<Vs>...>(first...), std::index_sequence_for<Vs...>(), loc);
}
} // namespace detail

/// `whileLoop(carried.., condition, body)` repeats the body as long as the condition holds, which is asked before each
/// round, the first one too.  Both take the carried values; the arguments before them are those of the first round, at
/// most 8.
///
/// All threads of a program have to agree on the condition.  They do on whatever is computed from arguments,
/// reductions, atomics and memory that no other program writes meanwhile; what other programs write is to be read by an
/// atomic operation (`atomicAdd(flag, 0)`), of which every thread gets the same answer.  A whileLoop is not pipelined,
/// loops inside it are.
#define KILN_LIST(...) __VA_ARGS__
#define KILN_WHILE_LOOP(types, parameters, values)                                                                     \
  template <types typename Condition, typename Body>                                                                   \
    requires(!std::same_as<std::remove_cvref_t<Body>, Location>)                                                       \
  auto whileLoop(parameters Condition &&condition, Body &&body, Location loc = Location::current()) {                  \
    return detail::whileWith(condition, body, loc values);                                                             \
  }
KILN_WHILE_LOOP(KILN_LIST(), KILN_LIST(), KILN_LIST())
KILN_WHILE_LOOP(KILN_LIST(typename V0, ), KILN_LIST(const V0 &v0, ), KILN_LIST(, v0))
KILN_WHILE_LOOP(KILN_LIST(typename V0, typename V1, ), KILN_LIST(const V0 &v0, const V1 &v1, ), KILN_LIST(, v0, v1))
KILN_WHILE_LOOP(KILN_LIST(typename V0, typename V1, typename V2, ),
                KILN_LIST(const V0 &v0, const V1 &v1, const V2 &v2, ), KILN_LIST(, v0, v1, v2))
KILN_WHILE_LOOP(KILN_LIST(typename V0, typename V1, typename V2, typename V3, ),
                KILN_LIST(const V0 &v0, const V1 &v1, const V2 &v2, const V3 &v3, ), KILN_LIST(, v0, v1, v2, v3))
KILN_WHILE_LOOP(KILN_LIST(typename V0, typename V1, typename V2, typename V3, typename V4, ),
                KILN_LIST(const V0 &v0, const V1 &v1, const V2 &v2, const V3 &v3, const V4 &v4, ),
                KILN_LIST(, v0, v1, v2, v3, v4))
KILN_WHILE_LOOP(KILN_LIST(typename V0, typename V1, typename V2, typename V3, typename V4, typename V5, ),
                KILN_LIST(const V0 &v0, const V1 &v1, const V2 &v2, const V3 &v3, const V4 &v4, const V5 &v5, ),
                KILN_LIST(, v0, v1, v2, v3, v4, v5))
KILN_WHILE_LOOP(KILN_LIST(typename V0, typename V1, typename V2, typename V3, typename V4, typename V5, typename V6, ),
                KILN_LIST(const V0 &v0, const V1 &v1, const V2 &v2, const V3 &v3, const V4 &v4, const V5 &v5,
                          const V6 &v6, ),
                KILN_LIST(, v0, v1, v2, v3, v4, v5, v6))
KILN_WHILE_LOOP(KILN_LIST(typename V0, typename V1, typename V2, typename V3, typename V4, typename V5, typename V6,
                          typename V7, ),
                KILN_LIST(const V0 &v0, const V1 &v1, const V2 &v2, const V3 &v3, const V4 &v4, const V5 &v5,
                          const V6 &v6, const V7 &v7, ),
                KILN_LIST(, v0, v1, v2, v3, v4, v5, v6, v7))
#undef KILN_WHILE_LOOP
#undef KILN_LIST

/// Runs one of two bodies; they return values of the same types and shapes.
template <typename Then, typename Else>
  requires std::invocable<Then &> && std::invocable<Else &>
auto when(const Scalar<i1> &condition, Then &&then, Else &&otherwise, Location loc = Location::current()) {
  using Bundled = detail::BundleOf<std::invoke_result_t<Then &>>;
  static_assert(std::same_as<Bundled, detail::BundleOf<std::invoke_result_t<Else &>>>,
                "both bodies of a condition return values of the same types in the same order");
  constexpr std::size_t n = std::tuple_size_v<Bundled>;
  std::array<detail::Handle, n + 1> results = {};
  if (detail::beginWhen(detail::operandOf(condition, loc), loc)) {
    const auto first = detail::operandsOf(detail::callBundled(then), loc);
    if (detail::beginOtherwise({first.data(), n})) {
      const auto second = detail::operandsOf(detail::callBundled(otherwise), loc);
      detail::endWhen({second.data(), n}, {results.data(), n});
    }
  }
  return detail::unbundle<Bundled>({results.data(), n});
}

/// Runs a body if the condition holds.
template <typename Then>
  requires std::invocable<Then &>
void when(const Scalar<i1> &condition, Then &&then, Location loc = Location::current()) {
  static_assert(std::is_void_v<std::invoke_result_t<Then &>>,
                "a condition whose body returns values has a second body that returns the others");
  if (detail::beginWhen(detail::operandOf(condition, loc), loc)) {
    then();
    detail::endWhen({}, {});
  }
}

namespace detail {
/// `then` in the rows of the mask, else `otherwise`.
template <Element T> Tile<T> chooseRows(Tile<i1> rows, const Tile<T> &then, const Tile<T> &otherwise, Location loc) {
  for (int d = 1; d < static_cast<int>(then.rank()); ++d)
    rows = expandDims(rows, d, loc);
  return select(rows, then, otherwise, loc);
}
} // namespace detail

/// Tiles whose rows (first dimension) are those of `then` where `rows` holds, else those of `otherwise`; `then` is
/// computed only by warps that hold such a row.  For what few rows need, as the factors of an online softmax: the
/// others pay for one vote of the warp.  `rows` has one dimension; a row's results depend on no other row that the warp
/// holds.
template <typename Then, typename Else>
  requires std::invocable<Then &> && std::invocable<Else &>
auto whenRows(const Tile<i1> &rows, Then &&then, Else &&otherwise, Location loc = Location::current()) {
  using Bundled = detail::BundleOf<std::invoke_result_t<Then &>>;
  static_assert(std::same_as<Bundled, detail::BundleOf<std::invoke_result_t<Else &>>>,
                "both bodies of a condition return tiles of the same types in the same order");
  const Bundled kept = detail::callBundled(otherwise);
  const Scalar<i1> some(detail::anyRow(detail::operandOf(rows, loc), loc));
  return when(
      some,
      [&] {
        const Bundled next = detail::callBundled(then);
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
          return Bundled(detail::chooseRows(rows, std::get<I>(next), std::get<I>(kept), loc)...);
        }(std::make_index_sequence<std::tuple_size_v<Bundled>>());
      },
      [&] { return kept; }, loc);
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_CONTROL_H
