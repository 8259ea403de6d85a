//===- Rule.h - What a rule's tokens do to the state --------------------------===//
//
// One set of kernels serves a family of rules (specification "DPLR delta rule and RWKV7", S7).  All of them decay the
// state, add k v^T to it and read it with q; they differ in what else a token does, and in what its gate is:
//
//   rule     more than k v^T                               gate: channel         head               none
//   Dplr     adds b p^T, where p = S^T a is what a reads   DPLR, RWKV7                              IPLR
//   Delta    takes back what k reads, times beta           KDA                   gated delta rule   delta rule
//   Linear   nothing                                       GLA                   simple GLA (SSD)   linear attention
//
// Delta is Dplr with a = -k e^g, b = beta k and beta k in place of k: reader and writer are one row, so that two of the
// four matrices of a chunk are the other two.  What the rows of a chunk write, with A the matrix of a by k, M = (I -
// A)^-1 and X what a reads of the state before it, is then V + M (A V + X) = M (V + X), a product less.  Where keys are
// nearly parallel it is also the more exact one: A V sums many tokens' values, of which M leaves little, but not of
// their rounding; and F has the same M, so that its rounding only scales what V differs from what was read.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_RULE_H
#define KILN_KERNELS_DPLR_RULE_H

#include <cstdint>

namespace kiln::kernels {

enum class ChunkRule : std::uint8_t { Dplr, Delta, Linear };
enum class GateKind : std::uint8_t { Channel, Head, None };

/// Tokens read the state before they change it.
constexpr bool reads(ChunkRule rule) {
  return rule != ChunkRule::Linear;
}
/// What they read is added along a row of its own, b.
constexpr bool hasOwnB(ChunkRule rule) {
  return rule == ChunkRule::Dplr;
}

/// Matrices [C, C] of a chunk that its gradients take from the launch before: qk; the inverse; ak and qb.
constexpr int keptMatrices(ChunkRule rule) {
  return hasOwnB(rule) ? 4 : reads(rule) ? 2 : 1;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_RULE_H
