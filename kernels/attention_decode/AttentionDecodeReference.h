//===- AttentionDecodeReference.h - Attention over a cache in float64, by its definition ---===//
//
// Specification "Attention kernels", sections 2 to 4 and 6, row by row.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODEREFERENCE_H
#define KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODEREFERENCE_H

#include "kernels/support/HostTensor.h"
#include "kernels/support/OptionValues.h"

namespace kiln::kernels {

/// o, and what else is asked for: lse, the caches after the call.  Of calls that would take long a sample of the rows
/// of o and lse.  `working`: every tensor of the computation is rounded to it.
Result<HostTensors> attentionDecodeReference(const HostTensors &inputs, const OptionValues &options,
                                             std::optional<DType> working = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODEREFERENCE_H
