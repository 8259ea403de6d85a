//===- Numbers.h - Small floating-point formats on the host ---------------===//
//
// Conversions between double / float and f16, bf16, e4m3, e5m2, for files and scalar arguments.  Encoding rounds to
// nearest even, once, from the exact value.  Out of range: f16 and bf16 become infinite, as IEEE 754 says; e4m3 and
// e5m2 become the largest finite value, infinities too, as the GPU's cvt.rn.satfinite does.  A NaN stays a NaN: f16 and
// bf16 keep its sign, e4m3 and e5m2 have the one NaN 0x7f.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_IO_NUMBERS_H
#define KILN_RUNTIME_IO_NUMBERS_H

#include <cstdint>

namespace kiln {

/// A sign bit, `exponentBits` and `mantissaBits`, IEEE-like with subnormals.
struct FloatFormat {
  unsigned exponentBits, mantissaBits;
  std::uint32_t largestFinite; ///< code of the largest finite value
  std::uint32_t nan;           ///< code of the NaN that encoding produces, without a sign
  bool saturates;              ///< out of range gives largestFinite, else infinity
  constexpr int bias() const { return (1 << (exponentBits - 1)) - 1; }
  constexpr unsigned bits() const { return 1 + exponentBits + mantissaBits; }
};

inline constexpr FloatFormat formatF16{5, 10, 0x7bff, 0x7e00, false};
inline constexpr FloatFormat formatBf16{8, 7, 0x7f7f, 0x7fc0, false};
inline constexpr FloatFormat formatE4m3{4, 3, 0x7e, 0x7f, true}; ///< no infinities; 0x7f is the only NaN
inline constexpr FloatFormat formatE5m2{5, 2, 0x7b, 0x7f, true};

/// The code nearest to `value`, ties to even.
std::uint32_t encodeFloat(double value, const FloatFormat &format);

/// The value of a code; exact.
double decodeFloat(std::uint32_t code, const FloatFormat &format);

} // namespace kiln

#endif // KILN_RUNTIME_IO_NUMBERS_H
