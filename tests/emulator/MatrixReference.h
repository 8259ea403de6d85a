//===- MatrixReference.h - The matrix model, said once more ---------------===//
//
// A scalar statement of the model of matrix instructions, in integers, straight from the words of the emulator
// specification, section 2.1.  Shares no code with the emulator.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_MATRIXREFERENCE_H
#define KILN_TESTS_EMULATOR_MATRIXREFERENCE_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace kiln::test {

/// A binary floating-point format: `skip` low bits are ignored.
struct FloatFormat {
  unsigned bits, exponentBits, fractionBits, skip;
  bool hasInfinity;
  bool normalizes = false; ///< converted to a wider format first: subnormal numbers are none
};
inline constexpr FloatFormat f32Format{32, 8, 23, 0, true}, tf32Format{32, 8, 10, 13, true},
    f16Format{16, 5, 10, 0, true}, bf16Format{16, 8, 7, 0, true}, e4m3Format{8, 4, 3, 0, false},
    halfE4m3Format{8, 4, 3, 0, false, true}, e5m2Format{8, 5, 2, 0, true};

/// A number as digits * 2^(exponent - fractionBits), the digits below 2 if fractionBits follow the point.
struct ReferenceNumber {
  bool negative = false, nan = false, infinite = false;
  std::uint64_t digits = 0;
  int exponent = 0;
};

inline ReferenceNumber referenceNumber(const FloatFormat &f, std::uint32_t bits) {
  ReferenceNumber n;
  n.negative = bits >> (f.bits - 1) & 1;
  const std::uint32_t fraction = bits >> f.skip & ((1u << f.fractionBits) - 1);
  const int field = static_cast<int>(bits >> (f.skip + f.fractionBits) & ((1u << f.exponentBits) - 1));
  const int top = (1 << f.exponentBits) - 1, bias = top / 2;
  if (field == top && f.hasInfinity) {
    n.nan = fraction != 0;
    n.infinite = fraction == 0;
    return n;
  }
  if (field == top && fraction == (1u << f.fractionBits) - 1) {
    n.nan = true;
    return n;
  }
  n.digits = field ? fraction | 1u << f.fractionBits : fraction;
  n.exponent = field ? field - bias : 1 - bias; // subnormal numbers keep the least exponent
  while (f.normalizes && n.digits && n.digits < 1u << f.fractionBits) {
    n.digits *= 2;
    --n.exponent;
  }
  return n;
}

/// The largest integer of at most `limit` bits and the power of two that stand for sum * 2^unit, toward zero.
inline std::uint32_t referenceTruncate(bool negative, unsigned __int128 magnitude, int unit, unsigned fraction) {
  const std::uint32_t sign = negative ? 0x80000000u : 0;
  if (magnitude == 0)
    return 0;
  int top = 127;
  while (!(magnitude >> top & 1))
    --top;
  int exponent = top + unit; // of the leading bit
  if (exponent > 127)
    return sign | 0x7f800000u;
  const int lowest = std::max(exponent, -126) - static_cast<int>(fraction); // the last bit that is kept
  if (lowest > unit)
    magnitude = lowest - unit > 127 ? 0 : magnitude >> (lowest - unit) << (lowest - unit);
  // Now exact: into the 23 bits of the format.
  const int last = std::max(exponent, -126) - 23;
  const std::uint64_t digits = static_cast<std::uint64_t>(unit >= last        ? magnitude << (unit - last)
                                                          : last - unit > 127 ? 0
                                                                              : magnitude >> (last - unit));
  if (digits == 0)
    return 0; // a zero is positive, as on an H200
  if (exponent < -126)
    return sign | static_cast<std::uint32_t>(digits);
  return sign | (static_cast<std::uint32_t>(exponent + 127) << 23 | (static_cast<std::uint32_t>(digits) & 0x7fffffu));
}

/// sum * 2^unit as f16, to nearest even.
inline std::uint32_t referenceNearestHalf(bool negative, unsigned __int128 magnitude, int unit) {
  const std::uint32_t sign = negative ? 0x8000u : 0;
  if (magnitude == 0)
    return 0;
  int top = 127;
  while (!(magnitude >> top & 1))
    --top;
  const int exponent = std::max(top + unit, -14), last = exponent - 10;
  std::uint64_t digits;
  if (unit >= last) {
    digits = static_cast<std::uint64_t>(magnitude << (unit - last));
  } else if (last - unit > 126) {
    digits = 0;
  } else {
    const int drop = last - unit;
    const unsigned __int128 rest = magnitude & ((static_cast<unsigned __int128>(1) << drop) - 1);
    const unsigned __int128 half = static_cast<unsigned __int128>(1) << (drop - 1);
    digits = static_cast<std::uint64_t>(magnitude >> drop);
    digits += rest > half || (rest == half && (digits & 1));
  }
  if (digits == 0)
    return 0;
  // digits is at most 2^11; the carry into the exponent is what it should be.
  const std::uint64_t bits = digits >= 1024 ? (static_cast<std::uint64_t>(exponent + 15 - 1) << 10) + digits : digits;
  return sign | static_cast<std::uint32_t>(bits >= 0x7c00 ? 0x7c00 : bits);
}

