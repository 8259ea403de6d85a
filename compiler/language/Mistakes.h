//===- Mistakes.h - Operators that say what to write instead ------------------===//
//
// Recorded values do not mix element types, and have no &&, || and [].  These operators are deleted, with a message
// where the compiler shows one (clang 19, GCC 15 and later).  `if (x)` is refused by a deleted conversion of the
// values.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_MISTAKES_H
#define KILN_LANGUAGE_MISTAKES_H

#include "Value.h"

namespace kiln::language {

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc++26-extensions"
#endif

namespace detail {
/// Two recorded numbers of different element types.
template <typename A, typename B>
concept Mixed = Numeric<A> && Numeric<B> && !std::same_as<typename TagOf<A>::Type, typename TagOf<B>::Type>;
/// A recorded number and a C++ one that it does not take.
template <typename A, typename B>
concept OtherNumber = (Numeric<A> && std::is_arithmetic_v<B> && !ConstantFor<B, typename TagOf<A>::Type>) ||
                      (Numeric<B> && std::is_arithmetic_v<A> && !ConstantFor<A, typename TagOf<B>::Type>);
/// Operands of one element type: that type, else void.
template <typename A, typename B>
using SharedTag = std::conditional_t<Meets<A, B> && (Numeric<A> || Numeric<B>), CommonTag<A, B>, void>;
/// Masks and 8-bit floats.
template <typename T>
concept NoNumber = Element<T> && !NumberElement<T>;
template <typename T>
concept NoInteger = Element<T> && !IntegerElement<T>;
template <typename T>
concept NoBits = Element<T> && !BitsElement<T>;
} // namespace detail

#define KILN_MIXED(symbol)                                                                                             \
  template <typename A, typename B>                                                                                    \
    requires detail::Mixed<A, B>                                                                                       \
  void operator symbol(const A &, const B &)                                                                           \
      KILN_REFUSED("element types never mix by themselves: cast<T>(x) gives one of the two the other's type");         \
  template <typename A, typename B>                                                                                    \
    requires detail::OtherNumber<A, B>                                                                                 \
  void operator symbol(const A &, const B &)                                                                           \
      KILN_REFUSED("a C++ number takes the element type of what it meets, and this one is no such number (integers "   \
                   "take no fraction, floats no bool, masks only bool): cast<T>(x) gives x another type");
#define KILN_MISUSED(symbol, concept_, message)                                                                        \
  KILN_MIXED(symbol)                                                                                                   \
  template <typename A, typename B>                                                                                    \
    requires detail::concept_<detail::SharedTag<A, B>>                                                                 \
  void operator symbol(const A &, const B &) KILN_REFUSED(message);

#define KILN_NUMBERS "masks and 8-bit floats do no arithmetic: cast<i32>(mask), cast<f32>(x), or & | ^ of masks"
KILN_MISUSED(+, NoNumber, KILN_NUMBERS)
KILN_MISUSED(-, NoNumber, KILN_NUMBERS)
KILN_MISUSED(*, NoNumber, KILN_NUMBERS)
KILN_MISUSED(/, NoNumber, KILN_NUMBERS)
KILN_MISUSED(+=, NoNumber, KILN_NUMBERS)
KILN_MISUSED(-=, NoNumber, KILN_NUMBERS)
KILN_MISUSED(*=, NoNumber, KILN_NUMBERS)
KILN_MISUSED(/=, NoNumber, KILN_NUMBERS)
#undef KILN_NUMBERS
#define KILN_INTEGERS "% << and >> are for integers: x - floor(x / y) * y is a remainder of floats, x * 0.5 a half"
KILN_MISUSED(%, NoInteger, KILN_INTEGERS)
KILN_MISUSED(<<, NoInteger, KILN_INTEGERS)
KILN_MISUSED(>>, NoInteger, KILN_INTEGERS)
#undef KILN_INTEGERS
#define KILN_BITS "& | ^ are for integers and masks: bitcast<i32>(x) has the bits of a float"
KILN_MISUSED(&, NoBits, KILN_BITS)
KILN_MISUSED(|, NoBits, KILN_BITS)
KILN_MISUSED(^, NoBits, KILN_BITS)
#undef KILN_BITS
KILN_MIXED(==)
KILN_MIXED(!=)
KILN_MIXED(<)
KILN_MIXED(<=)
KILN_MIXED(>)
KILN_MIXED(>=)
#undef KILN_MISUSED
#undef KILN_MIXED

template <typename A, typename B>
  requires(detail::Value<A> || detail::Value<B>)
void operator&&(const A &, const B &)
    KILN_REFUSED("conditions of a kernel are joined by &: (i < n) & (j < m); both sides are computed");
template <typename A, typename B>
  requires(detail::Value<A> || detail::Value<B>)
void operator||(const A &, const B &)
    KILN_REFUSED("conditions of a kernel are joined by |: (i < n) | (j < m); both sides are computed");

#ifdef __clang__
#pragma clang diagnostic pop
#endif

} // namespace kiln::language

#endif // KILN_LANGUAGE_MISTAKES_H
