//===- AttentionTolerance.h - What the working type of attention costs by itself ---===//
//
// The tolerances of both directions (specification "Attention kernels", section 10) are stated in it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONTOLERANCE_H
#define KILN_KERNELS_ATTENTION_ATTENTIONTOLERANCE_H

#include "kernels/support/HostTensor.h"

#include <algorithm>
#include <cmath>

namespace kiln::kernels {

/// What the working type costs by itself.
struct WorkingError {
  double worst = 0, mean = 0, rest = 0; ///< largest and mean |base - reference|; 2 u max |reference| + 1e-5
  WorkingError(const HostTensor &reference, DType dtype) {
    double most = 0;
    const std::size_t n = std::min(reference.values.size(), reference.rounded.size());
    for (std::size_t i = 0; i < n; ++i) {
      const double difference = std::abs(reference.rounded[i] - reference.values[i]);
      if (std::isnan(difference)) // no number, as the kernel's is to be
        continue;
      most = std::max(most, std::abs(reference.values[i]));
      worst = std::max(worst, difference);
      mean += difference / static_cast<double>(n);
    }
    rest = 2 * (dtype == DType::BF16 ? 0x1p-9 : 0x1p-12) * most + 1e-5;
  }
};

/// What `compute` gives in float64, with what it gives in the working type as the rounded values.
template <typename Compute> Result<HostTensors> withWorkingValues(DType working, Compute compute) {
  KILN_ASSIGN(HostTensors out, compute(std::optional<DType>()));
  KILN_ASSIGN(HostTensors base, compute(std::optional(working)));
  for (auto &[name, tensor] : out)
    tensor.rounded = std::move(base[name].values);
  return out;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONTOLERANCE_H
