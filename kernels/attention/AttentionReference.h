//===- AttentionReference.h - Attention in float64, by its definition --------------===//
//
// Specification "Attention kernels", sections 2 to 4, row by row, without tiles or running sums.  Of calls that would
// take long a sample of rows is computed: spread over all heads and sequences, the same for the same call.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONREFERENCE_H
#define KILN_KERNELS_ATTENTION_ATTENTIONREFERENCE_H

#include "kernels/support/HostTensor.h"
#include "kernels/support/OptionValues.h"

namespace kiln::kernels {

/// o and lse, in float64, of a call that the operation accepts.  `working`: every tensor of the computation (k times
/// scale, scores, probabilities, o) is rounded to that type, which gives the error that the type brings with it.  Rows
/// that no sequence uses: 0, and minus infinity.
Result<HostTensors> attentionReference(const HostTensors &inputs, const OptionValues &options,
                                       std::optional<DType> working = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONREFERENCE_H
