//===- Sampling.h - Which elements of a large result are compared -------------===//
//
// A float64 reference may cost 2^31 multiply-adds, some seconds; of calls that need more it computes a sample.  The
// value "reference_work" among a call's options is another limit.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_SAMPLING_H
#define KILN_KERNELS_SUPPORT_SAMPLING_H

#include "kernels/support/OptionValues.h"

#include <algorithm>

namespace kiln::kernels {

inline double affordableWork(const OptionValues &options) {
  return valueOr(options, "reference_work", 0x1p31);
}

/// About `count` of the numbers below n, at least 1, ascending: one in each of as many equal parts, at a place that
/// looks random but is the same every time.
inline std::vector<std::uint64_t> sampleOf(std::uint64_t n, std::uint64_t count) {
  count = std::clamp<std::uint64_t>(count, 1, std::max<std::uint64_t>(n, 1));
  std::vector<std::uint64_t> out;
  const std::uint64_t part = n / count;
  for (std::uint64_t i = 0; i < count && part; ++i) {
    std::uint64_t h = (i + 1) * 0x9E3779B97F4A7C15u; // splitmix64
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
    h = (h ^ h >> 27) * 0x94D049BB133111EBu;
    out.push_back(i * part + (h ^ h >> 31) % part);
  }
  return out;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_SAMPLING_H
