//===- Math.h - Functions of scalars and tiles, and conversions -------------===//
//
// Elementwise functions: the same names for Scalar<T> and Tile<T>.  `approx` as the last argument asks for the
// hardware's approximation (`exp(x, approx)`), `precise` for CUDA's documented bounds; without either, what the
// kernel's options say (precise unless they say otherwise).
//
// min and max ignore NaN (as C's fmin, fmax and Triton's); minimum and maximum propagate it (as NumPy's).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_MATH_H
#define KILN_LANGUAGE_MATH_H

#include "Value.h"

#include <utility>

namespace kiln::language {

#define KILN_UNARY(name, op, concept_)                                                                                 \
  template <concept_ T> Scalar<T> name(const Scalar<T> &x, Location loc = Location::current()) {                       \
    return Scalar<T>(detail::unary(Op::op, #name, elementOf<T>, detail::operandOf(x, loc), Grade::Precise, loc));      \
  }                                                                                                                    \
  template <concept_ T> Tile<T> name(const Tile<T> &x, Location loc = Location::current()) {                           \
    return Tile<T>(detail::unary(Op::op, #name, elementOf<T>, detail::operandOf(x, loc), Grade::Precise, loc));        \
  }
#define KILN_GRADED(name, op)                                                                                          \
  template <FloatElement T>                                                                                            \
  Scalar<T> name(const Scalar<T> &x, Grade grade = Grade::OfScope, Location loc = Location::current()) {               \
    return Scalar<T>(detail::unary(Op::op, #name, elementOf<T>, detail::operandOf(x, loc), grade, loc));               \
  }                                                                                                                    \
  template <FloatElement T>                                                                                            \
  Tile<T> name(const Tile<T> &x, Grade grade = Grade::OfScope, Location loc = Location::current()) {                   \
    return Tile<T>(detail::unary(Op::op, #name, elementOf<T>, detail::operandOf(x, loc), grade, loc));                 \
  }

KILN_GRADED(exp, Exp)
KILN_GRADED(exp2, Exp2)
KILN_GRADED(expm1, ExpM1)
KILN_GRADED(log, Log)
KILN_GRADED(log2, Log2)
KILN_GRADED(log10, Log10)
KILN_GRADED(log1p, Log1p)
KILN_GRADED(sin, Sin)
KILN_GRADED(cos, Cos)
KILN_GRADED(tanh, Tanh)
KILN_GRADED(erf, Erf)
KILN_GRADED(sqrt, Sqrt)
KILN_GRADED(rsqrt, Rsqrt)
KILN_GRADED(cbrt, Cbrt)
KILN_UNARY(floor, Floor, FloatElement)
KILN_UNARY(ceil, Ceil, FloatElement)
KILN_UNARY(trunc, Trunc, FloatElement)
KILN_UNARY(round, RoundEven, FloatElement) ///< to the nearest integer, halves to even
KILN_UNARY(abs, AbsF, FloatElement)
#undef KILN_UNARY
#undef KILN_GRADED

/// |x| of signed integers; that of the smallest one is itself.
template <IntegerElement T>
  requires(!isUnsigned(elementOf<T>))
Scalar<T> abs(const Scalar<T> &x, Location loc = Location::current()) {
  return Scalar<T>(detail::unary(Op::AbsI, "abs", elementOf<T>, detail::operandOf(x, loc), Grade::Precise, loc));
}
template <IntegerElement T>
  requires(!isUnsigned(elementOf<T>))
Tile<T> abs(const Tile<T> &x, Location loc = Location::current()) {
  return Tile<T>(detail::unary(Op::AbsI, "abs", elementOf<T>, detail::operandOf(x, loc), Grade::Precise, loc));
}

template <FloatElement T> Scalar<i1> isNan(const Scalar<T> &x, Location loc = Location::current()) {
  const detail::Operand a = detail::operandOf(x, loc);
  return Scalar<i1>(detail::compare(detail::Compare::Unordered, elementOf<T>, a, a, loc));
}
template <FloatElement T> Tile<i1> isNan(const Tile<T> &x, Location loc = Location::current()) {
  const detail::Operand a = detail::operandOf(x, loc);
  return Tile<i1>(detail::compare(detail::Compare::Unordered, elementOf<T>, a, a, loc));
}

namespace detail {
template <typename A, typename B>
concept MeetNumbers = Meets<A, B> && NumberElement<CommonTag<A, B>>;
template <typename A, typename B>
concept MeetFloats = Meets<A, B> && FloatElement<CommonTag<A, B>>;

/// An operand of the element type T out of a value or a C++ number.
template <Element T, typename A> Operand meeting(const A &a, Location loc) {
  if constexpr (Value<A>)
    return operandOf(a, loc);
  else
    return Operand::number(a, elementOf<T>, loc);
}
template <typename A, typename B> Met<A, B> binary(Arith kind, const A &a, const B &b, Grade grade, Location loc) {
  using T = CommonTag<A, B>;
  return Met<A, B>(arithmetic(kind, elementOf<T>, meeting<T>(a, loc), meeting<T>(b, loc), grade, loc));
}
} // namespace detail

template <typename A, typename B>
  requires detail::MeetNumbers<A, B>
detail::Met<A, B> max(const A &a, const B &b, Location loc = Location::current()) {
  return detail::binary(detail::Arith::Max, a, b, Grade::Precise, loc);
}
template <typename A, typename B>
  requires detail::MeetNumbers<A, B>
detail::Met<A, B> min(const A &a, const B &b, Location loc = Location::current()) {
  return detail::binary(detail::Arith::Min, a, b, Grade::Precise, loc);
}
template <typename A, typename B>
  requires detail::MeetFloats<A, B>
detail::Met<A, B> maximum(const A &a, const B &b, Location loc = Location::current()) {
  return detail::binary(detail::Arith::Maximum, a, b, Grade::Precise, loc);
}
template <typename A, typename B>
  requires detail::MeetFloats<A, B>
detail::Met<A, B> minimum(const A &a, const B &b, Location loc = Location::current()) {
  return detail::binary(detail::Arith::Minimum, a, b, Grade::Precise, loc);
}
/// a / b, as the operator, with a grade: `div(a, b, approx)`.
template <typename A, typename B>
  requires detail::MeetFloats<A, B>
detail::Met<A, B> div(const A &a, const B &b, Grade grade = Grade::OfScope, Location loc = Location::current()) {
  return detail::binary(detail::Arith::Div, a, b, grade, loc);
}
/// a raised to b.
template <typename A, typename B>
  requires detail::MeetFloats<A, B>
detail::Met<A, B> pow(const A &a, const B &b, Grade grade = Grade::OfScope, Location loc = Location::current()) {
  using T = detail::CommonTag<A, B>;
  return detail::Met<A, B>(
      detail::power(elementOf<T>, detail::meeting<T>(a, loc), detail::meeting<T>(b, loc), grade, loc));
}
/// |a| with the sign of b.
template <typename A, typename B>
  requires detail::MeetFloats<A, B>
detail::Met<A, B> copysign(const A &a, const B &b, Location loc = Location::current()) {
  using T = detail::CommonTag<A, B>;
  return detail::Met<A, B>(detail::copySign(elementOf<T>, detail::meeting<T>(a, loc), detail::meeting<T>(b, loc), loc));
}
/// How many blocks of b cover a: (a + b - 1) / b, for a >= 0 and b > 0.
template <typename A, typename B>
  requires detail::Meets<A, B> && IntegerElement<detail::CommonTag<A, B>>
detail::Met<A, B> ceilDiv(const A &a, const B &b, Location loc = Location::current()) {
  using namespace detail;
  const auto one = [&](const auto &x, Arith kind) { return binary(kind, x, 1, Grade::Precise, loc); };
  if constexpr (Value<A>) {
    if constexpr (Value<B>)
      return binary(Arith::Div, binary(Arith::Add, a, one(b, Arith::Sub), Grade::Precise, loc), b, Grade::Precise, loc);
    else
      return binary(Arith::Div, binary(Arith::Add, a, b - 1, Grade::Precise, loc), b, Grade::Precise, loc);
  } else {
    return binary(Arith::Div, one(binary(Arith::Add, b, a, Grade::Precise, loc), Arith::Sub), b, Grade::Precise, loc);
  }
}

/// a * b + c with one rounding.
template <typename A, typename B, typename C>
  requires detail::Numeric<A> && detail::MeetFloats<A, B> && detail::MeetFloats<A, C>
auto fma(const A &a, const B &b, const C &c, Location loc = Location::current()) {
  using T = detail::CommonTag<A, B>;
  return detail::Met<detail::Met<A, B>, C>(detail::fusedMultiplyAdd(
      elementOf<T>, detail::meeting<T>(a, loc), detail::meeting<T>(b, loc), detail::meeting<T>(c, loc), loc));
}

/// a where the condition holds, b elsewhere.  One of the two may be a C++ number.
template <typename M, typename A, typename B>
  requires detail::Numeric<M> && std::same_as<typename detail::TagOf<M>::Type, i1> && detail::Meets<A, B>
auto select(const M &condition, const A &a, const B &b, Location loc = Location::current()) {
  using T = detail::CommonTag<A, B>;
  using R = std::conditional_t<detail::isTile<M>(), Tile<T>, detail::Met<A, B>>;
  return R(
      detail::select(detail::operandOf(condition, loc), detail::meeting<T>(a, loc), detail::meeting<T>(b, loc), loc));
}
/// `select` under the name that NumPy's and Triton's users know.
template <typename M, typename A, typename B>
auto where(const M &condition, const A &a, const B &b, Location loc = Location::current())
  requires requires { select(condition, a, b, loc); }
{
  return select(condition, a, b, loc);
}

/// Another element type, by value.  Float to integer: towards zero, saturating, NaN to 0.  To a mask: not zero.
template <Element T, Element U> Scalar<T> cast(const Scalar<U> &x, Location loc = Location::current()) {
  return Scalar<T>(detail::cast(elementOf<T>, detail::operandOf(x, loc), loc));
}
template <Element T, Element U> Tile<T> cast(const Tile<U> &x, Location loc = Location::current()) {
  return Tile<T>(detail::cast(elementOf<T>, detail::operandOf(x, loc), loc));
}

/// Another element type of the same size, bit by bit.
template <Element T, Element U>
  requires(bitsOf(elementOf<T>) == bitsOf(elementOf<U>))
Scalar<T> bitcast(const Scalar<U> &x, Location loc = Location::current()) {
  return Scalar<T>(detail::bitcast(elementOf<T>, detail::operandOf(x, loc), loc));
}
template <Element T, Element U>
  requires(bitsOf(elementOf<T>) == bitsOf(elementOf<U>))
Tile<T> bitcast(const Tile<U> &x, Location loc = Location::current()) {
  return Tile<T>(detail::bitcast(elementOf<T>, detail::operandOf(x, loc), loc));
}

/// A scalar out of a C++ number: `constant<f32>(0)`.
template <Element T, detail::ConstantFor<T> C> Scalar<T> constant(C c, Location loc = Location::current()) {
  return Scalar<T>(detail::constant(detail::Operand::number(c, elementOf<T>, loc), loc));
}

namespace detail {
class NoContraction {
public:
  NoContraction() : before(setContraction(false)) {}
  ~NoContraction() { setContraction(before); }
  NoContraction(const NoContraction &) = delete;
  NoContraction &operator=(const NoContraction &) = delete;

private:
  bool before;
};
} // namespace detail

/// The float additions, subtractions and multiplications of `body` are rounded one by one: none is fused with another.
/// `auto y = withoutContraction([&] { return a * b + c; });`
template <typename F> auto withoutContraction(F &&body) {
  const detail::NoContraction scope;
  return std::forward<F>(body)();
}

namespace detail {
/// OfScope: nothing changes.
class GradeScope {
public:
  explicit GradeScope(Grade grade) : before(setGrade(grade)) {}
  ~GradeScope() { setGrade(before); }
  GradeScope(const GradeScope &) = delete;
  GradeScope &operator=(const GradeScope &) = delete;

private:
  Grade before;
};
} // namespace detail

/// The divisions, roots and functions of `body` that name no grade have this one: `withGrade(approx, [&] { return
/// exp(x) / y; })`.  The innermost one wins, over KernelOptions::grade too.
template <typename F> auto withGrade(Grade grade, F &&body) {
  const detail::GradeScope scope(grade);
  return std::forward<F>(body)();
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_MATH_H
