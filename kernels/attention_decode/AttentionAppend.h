//===- AttentionAppend.h - New rows into a cache, by a launch of their own -------===//
//
// Before the launch of attention where that has the copy engine fetch the cache: it may not write to what it fetches.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_ATTENTIONAPPEND_H
#define KILN_KERNELS_ATTENTION_DECODE_ATTENTIONAPPEND_H

#include "kernels/attention_decode/AttentionDecode.h"

namespace kiln::kernels {

/// Of a call's configuration what new rows depend on.
AttentionDecodeConfig configOfAppend(const AttentionDecodeConfig &call);

/// Grid [ceil(new tokens / blockNew) * key heads * batch].  Arguments as of attentionDecode: k, v, k_new, v_new,
/// rotary_cos, rotary_sin, cache_seqlens, page_table, cache_batch_idx, leftpad_k.
language::Kernel attentionAppend(DType element, const AttentionDecodeConfig &config);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_ATTENTIONAPPEND_H
