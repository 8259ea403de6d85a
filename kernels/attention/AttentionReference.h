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

/// o and lse, in float64, of a call that the operation accepts.  `working`: the error that this type of q
/// brings with it.  Of 16 bits every tensor of the computation (k times scale, scores, probabilities, o) is rounded to
/// it.  Of e4m3 powers are, the largest of a row being 2^8, which leaves the smallest error; o to bf16; and lse is off
/// by what matrix units may lose, which keep 14 bits of such sums, of the key of which they may lose the most.  Rows
/// that no sequence uses: 0, and minus infinity.
Result<HostTensors> attentionReference(const HostTensors &inputs, const OptionValues &options,
                                       std::optional<DType> working = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONREFERENCE_H
