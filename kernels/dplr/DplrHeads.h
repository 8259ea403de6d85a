//===- DplrHeads.h - References of the DPLR delta rule, head by head -------------===//
//
// A call's heads in float64, cut out of its tensors, and the tolerance of the specification's tests (S5).  What a head
// gives is DplrReference.h's.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DPLRHEADS_H
#define KILN_KERNELS_DPLR_DPLRHEADS_H

#include "kernels/dplr/DplrNames.h"
#include "kernels/dplr/DplrReference.h"
#include "kernels/support/Reference.h"

#include <functional>

namespace kiln::kernels {

class DplrHeads : public Reference {
public:
  explicit DplrHeads(DplrNames names) : names(names) {}
  std::vector<double> allowed(std::string_view name, DType dtype, const HostTensors &inputs,
                              const HostTensors &reference, const OptionValues &options) const override;
  std::optional<double> allowedRatio(std::string_view name) const override;

protected:
  /// One head of one sequence of a call, and where its rows lie.
  struct PlacedHead {
    DplrHead head;
    std::uint64_t batch, begin, state; ///< first token; first element of its state in [N, H, K, V]
    std::uint64_t h;
    std::vector<double> key, beta; ///< of the delta rule, as they were given: [T, K], [T]
  };
  /// The outputs that `f` makes of each head; of long calls only of a sample of heads.  `f` puts elements into outputs
  /// by name, of `types`.
  using Put = std::function<void(std::string_view name, std::uint64_t at, double value)>;
  Result<HostTensors> everyHead(const HostTensors &inputs, const OptionValues &options, const TensorTypes &types,
                                const std::function<void(const PlacedHead &, const Put &)> &f) const;
  /// Rows of a tensor [B, T, H, columns] or [B, T, H] that belong to a head, and the place of its row i.
  static std::vector<double> rowsOf(const HostTensor &tensor, const PlacedHead &at);
  static std::uint64_t rowAt(const Shape &shape, const PlacedHead &at, std::uint64_t i);

  const DplrNames names;
};

/// o, and final_state if it is asked for.
class DplrForwardReference : public DplrHeads {
public:
  using DplrHeads::DplrHeads;
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &options) const override;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRHEADS_H