struct ReferenceModel {
  FloatFormat a, b, c, d; ///< c and d: f32Format or f16Format
  int fraction;           ///< F
  unsigned resultFraction;
  unsigned block;
  bool addsLast = false; ///< C is no addend of the unit: it is added to its result, rounded to nearest
};

/// The order in which mma.sync of fp8 takes the elements along K on sm_90, as an H200 does it: two products of f16, of
/// the lower and of the upper pair of elements of each register.
inline std::vector<std::uint32_t> pairsApart(const std::vector<std::uint32_t> &elements) {
  std::vector<std::uint32_t> out;
  for (unsigned upper : {0u, 1u})
    for (std::size_t k = 0; k < elements.size(); ++k)
      if (k % 4 / 2 == upper)
        out.push_back(elements[k]);
  return out;
}

/// The sum of two numbers of one format, f32 or f16, rounded to nearest.
inline std::uint32_t referenceAdd(const FloatFormat &f, std::uint32_t a, std::uint32_t b) {
  const ReferenceNumber x = referenceNumber(f, a), y = referenceNumber(f, b);
  const bool half = f.bits == 16;
  if (x.nan || y.nan || (x.infinite && y.infinite && x.negative != y.negative))
    return half ? 0x7fff : 0x7fffffff;
  if (x.infinite || y.infinite)
    return x.infinite ? a : b;
  if (!half)
    return std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
  auto units = [](const ReferenceNumber &n) { // of 2^-24
    const auto v = static_cast<std::int64_t>(n.digits << (n.exponent + 14));
    return n.negative ? -v : v;
  };
  const std::int64_t sum = units(x) + units(y);
  return referenceNearestHalf(sum < 0, static_cast<unsigned __int128>(sum < 0 ? -sum : sum), -24);
}

/// One element of D: k products and C, block after block.
inline std::uint32_t referenceDot(const ReferenceModel &m, const std::vector<std::uint32_t> &a,
                                  const std::vector<std::uint32_t> &b, std::uint32_t c) {
  if (m.addsLast) {
    ReferenceModel unit = m;
    unit.addsLast = false;
    return referenceAdd(m.d, referenceDot(unit, a, b, 0), c);
  }
  FloatFormat formatOfC = m.c;
  for (std::size_t begin = 0; begin < a.size(); begin += m.block) {
    struct Addend {
      bool negative;
      std::uint64_t digits;
      int exponent;
      int fractionBits;
    };
    std::vector<Addend> addends;
    bool nan = false, plus = false, minus = false;
    for (std::size_t k = begin; k < std::min<std::size_t>(begin + m.block, a.size()); ++k) {
      const ReferenceNumber x = referenceNumber(m.a, a[k]), y = referenceNumber(m.b, b[k]);
      const bool negative = x.negative != y.negative;
      if (x.nan || y.nan || (x.infinite && !y.infinite && y.digits == 0) ||
          (y.infinite && !x.infinite && x.digits == 0))
        nan = true;
      else if (x.infinite || y.infinite)
        (negative ? minus : plus) = true;
      else
        addends.push_back({negative, x.digits * y.digits, x.exponent + y.exponent,
                           static_cast<int>(m.a.fractionBits + m.b.fractionBits)});
    }
    const ReferenceNumber z = referenceNumber(formatOfC, c);
    nan |= z.nan;
    if (z.infinite)
      (z.negative ? minus : plus) = true;
    if (!z.nan && !z.infinite)
      addends.push_back({z.negative, z.digits, z.exponent, static_cast<int>(formatOfC.fractionBits)});
    const bool half = m.d.bits == 16;
    if (nan || (plus && minus)) {
      c = half ? 0x7fff : 0x7fffffff;
    } else if (plus || minus) {
      c = (half ? 0x7c00u : 0x7f800000u) | (minus ? (half ? 0x8000u : 0x80000000u) : 0);
    } else {
      int e = -126; // where a zero stands
      for (const Addend &x : addends)
        if (x.digits)
          e = std::max(e, x.exponent);
      __int128 sum = 0;
      for (const Addend &x : addends) {
        // digits * 2^(exponent - fractionBits) in units of 2^(e - F), toward zero.
        const int shift = x.exponent - x.fractionBits - (e - m.fraction);
        const __int128 t = shift >= 0     ? static_cast<__int128>(x.digits) << std::min(shift, 100)
                           : shift <= -64 ? 0
                                          : static_cast<__int128>(x.digits >> -shift);
        sum += x.negative ? -t : t;
      }
      const bool negative = sum < 0;
      const auto magnitude = static_cast<unsigned __int128>(negative ? -sum : sum);
      c = half ? referenceNearestHalf(negative, magnitude, e - m.fraction)
               : referenceTruncate(negative, magnitude, e - m.fraction, m.resultFraction);
    }
    formatOfC = m.d;
  }
  return c;
}

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_MATRIXREFERENCE_H
