//===- DplrCallable.h - What of the DPLR delta rule is called -------------------===//
//
// What the families share, forward and backward, of every rule (Rule.h): parameters, extents, what is wrong with
// tables of offsets.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DPLRCALLABLE_H
#define KILN_KERNELS_DPLR_DPLRCALLABLE_H

#include "kernels/dplr/DplrNames.h"
#include "kernels/support/Callable.h"

namespace kiln::kernels {

class DplrCallable : public Callable {
public:
  explicit DplrCallable(DplrNames names) : names(names) {}
  std::string_view name() const override { return names.operation; }
  std::string_view summary() const override { return names.summary; }
  std::vector<DType> dtypes() const override { return {DType::BF16, DType::F16}; }
  std::vector<OptionInfo> options() const override;
  /// Gates and states keep the type of their files.
  std::optional<DType> inputType(const TensorParameter &parameter, std::optional<DType> called,
                                 const OptionValues &options) const override;
  Status complete(const Arrays &inputs, OptionValues &options) const override;
  std::string sizeText(const TensorTypes &inputs, const OptionValues &options) const override;

protected:
  /// The extents of a call, from the types of its tensors.
  struct Extents {
    std::uint64_t batch = 0, tokens = 0, heads = 0, dim = 0, dimV = 0, sequences = 0;
  };
  Result<Extents> extentsOf(const TensorTypes &inputs) const;
  /// What a forward call saves: u8.
  Result<TensorType> savedType(const Extents &extents, bool packed, const OptionValues &options) const;
  /// Those of q, k, v, a, b, g, beta that the rule has, initial_state, cu_seqlens.
  std::vector<TensorParameter> inputParameters() const;

  const DplrNames names;
};

/// Forward: o, and final_state if it is asked for.
class DplrForwardCallable : public DplrCallable {
public:
  using DplrCallable::DplrCallable;
  std::vector<TensorParameter> tensors() const override;
  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &options) const override;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRCALLABLE_H
