//===- AttentionBiasGradient.h - The gradient of attention's bias -------------===//
//
// dbias = dz (PairGradients.h), summed over what the bias is the same for.  Scores are computed once more, block by
// block, and sums have one order:
//
//   bias       where it differs by row and key a program has a block of dbias, and walks over the sequences and heads
//              that share it.  Else a program has rows (or, of a bias of keys alone, keys) of one head and sums over
//              all that they are paired with: dbias itself, or fp32 parts, [batch, head, row or key], of it
//   bias_sums  adds parts up over sequences and heads, and over rows where the bias is the same for them, too
//
// Every element is written; pairs that are not seen, or not there, give 0.  Lists of blocks are not walked: with them
// there is no dbias.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONBIASGRADIENT_H
#define KILN_KERNELS_ATTENTION_ATTENTIONBIASGRADIENT_H

#include "kernels/attention/AttentionBackward.h"

namespace kiln::kernels {

/// Whether a program of `bias` has rows of its own: of a bias of keys alone it has keys.
template <typename Config> bool hasRowsOfBias(const Config &c) {
  return c.biasOfRows || !c.biasOfKeys;
}

/// The kernels of these two launches (AttentionBackward.h says their arguments).
language::Kernel biasGradient(DType element, const AttentionBackwardConfig &config);
language::Kernel biasSums(const AttentionBackwardConfig &config);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONBIASGRADIENT_H
