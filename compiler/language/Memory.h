//===- Memory.h - Global memory through pointers ----------------------------===//
//
// Loads and stores take a mask (scalar or tile): where it is false nothing is read or written, and a load gives `other`
// or zero.  Mask, `other` and the stored value broadcast to the pointers' shape, never the other way round.
//
// Atomic operations give the old values; where the mask is false nothing happens and the result is zero.  The default
// order is relaxed, the default scope the GPU.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_MEMORY_H
#define KILN_LANGUAGE_MEMORY_H

#include "Value.h"

#include <type_traits>

namespace kiln::language {

namespace detail {
/// An operand that may be left out: `{}`.
template <typename V> class Maybe : public Operand {
public:
  Maybe() = default;
  template <typename A>
    requires std::convertible_to<const A &, At<V>>
  Maybe(const A &a) : Operand(At<V>(a)) {}
};
template <typename V> using MaybeOf = std::type_identity_t<Maybe<V>>;
template <typename V> using AtOf = std::type_identity_t<At<V>>;

/// What the atomic units add, compare and exchange.
template <typename T>
concept AtomicWord = std::same_as<T, i32> || std::same_as<T, i64> || std::same_as<T, u32> || std::same_as<T, u64>;
template <typename T>
concept AtomicNumber = AtomicWord<T> || FloatElement<T>;
template <typename T>
concept AtomicSwap = AtomicWord<T> || std::same_as<T, f32> || std::same_as<T, f64>;
template <typename T>
concept AtomicCompared = Element<T> && bitsOf(elementOf<T>) >= 16;
} // namespace detail

template <Element T>
Scalar<T> load(const Pointer<T> &p, detail::MaybeOf<Scalar<i1>> mask = {}, detail::MaybeOf<Scalar<T>> other = {},
               Cache cache = Cache::Default, Location loc = Location::current()) {
  return Scalar<T>(detail::load(detail::operandOf(p, loc), mask, other, cache, loc));
}
template <Element T>
Tile<T> load(const Tile<Pointer<T>> &p, detail::MaybeOf<Tile<i1>> mask = {}, detail::MaybeOf<Tile<T>> other = {},
             Cache cache = Cache::Default, Location loc = Location::current()) {
  return Tile<T>(detail::load(detail::operandOf(p, loc), mask, other, cache, loc));
}

template <Element T>
void store(const Pointer<T> &p, detail::AtOf<Scalar<T>> value, detail::MaybeOf<Scalar<i1>> mask = {},
           Cache cache = Cache::Default, Location loc = Location::current()) {
  detail::store(detail::operandOf(p, loc), value, mask, cache, loc);
}
template <Element T>
void store(const Tile<Pointer<T>> &p, detail::AtOf<Tile<T>> value, detail::MaybeOf<Tile<i1>> mask = {},
           Cache cache = Cache::Default, Location loc = Location::current()) {
  detail::store(detail::operandOf(p, loc), value, mask, cache, loc);
}

#define KILN_ATOMIC(name, kind, concept_)                                                                              \
  template <detail::concept_ T>                                                                                        \
  Scalar<T> name(const Pointer<T> &p, detail::AtOf<Scalar<T>> value, detail::MaybeOf<Scalar<i1>> mask = {},            \
                 Order order = Order::Relaxed, Scope scope = Scope::Gpu, Location loc = Location::current()) {         \
    return Scalar<T>(detail::atomicRmw(detail::Rmw::kind, detail::operandOf(p, loc), value, mask, order, scope, loc)); \
  }                                                                                                                    \
  template <detail::concept_ T>                                                                                        \
  Tile<T> name(const Tile<Pointer<T>> &p, detail::AtOf<Tile<T>> value, detail::MaybeOf<Tile<i1>> mask = {},            \
               Order order = Order::Relaxed, Scope scope = Scope::Gpu, Location loc = Location::current()) {           \
    return Tile<T>(detail::atomicRmw(detail::Rmw::kind, detail::operandOf(p, loc), value, mask, order, scope, loc));   \
  }
KILN_ATOMIC(atomicAdd, Add, AtomicNumber)
KILN_ATOMIC(atomicMin, Min, AtomicNumber)
KILN_ATOMIC(atomicMax, Max, AtomicNumber)
KILN_ATOMIC(atomicAnd, And, AtomicWord)
KILN_ATOMIC(atomicOr, Or, AtomicWord)
KILN_ATOMIC(atomicXor, Xor, AtomicWord)
KILN_ATOMIC(atomicExchange, Exchange, AtomicSwap)
#undef KILN_ATOMIC

/// Stores `desired` where memory holds `expected`, compared bit by bit; gives the old values.
template <detail::AtomicCompared T>
Scalar<T> atomicCas(const Pointer<T> &p, detail::AtOf<Scalar<T>> expected, detail::AtOf<Scalar<T>> desired,
                    Order order = Order::Relaxed, Scope scope = Scope::Gpu, Location loc = Location::current()) {
  return Scalar<T>(detail::atomicCas(detail::operandOf(p, loc), expected, desired, order, scope, loc));
}
template <detail::AtomicCompared T>
Tile<T> atomicCas(const Tile<Pointer<T>> &p, detail::AtOf<Tile<T>> expected, detail::AtOf<Tile<T>> desired,
                  Order order = Order::Relaxed, Scope scope = Scope::Gpu, Location loc = Location::current()) {
  return Tile<T>(detail::atomicCas(detail::operandOf(p, loc), expected, desired, order, scope, loc));
}

/// Elements of a tile picked along one dimension: result[a, b] = x[a, i[a, b]] for along(1).
template <Element T, IndexElement I>
Tile<T> gather(const Tile<T> &x, const Tile<I> &indices, Along dim, Location loc = Location::current()) {
  return Tile<T>(detail::gather(detail::operandOf(x, loc), detail::operandOf(indices, loc), dim.dim, loc));
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_MEMORY_H
