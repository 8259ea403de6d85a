//===- Dual.h - Tiles that carry their derivative -------------------------------===//
//
// Forward-mode differentiation while a kernel is recorded.  A Dual is a tile of values and, element by element, of
// their derivatives by one variable; operators and functions of tiles take it too and record both.  A function that is
// generic over its number's type is so differentiated by calling it:
//
//   const auto capped = [](const auto &x) { return 15 * tanh(x / 15); };
//   Tile<f32> y = capped(x), slope = slopeOf(capped(variable(x)));
//
// Invariant: what does not depend on the variable has no slope, and nothing is recorded for it.  Where a function has a
// corner (abs, max, select) the slope is that of the side that gives the value; of equal numbers max and min take the
// first, abs of 0 has slope 0; floor, ceil, trunc and round have slope 0 everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_DUAL_H
#define KILN_LANGUAGE_DUAL_H

#include "Kernel.h"
#include "Math.h"
#include "Shapes.h"

#include <optional>

namespace kiln::language {

template <FloatElement T> class Dual;

namespace detail {

/// A Dual, or a tile, scalar or C++ number, which are constants; and where it was written.
template <FloatElement T> struct DualOperand {
  Operand value;
  std::optional<Tile<T>> slope = {};
  Location location;

  DualOperand(const Dual<T> &x, Location loc = Location::current());
  DualOperand(const Tile<T> &x, Location loc = Location::current()) : value(operandOf(x, loc)), location(loc) {}
  DualOperand(const Scalar<T> &x, Location loc = Location::current()) : value(operandOf(x, loc)), location(loc) {}
  template <ConstantFor<T> C>
  DualOperand(C c, Location loc = Location::current()) : value(Operand::number(c, elementOf<T>, loc)), location(loc) {}
};

template <FloatElement T> Tile<T> computed(Arith kind, const Operand &a, const Operand &b, Grade grade, Location loc) {
  return Tile<T>(arithmetic(kind, elementOf<T>, a, b, grade, loc));
}

/// a + b or a - b of slopes that may be none.
template <FloatElement T>
std::optional<Tile<T>> summed(Arith kind, const std::optional<Tile<T>> &a, const std::optional<Tile<T>> &b,
                              Location loc) {
  if (!b)
    return a;
  if (a)
    return computed<T>(kind, operandOf(*a, loc), operandOf(*b, loc), Grade::Precise, loc);
  return kind == Arith::Sub ? Tile<T>(negate(elementOf<T>, operandOf(*b, loc), loc)) : *b;
}
template <FloatElement T>
std::optional<Tile<T>> scaled(const std::optional<Tile<T>> &slope, const Operand &factor, Location loc) {
  if (!slope)
    return {};
  return computed<T>(Arith::Mul, operandOf(*slope, loc), factor, Grade::Precise, loc);
}
template <FloatElement T>
std::optional<Tile<T>> scaled(const std::optional<Tile<T>> &slope, const Tile<T> &factor, Location loc) {
  return scaled(slope, operandOf(factor, loc), loc);
}

} // namespace detail

template <FloatElement T> class Dual {
  using At = detail::DualOperand<T>;
  using Arith = detail::Arith;

public:
  Tile<T> value;
  std::optional<Tile<T>> slope; ///< none: 0

  Dual(const Tile<T> &value, const std::optional<Tile<T>> &slope = {}) : value(value), slope(slope) {}
  Shape shape() const { return value.shape(); }

  friend Dual operator+(const At &a, const At &b) {
    return {detail::computed<T>(Arith::Add, a.value, b.value, Grade::OfScope, b.location),
            detail::summed(Arith::Add, a.slope, b.slope, b.location)};
  }
  friend Dual operator-(const At &a, const At &b) {
    return {detail::computed<T>(Arith::Sub, a.value, b.value, Grade::OfScope, b.location),
            detail::summed(Arith::Sub, a.slope, b.slope, b.location)};
  }
  friend Dual operator*(const At &a, const At &b) {
    return {detail::computed<T>(Arith::Mul, a.value, b.value, Grade::OfScope, b.location),
            detail::summed(Arith::Add, detail::scaled(a.slope, b.value, b.location),
                           detail::scaled(b.slope, a.value, b.location), b.location)};
  }
  friend Dual operator/(const At &a, const At &b) { return quotient(a, b, Grade::OfScope, b.location); }
  friend Dual operator-(const Dual &a) { return {-a.value, a.slope ? std::optional(-*a.slope) : std::nullopt}; }
  Dual &operator+=(const At &b) { return *this = *this + b; }
  Dual &operator-=(const At &b) { return *this = *this - b; }
  Dual &operator*=(const At &b) { return *this = *this * b; }
  Dual &operator/=(const At &b) { return *this = *this / b; }

  /// a / b.
  static Dual quotient(const At &a, const At &b, Grade grade, Location loc) {
    const Tile<T> q = detail::computed<T>(Arith::Div, a.value, b.value, grade, loc);
    auto rest = detail::summed(Arith::Sub, a.slope, detail::scaled(b.slope, q, loc), loc);
    if (rest)
      rest = detail::computed<T>(Arith::Div, detail::operandOf(*rest, loc), b.value, grade, loc);
    return {q, rest};
  }

#define KILN_COMPARISON(symbol, kind)                                                                                  \
  friend Tile<i1> operator symbol(const At &a, const At &b) {                                                          \
    return Tile<i1>(detail::compare(detail::Compare::kind, elementOf<T>, a.value, b.value, b.location));               \
  }
  KILN_COMPARISON(<, Lt)
  KILN_COMPARISON(<=, Le)
  KILN_COMPARISON(>, Gt)
  KILN_COMPARISON(>=, Ge)
  KILN_COMPARISON(==, Eq)
  KILN_COMPARISON(!=, Ne)
#undef KILN_COMPARISON
};

namespace detail {
template <FloatElement T>
DualOperand<T>::DualOperand(const Dual<T> &x, Location loc)
    : value(operandOf(x.value, loc)), slope(x.slope), location(loc) {}

template <typename V> struct DualElement {
  using Type = void;
};
template <FloatElement T> struct DualElement<Dual<T>> {
  using Type = T;
};
template <typename V>
concept IsDual = !std::is_void_v<typename DualElement<V>::Type>;
/// The element type of two operands, one of which is a Dual.
template <typename A, typename B>
using DualOf = std::conditional_t<IsDual<A>, typename DualElement<A>::Type, typename DualElement<B>::Type>;
template <typename A, typename B>
concept MeetAsDuals = (IsDual<A> || IsDual<B>) && std::convertible_to<const A &, DualOperand<DualOf<A, B>>> &&
                      std::convertible_to<const B &, DualOperand<DualOf<A, B>>>;
} // namespace detail

/// What derivatives are by.
template <FloatElement T> Dual<T> variable(const Tile<T> &x, Location loc = Location::current()) {
  return {x, full<T>(x.shape(), 1, loc)};
}
/// The derivative.
template <FloatElement T> Tile<T> slopeOf(const Dual<T> &x, Location loc = Location::current()) {
  return x.slope ? *x.slope : zeros<T>(x.shape(), loc);
}

// Functions of one number: `v` is the value, `x` the argument, the expression the derivative.
#define KILN_DUAL_GRADED(name, derivative)                                                                             \
  template <FloatElement T>                                                                                            \
  Dual<T> name(const Dual<T> &dual, Grade grade = Grade::OfScope, Location loc = Location::current()) {                \
    const LocationScope scope(loc);                                                                                    \
    const detail::GradeScope graded(grade);                                                                            \
    const Tile<T> x = dual.value;                                                                                      \
    const Tile<T> v = name(x, grade, loc);                                                                             \
    return {v, dual.slope ? std::optional(*dual.slope * (derivative)) : std::nullopt};                                 \
  }
KILN_DUAL_GRADED(exp, v)
KILN_DUAL_GRADED(exp2, v * 0.69314718055994531)
KILN_DUAL_GRADED(expm1, v + 1)
KILN_DUAL_GRADED(log, 1 / x)
KILN_DUAL_GRADED(log2, 1.4426950408889634 / x)
KILN_DUAL_GRADED(log10, 0.43429448190325183 / x)
KILN_DUAL_GRADED(log1p, 1 / (x + 1))
KILN_DUAL_GRADED(sin, cos(x))
KILN_DUAL_GRADED(cos, -sin(x))
KILN_DUAL_GRADED(tanh, 1 - v * v)
KILN_DUAL_GRADED(erf, 1.1283791670955126 * exp(-(x * x)))
KILN_DUAL_GRADED(sqrt, 0.5 / v)
KILN_DUAL_GRADED(rsqrt, -0.5 * v / x)
KILN_DUAL_GRADED(cbrt, 1 / (3 * v * v))
#undef KILN_DUAL_GRADED

template <FloatElement T> Dual<T> abs(const Dual<T> &dual, Location loc = Location::current()) {
  const LocationScope scope(loc);
  const Tile<T> x = dual.value;
  const Tile<T> v = abs(x, loc);
  if (!dual.slope)
    return {v};
  return {v, select(x > 0, *dual.slope, select(x < 0, -*dual.slope, 0))};
}
#define KILN_DUAL_STEP(name)                                                                                           \
  template <FloatElement T> Dual<T> name(const Dual<T> &dual, Location loc = Location::current()) {                    \
    return {name(dual.value, loc)};                                                                                    \
  }
KILN_DUAL_STEP(floor)
KILN_DUAL_STEP(ceil)
KILN_DUAL_STEP(trunc)
KILN_DUAL_STEP(round)
#undef KILN_DUAL_STEP

template <FloatElement T> Tile<i1> isNan(const Dual<T> &x, Location loc = Location::current()) {
  return isNan(x.value, loc);
}

/// a where the condition holds, b elsewhere.
template <typename A, typename B>
  requires detail::MeetAsDuals<A, B>
Dual<detail::DualOf<A, B>> select(const Tile<i1> &condition, const A &a, const B &b,
                                  Location loc = Location::current()) {
  using T = detail::DualOf<A, B>;
  const detail::DualOperand<T> x(a, loc), y(b, loc);
  const detail::Operand mask = detail::operandOf(condition, loc), zero = detail::Operand::number(0, elementOf<T>, loc);
  const auto part = [&](const detail::DualOperand<T> &from) {
    return from.slope ? detail::operandOf(*from.slope, loc) : zero;
  };
  std::optional<Tile<T>> slope;
  if (x.slope || y.slope)
    slope = Tile<T>(detail::select(mask, part(x), part(y), loc));
  return {Tile<T>(detail::select(mask, x.value, y.value, loc)), slope};
}
template <typename A, typename B>
  requires detail::MeetAsDuals<A, B>
Dual<detail::DualOf<A, B>> where(const Tile<i1> &condition, const A &a, const B &b,
                                 Location loc = Location::current()) {
  return select(condition, a, b, loc);
}

#define KILN_DUAL_CHOICE(name, kind)                                                                                   \
  template <typename A, typename B>                                                                                    \
    requires detail::MeetAsDuals<A, B>                                                                                 \
  Dual<detail::DualOf<A, B>> name(const A &a, const B &b, Location loc = Location::current()) {                        \
    using T = detail::DualOf<A, B>;                                                                                    \
    const detail::DualOperand<T> x(a, loc), y(b, loc);                                                                 \
    const auto v = detail::computed<T>(detail::Arith::kind, x.value, y.value, Grade::Precise, loc);                    \
    const Tile<i1> first(detail::compare(detail::Compare::Eq, elementOf<T>, detail::operandOf(v, loc), x.value, loc)); \
    return {v, select(first, a, b, loc).slope};                                                                        \
  }
KILN_DUAL_CHOICE(max, Max)
KILN_DUAL_CHOICE(min, Min)
KILN_DUAL_CHOICE(maximum, Maximum)
KILN_DUAL_CHOICE(minimum, Minimum)
#undef KILN_DUAL_CHOICE

template <typename A, typename B>
  requires detail::MeetAsDuals<A, B>
Dual<detail::DualOf<A, B>> div(const A &a, const B &b, Grade grade = Grade::OfScope,
                               Location loc = Location::current()) {
  using T = detail::DualOf<A, B>;
  return Dual<T>::quotient(detail::DualOperand<T>(a, loc), detail::DualOperand<T>(b, loc), grade, loc);
}
/// a raised to b.
template <typename A, typename B>
  requires detail::MeetAsDuals<A, B>
Dual<detail::DualOf<A, B>> pow(const A &a, const B &b, Grade grade = Grade::OfScope,
                               Location loc = Location::current()) {
  using T = detail::DualOf<A, B>;
  constexpr DType e = elementOf<T>;
  const detail::DualOperand<T> x(a, loc), y(b, loc);
  const Tile<T> v(detail::power(e, x.value, y.value, grade, loc));
  std::optional<Tile<T>> ofBase, ofExponent;
  if (x.slope) { // b a^(b - 1), also where a is 0
    const Tile<T> one = full<T>(v.shape(), 1, loc);
    const auto less = detail::computed<T>(detail::Arith::Sub, y.value, detail::operandOf(one, loc), grade, loc);
    const Tile<T> power(detail::power(e, x.value, detail::operandOf(less, loc), grade, loc));
    ofBase = detail::scaled(detail::scaled(x.slope, y.value, loc), power, loc);
  }
  if (y.slope) {
    const Tile<T> base =
        detail::computed<T>(detail::Arith::Add, x.value, detail::operandOf(zeros<T>(v.shape(), loc), loc), grade, loc);
    ofExponent = detail::scaled(y.slope, v * log(base, grade, loc), loc);
  }
  return {v, detail::summed(detail::Arith::Add, ofBase, ofExponent, loc)};
}
/// a * b + c; the value with one rounding.
template <typename A, typename B, typename C>
  requires detail::MeetAsDuals<A, B> || detail::MeetAsDuals<A, C> || detail::MeetAsDuals<B, C>
auto fma(const A &a, const B &b, const C &c, Location loc = Location::current()) {
  using T = std::conditional_t<detail::IsDual<A>, typename detail::DualElement<A>::Type, detail::DualOf<B, C>>;
  const detail::DualOperand<T> x(a, loc), y(b, loc), z(c, loc);
  const auto product = detail::summed(detail::Arith::Add, detail::scaled(x.slope, y.value, loc),
                                      detail::scaled(y.slope, x.value, loc), loc);
  return Dual<T>{Tile<T>(detail::fusedMultiplyAdd(elementOf<T>, x.value, y.value, z.value, loc)),
                 detail::summed(detail::Arith::Add, product, z.slope, loc)};
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_DUAL_H
