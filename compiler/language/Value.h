//===- Value.h - Scalars, tiles, pointers and views -------------------------===//
//
// What a kernel computes with: handles of recorded values, cheap to copy.
//
//   Scalar<T>           one number, the same in all threads of a program
//   Tile<T>             a tile of numbers; its shape is known when the kernel is recorded
//   Pointer<T>          an address in global memory
//   Tile<Pointer<T>>    a tile of addresses
//   View<T>             a strided, bounds-checked window on memory (View.h)
//   Pipeline<T, "k">    the state of a ring of slots in shared memory (Pipeline.h)
//
// Element types never mix by themselves: `f32 + f16` and `i32 + i64` do not compile; cast<T>() one of them.  C++
// numbers take the element type of what they meet, scalars become tiles, extents of 1 broadcast.  Ranks must be equal.
//
// Locations.  A binary operator has the line and column of its right operand, a unary one those of its operand, a
// function those of its call.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_VALUE_H
#define KILN_LANGUAGE_VALUE_H

#include "Recorder.h"

namespace kiln::language {

/// Refused by C++, with a message where the compiler takes one.
#ifdef __cpp_deleted_function
#define KILN_REFUSED(message) = delete (message)
#else
#define KILN_REFUSED(message) = delete
#endif
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc++26-extensions"
#endif

template <Element T> class Scalar;
template <typename T> class Tile;
template <Element T> class Pointer;
template <Element T> class View;
template <Element T, Name name> class Pipeline;

namespace detail {

/// In the place of an element type: of a pipeline's state, which has none.
struct Flow {};

/// C++ numbers that may stand for an element of T: no fraction for integers, only bool for a mask.
template <typename C, typename T>
concept ConstantFor = Element<T> && std::is_arithmetic_v<C> &&
                      (std::same_as<T, i1>     ? std::same_as<C, bool>
                       : isFloat(elementOf<T>) ? !std::same_as<C, bool>
                                               : std::integral<C> && !std::same_as<C, bool>);

/// A value's C++ type without an argument's name: Arg<f32, "x"> is a Scalar<f32>.
template <Element T> Scalar<T> plain(const Scalar<T> *);
template <typename T> Tile<T> plain(const Tile<T> *);
template <Element T> Pointer<T> plain(const Pointer<T> *);
template <Element T, Name name> Pipeline<T, name> plain(const Pipeline<T, name> *);
template <typename V> using Plain = decltype(plain(static_cast<const V *>(nullptr)));

template <typename V> struct Traits {
  static constexpr bool isValue = false;
};
template <Element T> struct Traits<Scalar<T>> {
  using Tag = T;
  static constexpr bool isValue = true, isTile = false, isPointer = false;
};
template <Element T> struct Traits<Tile<T>> {
  using Tag = T;
  static constexpr bool isValue = true, isTile = true, isPointer = false;
};
template <Element T> struct Traits<Pointer<T>> {
  using Tag = T;
  static constexpr bool isValue = true, isTile = false, isPointer = true;
};
template <Element T> struct Traits<Tile<Pointer<T>>> {
  using Tag = T;
  static constexpr bool isValue = true, isTile = true, isPointer = true;
};

template <Element T, Name name> struct Traits<Pipeline<T, name>> {
  using Tag = Flow;
  static constexpr bool isValue = true, isTile = false, isPointer = false;
};

/// An operand of V's element type that remembers where it was written: the default argument of its implicit
/// constructors is evaluated where the conversion is.
template <typename V> class At;

template <Element T> class At<Scalar<T>> : public Operand {
public:
  At(const Scalar<T> &v, Location loc = Location::current()) : Operand(of(v.handle(), elementOf<T>, loc)) {}
  template <ConstantFor<T> C> At(C c, Location loc = Location::current()) : Operand(number(c, elementOf<T>, loc)) {}
};

template <Element T> class At<Tile<T>> : public Operand {
public:
  At(const Tile<T> &v, Location loc = Location::current()) : Operand(of(v.handle(), elementOf<T>, loc)) {}
  At(const Scalar<T> &v, Location loc = Location::current()) : Operand(of(v.handle(), elementOf<T>, loc)) {}
  template <ConstantFor<T> C> At(C c, Location loc = Location::current()) : Operand(number(c, elementOf<T>, loc)) {}
};

/// i32 or i64, or a C++ integer: what pointers advance by, extents, strides and coordinates.
class Index : public Operand {
public:
  Index(const Scalar<i32> &v, Location loc = Location::current());
  Index(const Scalar<i64> &v, Location loc = Location::current());
  template <std::integral C>
    requires(!std::same_as<C, bool>)
  Index(C c, Location loc = Location::current()) : Operand(number(c, DType::I32, loc)) {}
};
class TileIndex : public Operand {
public:
  TileIndex(const Tile<i32> &v, Location loc = Location::current());
  TileIndex(const Tile<i64> &v, Location loc = Location::current());
};

template <typename T>
concept Comparable = NumberElement<T> || std::same_as<T, i1>;

/// The operators of Scalar<T> and Tile<T>, found through their argument's base class.  V: the value's type, M: that of
/// a comparison.
template <typename V, typename M, typename T> class Operators {
public:
  explicit operator bool() const KILN_REFUSED(
      "C++ decides while the kernel is recorded, and this value is known when it runs: when(condition, ..), "
      "select(condition, a, b), loop and whileLoop decide then");
  template <typename I>
  void operator[](const I &) const
      KILN_REFUSED("a recorded value has no elements: gather(x, indices, along(d)) takes some of a tile, "
                   "sum(select(range(0, n) == i, x, 0)) one, load(p + i) one of memory");

private:
#define KILN_ARITHMETIC(symbol, kind, concept_)                                                                        \
  friend V operator symbol(At<V> a, At<V> b)                                                                           \
    requires concept_<T>                                                                                               \
  {                                                                                                                    \
    return V(arithmetic(Arith::kind, elementOf<T>, a, b, Grade::OfScope, b.location));                                 \
  }                                                                                                                    \
  friend V &operator symbol## = (V & a, At<V> b)                                                                       \
    requires concept_<T>                                                                                               \
  {                                                                                                                    \
    return a = V(arithmetic(Arith::kind, elementOf<T>, At<V>(a, b.location), b, Grade::OfScope, b.location));          \
  }
  KILN_ARITHMETIC(+, Add, NumberElement)
  KILN_ARITHMETIC(-, Sub, NumberElement)
  KILN_ARITHMETIC(*, Mul, NumberElement)
  KILN_ARITHMETIC(/, Div, NumberElement)
  KILN_ARITHMETIC(%, Rem, IntegerElement)
  KILN_ARITHMETIC(&, And, BitsElement)
  KILN_ARITHMETIC(|, Or, BitsElement)
  KILN_ARITHMETIC(^, Xor, BitsElement)
  KILN_ARITHMETIC(<<, Shl, IntegerElement)
  KILN_ARITHMETIC(>>, Shr, IntegerElement)
#undef KILN_ARITHMETIC

#define KILN_COMPARISON(symbol, kind, concept_)                                                                        \
  friend M operator symbol(At<V> a, At<V> b)                                                                           \
    requires concept_<T>                                                                                               \
  {                                                                                                                    \
    return M(compare(Compare::kind, elementOf<T>, a, b, b.location));                                                  \
  }
  KILN_COMPARISON(<, Lt, NumberElement)
  KILN_COMPARISON(<=, Le, NumberElement)
  KILN_COMPARISON(>, Gt, NumberElement)
  KILN_COMPARISON(>=, Ge, NumberElement)
  KILN_COMPARISON(==, Eq, Comparable)
  KILN_COMPARISON(!=, Ne, Comparable)
#undef KILN_COMPARISON

  friend V operator-(At<V> a)
    requires NumberElement<T>
  {
    return V(negate(elementOf<T>, a, a.location));
  }
  friend V operator~(At<V> a)
    requires BitsElement<T>
  {
    return V(invert(elementOf<T>, a, a.location));
  }
};

} // namespace detail

template <Element T> class Scalar : public detail::Operators<Scalar<T>, Scalar<i1>, T> {
public:
  using Tag = T;
  /// Names nothing; to be assigned before its use.
  Scalar() = default;
  explicit Scalar(detail::Handle h) : value(h) {}
  detail::Handle handle() const { return value; }

private:
  detail::Handle value;
};

template <Element T> class Tile<T> : public detail::Operators<Tile<T>, Tile<i1>, T> {
public:
  using Tag = T;
  Tile() = default;
  explicit Tile(detail::Handle h) : value(h) {}
  detail::Handle handle() const { return value; }
  Shape shape() const { return detail::shapeOf(value); }
  unsigned rank() const { return shape().rank(); }
  std::int64_t extent(unsigned dim) const { return shape()[dim]; }

private:
  detail::Handle value;
};

/// pointer + offset counts elements.  Offsets are i32 or i64, scalars or tiles.
template <Element T> class Pointer {
public:
  using Tag = T;
  Pointer() = default;
  explicit Pointer(detail::Handle h) : value(h) {}
  detail::Handle handle() const { return value; }

  template <typename I>
  void operator[](const I &) const KILN_REFUSED("memory is read by load(p + i) and written by store(p + i, value)");
  friend Pointer operator+(const Pointer &p, detail::Index offset) { return Pointer(p.moved(offset, false)); }
  friend Pointer operator-(const Pointer &p, detail::Index offset) { return Pointer(p.moved(offset, true)); }
  friend Tile<Pointer> operator+(const Pointer &p, detail::TileIndex offset) {
    return Tile<Pointer>(p.moved(offset, false));
  }
  friend Tile<Pointer> operator-(const Pointer &p, detail::TileIndex offset) {
    return Tile<Pointer>(p.moved(offset, true));
  }

private:
  detail::Handle moved(const detail::Operand &offset, bool back) const {
    return detail::addPointer(detail::Operand::pointer(value, elementOf<T>), offset, back, offset.location);
  }
  detail::Handle value;
};

template <Element T> class Tile<Pointer<T>> {
public:
  using Tag = T;
  Tile() = default;
  explicit Tile(detail::Handle h) : value(h) {}
  detail::Handle handle() const { return value; }
  Shape shape() const { return detail::shapeOf(value); }
  unsigned rank() const { return shape().rank(); }
  std::int64_t extent(unsigned dim) const { return shape()[dim]; }

  friend Tile operator+(const Tile &p, detail::Index offset) { return Tile(p.moved(offset, false)); }
  friend Tile operator-(const Tile &p, detail::Index offset) { return Tile(p.moved(offset, true)); }
  friend Tile operator+(const Tile &p, detail::TileIndex offset) { return Tile(p.moved(offset, false)); }
  friend Tile operator-(const Tile &p, detail::TileIndex offset) { return Tile(p.moved(offset, true)); }

private:
  detail::Handle moved(const detail::Operand &offset, bool back) const {
    return detail::addPointer(detail::Operand::pointer(value, elementOf<T>), offset, back, offset.location);
  }
  detail::Handle value;
};

namespace detail {

inline Index::Index(const Scalar<i32> &v, Location loc) : Operand(of(v.handle(), DType::I32, loc)) {}
inline Index::Index(const Scalar<i64> &v, Location loc) : Operand(of(v.handle(), DType::I64, loc)) {}
inline TileIndex::TileIndex(const Tile<i32> &v, Location loc) : Operand(of(v.handle(), DType::I32, loc)) {}
inline TileIndex::TileIndex(const Tile<i64> &v, Location loc) : Operand(of(v.handle(), DType::I64, loc)) {}

/// Any value, as an operand.
template <typename V> Operand operandOf(const V &v, Location loc) {
  using Known = Traits<Plain<V>>;
  if constexpr (std::same_as<typename Known::Tag, Flow>) {
    return Operand::pipeline(v.handle(), loc);
  } else {
    constexpr DType e = elementOf<typename Known::Tag>;
    return Known::isPointer ? Operand::pointer(v.handle(), e, loc) : Operand::of(v.handle(), e, loc);
  }
}

/// A recorded value: scalar, tile, pointer, tile of pointers, pipeline; an argument too.
template <typename V>
concept Value = requires { typename Plain<V>; };
/// A scalar or tile of numbers or masks.
template <typename V>
concept Numeric = Value<V> && !Traits<Plain<V>>::isPointer && !std::same_as<typename Traits<Plain<V>>::Tag, Flow>;

template <typename V> struct TagOf {
  using Type = void;
};
template <Value V> struct TagOf<V> {
  using Type = typename Traits<Plain<V>>::Tag;
};
template <typename V> constexpr bool isTile() {
  if constexpr (Value<V>)
    return Traits<Plain<V>>::isTile;
  else
    return false;
}

/// The element type of two operands, one of which may be a C++ number; void if they do not go together.
template <typename A, typename B> constexpr auto commonTag() {
  if constexpr (Numeric<A> && Numeric<B>) {
    if constexpr (std::same_as<typename TagOf<A>::Type, typename TagOf<B>::Type>)
      return typename TagOf<A>::Type{};
  } else if constexpr (Numeric<A>) {
    if constexpr (ConstantFor<B, typename TagOf<A>::Type>)
      return typename TagOf<A>::Type{};
  } else if constexpr (Numeric<B>) {
    if constexpr (ConstantFor<A, typename TagOf<B>::Type>)
      return typename TagOf<B>::Type{};
  }
}
template <typename A, typename B> using CommonTag = decltype(commonTag<A, B>());

/// Two operands that meet: of one element type, at least one of them a recorded value.
template <typename A, typename B>
concept Meets = Element<CommonTag<A, B>>;
/// What they make: a tile if one of them is, else a scalar.
template <typename A, typename B>
using Met = std::conditional_t<isTile<A>() || isTile<B>(), Tile<CommonTag<A, B>>, Scalar<CommonTag<A, B>>>;

} // namespace detail

/// The other elements of a mask.  Its location is that of the mask: a parameter that remembers where it was written
/// would be no better match than the bool that C++ makes of a mask, and refuses.
template <typename V>
  requires std::same_as<typename detail::TagOf<V>::Type, i1>
detail::Plain<V> operator!(const V &mask) {
  const Location loc = detail::whereMade(mask.handle());
  return detail::Plain<V>(detail::invert(DType::I1, detail::operandOf(mask, loc), loc));
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

} // namespace kiln::language

#include "Mistakes.h"

#endif // KILN_LANGUAGE_VALUE_H
