//===- DplrSamples.h - Inputs to try the DPLR delta rule with -------------------===//
#ifndef KILN_KERNELS_DPLR_DPLRSAMPLES_H
#define KILN_KERNELS_DPLR_DPLRSAMPLES_H

#include "kernels/dplr/DplrNames.h"
#include "kernels/support/Samples.h"

namespace kiln::kernels {

class DplrSamples : public Samples {
public:
  explicit DplrSamples(DplrNames names) : names(names) {}
  std::optional<Array> input(std::string_view name, const TensorType &type, std::uint64_t seed) const override;

protected:
  /// The types of those of q, k, v, a, b, g, beta that the rule has.
  TensorTypes inputTypes(DType dtype, std::uint64_t batch, std::uint64_t tokens, std::uint64_t heads, std::uint64_t dim,
                         std::uint64_t dimV) const;
  /// Gates that need no look at each chunk: RWKV7's, -exp(-1/2) sigmoid(..), have a bound.
  OptionValues safeOptions() const;

  const DplrNames names;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRSAMPLES_H
