//===- AttentionBackwardReference.h - Gradients of attention in float64 -----------===//
//
// Specification "Attention kernels", section 7, pair by pair, for the o and the lse that the call was given: delta =
// sum(do * o), p = exp(z - lse).  Of calls that would take long samples are computed, the same for the same call: of
// rows, whose dq is compared, and of keys, whose dk and dv are.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONBACKWARDREFERENCE_H
#define KILN_KERNELS_ATTENTION_ATTENTIONBACKWARDREFERENCE_H

#include "kernels/support/HostTensor.h"
#include "kernels/support/OptionValues.h"

namespace kiln::kernels {

/// dq, dk, dv, and dsink where it is asked for, of a call that the operation accepts.  `working`: the error that this
/// type of q brings with it: every tensor of the computation (k times scale, scores, p, dp, dz, dx) is rounded to it.
/// Rows that no sequence uses: 0.
Result<HostTensors> attentionBackwardReference(const HostTensors &inputs, const OptionValues &options,
                                               std::optional<DType> working = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONBACKWARDREFERENCE_H
