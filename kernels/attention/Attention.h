//===- Attention.h - Flash attention, forward -----------------------------------===//
//
// o = softmax(mask(softcap(scale * q k^T) + alibi)) v for every query head, without the matrix of scores: a program
// takes blockM rows of one head and walks over the keys blockN at a time, with a running maximum and sum
// (specification "Attention kernels", sections 2 to 5).
//
// Only what the configuration asks for is in the code: no mask, cap, slope or sink that is not there.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTION_H
#define KILN_KERNELS_ATTENTION_ATTENTION_H

#include "compiler/language/Kernel.h"

namespace kiln::kernels {

/// Grid [ceil(longest q / blockM) * query heads * batch].
struct AttentionConfig {
  int blockM = 128, blockN = 64; ///< query rows of a program; keys of a step
  int warps = 8;
  int stages = 2;            ///< tiles of k and v that are in flight
  int dim = 128, dimV = 128; ///< tile widths of q and k, and of v and o: at least the head dims, which are arguments
  bool left = false, right = false; ///< keys before p - window_left, after p + window_right are hidden
  bool bottomRight = true;          ///< p = i + (keys - queries), else p = i
  bool softcap = false, alibi = false, sink = false;
  bool packedQ = false, packedK = false; ///< cu_q, cu_k: where each sequence starts in [T, heads, dim]
  bool usedQ = false, usedK = false;     ///< used_q, used_k: rows of each sequence that count
  bool lse = false;
  bool operator==(const AttentionConfig &) const = default;
};

/// How hard the assembler is to optimise: 1 where that was measured to be as fast (H200), 3 elsewhere.  These take the
/// longest of all; level 1 saves a third of it.
int assemblerLevel(const AttentionConfig &config);

/// f16 or bf16.  Arguments by name: q and o [batch, row, key head, member of its group, dim], k and v [batch, row, key
/// head, dim], lse [batch, head, row], sink [head], alibi [batch, head], cu_q, cu_k [batch + 1], used_q, used_k [batch]
/// (the last seven may be left out); queries (of the longest sequence), window_left, window_right, scale, cap.  Packed
/// tensors have one batch.
language::Kernel attention(DType element, const AttentionConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTION_H
