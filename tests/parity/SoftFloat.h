//===- SoftFloat.h - Floating point on integers, for test oracles ---------===//
//
// A second implementation of IEEE arithmetic that shares nothing with the emulator: values are (sign, integer
// significand, exponent), operations are exact or keep a sticky bit far below the last place, and `pack` rounds once.
// Slow and plain on purpose.  Nothing here knows about flushing or saturation to [0, 1]: the oracles do that on bits.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_PARITY_SOFTFLOAT_H
#define KILN_TESTS_PARITY_SOFTFLOAT_H

#include <cstdint>

namespace kiln::softfloat {

using Wide = unsigned _BitInt(256);

enum class Rounding : unsigned char { NearestEven, TowardZero, Down, Up, NearestAway };

/// A binary interchange format.  `precision` counts the hidden bit.
struct Format {
  unsigned bits, precision, exponentBits;
  bool finiteOnly;            ///< e4m3: no infinities, and only the all-ones magnitude is NaN
  std::uint64_t canonicalNan; ///< what an invalid operation gives on a GPU

  constexpr int bias() const { return (1 << (exponentBits - 1)) - 1; }
  constexpr int minExponent() const { return 1 - bias() - int(precision - 1); } ///< of the last place of a subnormal
  constexpr std::uint64_t signBit() const { return std::uint64_t(1) << (bits - 1); }
  constexpr std::uint64_t fractionMask() const { return (std::uint64_t(1) << (precision - 1)) - 1; }
  constexpr std::uint64_t infinity() const { return ((std::uint64_t(1) << exponentBits) - 1) << (precision - 1); }
  constexpr std::uint64_t maxFinite() const { return finiteOnly ? infinity() | (fractionMask() - 1) : infinity() - 1; }
};

inline constexpr Format half{16, 11, 5, false, 0x7fff};
inline constexpr Format bfloat{16, 8, 8, false, 0x7fff};
inline constexpr Format single{32, 24, 8, false, 0x7fffffff};
inline constexpr Format real{64, 53, 11, false, 0x7fffffffffffffff};
inline constexpr Format e4m3{8, 4, 4, true, 0x7f};
inline constexpr Format e5m2{8, 3, 5, false, 0x7f};

struct Value {
  enum Kind : unsigned char { Zero, Finite, Infinity, Nan } kind = Zero;
  bool negative = false;
  Wide significand = 0; ///< not zero if Finite
  int exponent = 0;     ///< value = significand * 2^exponent
};

Value unpack(const Format &format, std::uint64_t bits);

/// Rounds once.  Overflow gives infinity or the largest finite value as the rounding says; with `saturateFinite` always
/// the largest finite value, and NaN the canonical one.
std::uint64_t pack(const Format &format, const Value &value, Rounding rounding, bool saturateFinite = false);

Value fromUnsigned(std::uint64_t magnitude, bool negative = false);

/// `rounding` decides the sign of an exact zero sum only.
Value add(const Value &a, const Value &b, Rounding rounding);
Value multiply(const Value &a, const Value &b);
Value fma(const Value &a, const Value &b, const Value &c, Rounding rounding);
Value divide(const Value &a, const Value &b);
Value squareRoot(const Value &a);

/// -1, 0, 1; both operands are numbers.
int compare(const Value &a, const Value &b);

/// To an integer value; a zero keeps the sign of `a`.
Value roundToInteger(const Value &a, Rounding rounding);

/// The low 64 bits of an integer-valued `a` clamped to [low, high]; NaN is the caller's business.
std::uint64_t toInteger(const Value &a, std::int64_t low, std::uint64_t high);

bool isNan(const Format &format, std::uint64_t bits);

/// Distance in representable values of `format` between two numbers of it (infinity counts as the next one).
std::uint64_t ulpDistance(const Format &format, std::uint64_t a, std::uint64_t b);

double toDouble(const Format &format, std::uint64_t bits);

} // namespace kiln::softfloat

#endif // KILN_TESTS_PARITY_SOFTFLOAT_H
