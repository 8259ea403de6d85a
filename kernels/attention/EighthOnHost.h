//===- EighthOnHost.h - What the type e4m3 costs attention, on the host ---------===//
//
// Both references state tolerances in it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_EIGHTHONHOST_H
#define KILN_KERNELS_ATTENTION_EIGHTHONHOST_H

#include "runtime/io/DType.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kiln::kernels {

/// A power of a row, the largest being 1, as the product with the values has it: the largest is 2^8 there.
inline double powerOfEighth(double power) {
  constexpr double unit = 0x1p8;
  const FloatFormat &type = *dtypeFloatFormat(DType::F8E4M3);
  return decodeFloat(encodeFloat(power * unit, type), type) / unit;
}

/// What a matrix unit may lose of a product of e4m3, in units of 2^-13: an instruction adds 32 terms to the sum so
/// far, of each of which it drops what lies 13 bits below the largest.
inline double lossOfEighth(const double *query, const double *key, std::int64_t dim) {
  double sum = 0, loss = 0;
  for (std::int64_t first = 0; first < dim; first += 32) {
    double largest = std::abs(sum);
    for (std::int64_t c = first; c < std::min(dim, first + 32); ++c) {
      sum += query[c] * key[c];
      largest = std::max(largest, std::abs(query[c] * key[c]));
    }
    loss += 33 * std::max(largest, std::abs(sum));
  }
  return loss;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_EIGHTHONHOST_H
