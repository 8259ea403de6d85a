//===- Rounding.h - Units in the last place, for tolerances ------------------===//
//
// The spacing of a type's values around a float64 value.  Tolerances are stated in it: a correctly rounded result lies
// within half an ulp of the exact value.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_ROUNDING_H
#define KILN_KERNELS_SUPPORT_ROUNDING_H

#include "runtime/io/DType.h"

#include <algorithm>
#include <cmath>

namespace kiln::kernels {

/// Distance between neighbours of `type` at |value| (subnormals too).
inline double ulp(double value, DType type) {
  struct Format {
    int precision, minExponent; ///< bits with the hidden one; exponent of the smallest normal value
  };
  const Format f = type == DType::F64    ? Format{53, -1022}
                   : type == DType::F32  ? Format{24, -126}
                   : type == DType::BF16 ? Format{8, -126}
                                         : Format{11, -14};
  int exponent = 0;
  std::frexp(value, &exponent); // |value| = m * 2^exponent, m in [0.5, 1)
  const int e = value == 0 || !std::isfinite(value) ? f.minExponent : std::max(exponent - 1, f.minExponent);
  return std::ldexp(1.0, e - (f.precision - 1));
}

/// What a correctly rounded result may differ by; a hair more, because the reference is itself rounded to float64.
inline double halfUlp(double value, DType type) {
  return 0.5 * ulp(value, type) * (1 + 0x1p-40);
}

/// From here on |value| rounds to infinity: half an ulp beyond the largest number.
inline double overflowThreshold(DType type) {
  return type == DType::F64    ? INFINITY
         : type == DType::F32  ? 0x1.FFFFFFp127
         : type == DType::BF16 ? 0x1.FFp127
                               : 65520.0;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_ROUNDING_H
