#include "runtime/io/Numbers.h"

#include <bit>
#include <cmath>
#include <limits>

namespace kiln {

std::uint32_t encodeFloat(double value, const FloatFormat &format) {
  const std::uint64_t raw = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = static_cast<std::uint32_t>(raw >> 63) << (format.bits() - 1);
  if (std::isnan(value))
    return format.saturates ? format.nan : sign | format.nan;
  const std::uint32_t tooLarge =
      sign |
      (format.saturates ? format.largestFinite : ((1u << format.exponentBits) - 1) << format.mantissaBits); // infinity
  if (std::isinf(value))
    return tooLarge;
  // value = fraction * 2^(exponent - 52), fraction a 53-bit integer with its top bit set.  Doubles below 2^-1022 are
  // zero in every format here.
  const int biased = static_cast<int>(raw >> 52 & 0x7ff);
  if (biased == 0)
    return sign;
  const int exponent = biased - 1023;
  const std::uint64_t fraction = (raw & ((1ull << 52) - 1)) | 1ull << 52;
  const int smallestNormal = 1 - format.bias();
  // Bits of the fraction below the format's last place; at least 53 of them leave nothing or a half at most.
  int drop = 52 - static_cast<int>(format.mantissaBits);
  if (exponent < smallestNormal)
    drop += smallestNormal - exponent;
  if (drop > 53)
    return sign;
  std::uint64_t kept = fraction >> drop;
  const std::uint64_t rest = fraction & ((1ull << drop) - 1), half = 1ull << (drop - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept;
  // A normal number's top bit adds one to the exponent field; a carry out of the mantissa adds another one.
  std::uint64_t code = kept;
  if (exponent >= smallestNormal)
    code += static_cast<std::uint64_t>(exponent + format.bias() - 1) << format.mantissaBits;
  return code > format.largestFinite ? tooLarge : sign | static_cast<std::uint32_t>(code);
}

double decodeFloat(std::uint32_t code, const FloatFormat &format) {
  const std::uint32_t magnitude = code & ((1u << (format.bits() - 1)) - 1);
  const bool negative = code >> (format.bits() - 1) & 1;
  const std::uint32_t infinity = ((1u << format.exponentBits) - 1) << format.mantissaBits;
  double value;
  if (magnitude > format.largestFinite)
    value = magnitude == infinity && format.largestFinite < infinity ? std::numeric_limits<double>::infinity()
                                                                     : std::numeric_limits<double>::quiet_NaN();
  else {
    const int field = static_cast<int>(magnitude >> format.mantissaBits);
    std::uint32_t fraction = magnitude & ((1u << format.mantissaBits) - 1);
    if (field)
      fraction |= 1u << format.mantissaBits;
    value = std::ldexp(static_cast<double>(fraction),
                       (field ? field : 1) - format.bias() - static_cast<int>(format.mantissaBits));
  }
  return negative ? -value : value;
}

} // namespace kiln
