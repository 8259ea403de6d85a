// add, sub, mul, fma, mad, div, rcp, sqrt of f64 with .rz .rm .rp: section 1.3 of the emulator specification.
//
// Rare, so lane by lane on exact integers: a residual in f64 would itself underflow near the subnormal numbers.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using U128 = unsigned __int128;
using U256 = unsigned _BitInt(256);

/// mantissa * 2^exponent; `mantissa` has 53 bits unless the value is zero.
struct Parts {
  bool negative;
  int exponent;
  U64 mantissa;
};

inline bool isFinite(double x) {
  return magnitude(x) < __builtin_inf();
}

inline Parts partsOf(double x) {
  const U64 b = bitsOf(x), fraction = b & 0xfffffffffffffull;
  const int e = static_cast<int>(b >> 52 & 0x7ff);
  Parts p{b >> 63 != 0, e ? e - 1075 : -1074, e ? fraction | 1ull << 52 : fraction};
  if (p.mantissa) {
    const int shift = __builtin_clzll(p.mantissa) - 11;
    p.mantissa <<= shift;
    p.exponent -= shift;
  }
  return p;
}

inline int bitLength(U256 m) {
  for (int word = 3; word >= 0; --word)
    if (const U64 w = static_cast<U64>(m >> (word * 64)))
      return word * 64 + 64 - __builtin_clzll(w);
  return 0;
}

/// m * 2^e, plus something smaller than 2^e if `sticky`, rounded.  m != 0.
template <Rounding R> double packed(bool negative, U256 m, int e, bool sticky) {
  int target = e + bitLength(m) - 53;
  if (target < -1074)
    target = -1074;
  const int shift = target - e;
  U64 q;
  if (shift <= 0) {
    q = static_cast<U64>(m << -shift);
  } else if (shift >= 256) {
    q = 0;
    sticky = true;
  } else {
    q = static_cast<U64>(m >> shift);
    sticky |= (m & ((U256(1) << shift) - 1)) != 0;
  }
  const bool away = R != Rounding::Zero && (R == Rounding::Down) == negative;
  if (sticky && away)
    ++q;
  // A mantissa of 53 bits carries 1 into the exponent field, one of 54 bits 2.
  constexpr U64 infinity = 0x7ff0000000000000ull;
  U64 b = target > 971 ? infinity : (U64(target + 1074) << 52) + q;
  if (b >= infinity)
    b = away ? infinity : infinity - 1;
  return doubleOf(U64(negative) << 63 | b);
}

template <Rounding R> double fused(double a, double b, double c) {
  if (!isFinite(a) || !isFinite(b))
    return a * b + c;
  if (!isFinite(c))
    return c;
  const Parts x = partsOf(a), y = partsOf(b), z = partsOf(c);
  const bool negative = x.negative != y.negative;
  const U128 product = U128(x.mantissa) * y.mantissa;
  if (product == 0) {
    if (z.mantissa || negative == z.negative)
      return z.mantissa ? c : doubleOf(U64(negative) << 63);
    return R == Rounding::Down ? -0.0 : 0.0;
  }
  int e = x.exponent + y.exponent;
  if (z.mantissa == 0)
    return packed<R>(negative, product, e, false);
  // Aligned at bit 70 below both; what lies further down only says "inexact".
  U256 p = product, q = z.mantissa;
  bool productTiny = false, addendTiny = false;
  const int distance = z.exponent - e;
  if (distance > 130) {
    productTiny = true;
    e = z.exponent - 70;
    q <<= 70;
  } else if (distance >= 0) {
    q <<= distance;
  } else if (distance >= -70) {
    p <<= -distance;
    e = z.exponent;
  } else {
    addendTiny = true;
    p <<= 70;
    e -= 70;
  }
  const bool subtract = negative != z.negative;
  if (productTiny || addendTiny) {
    const bool sign = productTiny ? z.negative : negative;
    const U256 big = productTiny ? q : p;
    return packed<R>(sign, subtract ? U256(big - 1) : big, e, true);
  }
  if (!subtract)
    return packed<R>(negative, p + q, e, false);
  if (p == q)
    return R == Rounding::Down ? -0.0 : 0.0;
  return p > q ? packed<R>(negative, p - q, e, false) : packed<R>(z.negative, q - p, e, false);
}

