//===- FloatValues.h - Bits of the float types as host numbers ---------------===//
#ifndef KILN_TESTS_NUMBERS_FLOATVALUES_H
#define KILN_TESTS_NUMBERS_FLOATVALUES_H

#include "tests/numbers/NumbersCases.h"
#include "tests/parity/SoftFloat.h"

#include <bit>
#include <cmath>
#include <cstdlib>

namespace kiln::test {

inline const softfloat::Format &formatOf(const DType &type) {
  if (type.name == "f16")
    return softfloat::half;
  if (type.name == "bf16")
    return softfloat::bfloat;
  if (type.name == "f32")
    return softfloat::single;
  if (type.name == "f64")
    return softfloat::real;
  return type.name == "f8E4M3FN" ? softfloat::e4m3 : softfloat::e5m2;
}

/// The nearest number of the type; beyond its range the largest.
inline Bits nearestBits(const DType &type, double v) {
  if (type.name == "f32" && std::fabs(v) < 1e38)
    return std::bit_cast<std::uint32_t>(static_cast<float>(v));
  return softfloat::pack(formatOf(type), softfloat::unpack(softfloat::real, std::bit_cast<Bits>(v)),
                         softfloat::Rounding::NearestEven, /*saturateFinite=*/true);
}

inline double valueOf(const DType &type, Bits bits) {
  if (type.name == "f32")
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return type.name == "f64" ? std::bit_cast<double>(bits) : softfloat::toDouble(formatOf(type), bits);
}

/// The low bits as a signed number.
inline std::int64_t signedOf(Bits bits, unsigned width) {
  return static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
}

inline Verdict expectBits(const DType &type, Bits expected, Bits result) {
  const bool bothNan =
      type.isFloat() && softfloat::isNan(formatOf(type), expected) && softfloat::isNan(formatOf(type), result);
  if (expected == result || bothNan)
    return {};
  char text[40];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(expected));
  return {false, 0, text};
}

} // namespace kiln::test

#endif // KILN_TESTS_NUMBERS_FLOATVALUES_H
