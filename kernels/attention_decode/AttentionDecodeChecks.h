//===- AttentionDecodeChecks.h - What attention over a cache refuses ------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODECHECKS_H
#define KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODECHECKS_H

#include "kernels/attention_decode/AttentionDecodeOperation.h"

namespace kiln::kernels {

/// Refuses wrong tensors and options, by name.
Status checkAttentionDecode(const Device &device, const AttentionDecodeArguments &arguments);

/// The call as one of attention over the room that each sequence has, for what both share: shapes of heads, options.
/// The keys are no tensor of the caller's: every sequence has those of the first.
AttentionArguments asAttention(const AttentionDecodeArguments &arguments);

/// Rows that a sequence has room for in the cache.
std::int64_t capacityOf(const AttentionDecodeArguments &arguments);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODECHECKS_H