template <Rounding R> double quotient(double a, double b) {
  if (!isFinite(a) || !isFinite(b) || a == 0 || b == 0)
    return a / b;
  const Parts x = partsOf(a), y = partsOf(b);
  const U128 n = U128(x.mantissa) << 62;
  const U128 q = n / y.mantissa;
  return packed<R>(x.negative != y.negative, q, x.exponent - y.exponent - 62, q * y.mantissa != n);
}

template <Rounding R> double root(double a) {
  if (!(a > 0) || !isFinite(a))
    return squareRoot(a);
  Parts x = partsOf(a);
  const int odd = x.exponent & 1;
  U128 rest = U128(x.mantissa) << (72 + odd), bit = U128(1) << 126, result = 0;
  while (bit > rest)
    bit >>= 2;
  for (; bit; bit >>= 2) {
    const bool fits = rest >= result + bit;
    rest -= fits ? result + bit : 0;
    result = (result >> 1) + (fits ? bit : 0);
  }
  return packed<R>(false, result, (x.exponent - 72 - odd) / 2, rest != 0);
}

template <typename Fn> Handler binary(const Form &f, Fn) {
  return withDirected(roundingOf(f), []<Rounding R>() {
    return lanes<double, double, double>(
        [](double a, double b) { return canonical(Fn{}.template operator()<R>(a, b)); });
  });
}
Handler buildAdd(const Form &f, std::string &) {
  return binary(f, []<Rounding R>(double a, double b) { return fused<R>(a, 1.0, b); });
}
Handler buildSub(const Form &f, std::string &) {
  return binary(f, []<Rounding R>(double a, double b) { return fused<R>(a, 1.0, -b); });
}
Handler buildMul(const Form &f, std::string &) {
  return binary(f, []<Rounding R>(double a, double b) {
    const double zero = doubleOf((bitsOf(a) ^ bitsOf(b)) & 0x8000000000000000ull); // keeps the sign of a zero product
    return fused<R>(a, b, zero);
  });
}
Handler buildDiv(const Form &f, std::string &) {
  return binary(f, []<Rounding R>(double a, double b) { return quotient<R>(a, b); });
}
Handler buildFma(const Form &f, std::string &) {
  return withDirected(roundingOf(f), []<Rounding R>() {
    return lanes<double, double, double, double>(
        [](double a, double b, double c) { return canonical(fused<R>(a, b, c)); });
  });
}
Handler buildRcp(const Form &f, std::string &) {
  return withDirected(roundingOf(f), []<Rounding R>() {
    return lanes<double, double>([](double a) { return canonical(quotient<R>(1.0, a)); });
  });
}
Handler buildSqrt(const Form &f, std::string &) {
  return withDirected(roundingOf(f), []<Rounding R>() {
    return lanes<double, double>([](double a) { return canonical(root<R>(a)); });
  });
}

constexpr Row rows[] = {
    {"add", "rz|rm|rp", "f64", "=0 0 0", 75, buildAdd},   {"sub", "rz|rm|rp", "f64", "=0 0 0", 75, buildSub},
    {"mul", "rz|rm|rp", "f64", "=0 0 0", 75, buildMul},   {"fma", "rz|rm|rp", "f64", "=0 0 0 0", 75, buildFma},
    {"mad", "rz|rm|rp", "f64", "=0 0 0 0", 75, buildFma}, {"div", "rz|rm|rp", "f64", "=0 0 0", 75, buildDiv},
    {"rcp", "rz|rm|rp", "f64", "=0 0", 75, buildRcp},     {"sqrt", "rz|rm|rp", "f64", "=0 0", 75, buildSqrt},
};

} // namespace

std::span<const Row> floatRounding64Rows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
