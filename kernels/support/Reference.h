//===- Reference.h - What a call of a family must give ------------------------===//
//
// The outputs in float64, how far a kernel's may be off, and what its launches must cost.
//
// Invariants: compute() works from the values that the kernel read (already rounded to the tensors' type) and shares no
// code with the kernel; allowed() is the documented tolerance, element by element.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_REFERENCE_H
#define KILN_KERNELS_SUPPORT_REFERENCE_H

#include "kernels/support/Callable.h"
#include "kernels/support/Traffic.h"

namespace kiln::kernels {

class Reference {
public:
  virtual ~Reference() = default;

  /// The outputs in float64.
  virtual Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &options) const = 0;

  /// The largest |kernel - reference| that is allowed for each element of output `name` of type `dtype`; 0: bit-equal.
  virtual std::vector<double> allowed(std::string_view name, DType dtype, const HostTensors &inputs,
                                      const HostTensors &reference, const OptionValues &options) const = 0;

  /// The largest mean of |kernel - reference| over an output, besides what is allowed for each element; none: any.
  virtual std::optional<double> allowedMean(std::string_view name, DType dtype, const HostTensors &inputs,
                                            const HostTensor &reference) const {
    return {};
  }

  /// The largest root mean square of kernel - reference over an output, divided by the reference's; none: any.
  virtual std::optional<double> allowedRatio(std::string_view name) const { return {}; }

  /// What each launch of a call on dense tensors must cost on any target: held against the emulator's counters.
  /// Nothing: not stated in closed form.
  virtual std::vector<Traffic> traffic(const TensorTypes &inputs) const { return {}; }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_REFERENCE_H
