//===- DplrStep.h - The kernel of the DPLR delta rule, token by token -------===//
//
// For decoding, where a call has one or a few tokens: the recurrence as it is defined (specification "DPLR delta rule
// and RWKV7", S1; Dplr.h has the formulas), without chunks, products of matrices or a workspace.
//
// A program has some columns of one head's state, all K rows of them, and is one warp: what a token reads of the state
// is summed up over K by shuffles.  Columns do not know of each other.  Nothing depends on how many tokens a call has:
// one call of T tokens and T calls of one, with the state kept in f32, give the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DPLRSTEP_H
#define KILN_KERNELS_DPLR_DPLRSTEP_H

#include "compiler/language/Kernel.h"

namespace kiln::kernels {

struct DplrStepConfig {
  int dim = 64;        ///< tile width of K: at least the extent, which is an argument
  int blockV = 32;     ///< columns of the state that a program has
  int stages = 3;      ///< tokens whose rows are there or on their way
  bool packed = false; ///< cu_seqlens says where sequences start
  DType gates = DType::F32; ///< f32 or the activations' type
  DType state = DType::F32; ///< of the first state: f32, f16, bf16
  /// Of the last state: f32, or the first one's type.
  DType lastState = DType::F32;
  DType offsets = DType::I64; ///< of cu_seqlens: i32 or i64
  bool operator==(const DplrStepConfig &) const = default;
};

/// dplr_step(q, k, v, a, b, g, h0, cu_seqlens, o, ht, scale): q, k, a, b, g [B, T, H, K], v, o [B, T, H, V]; h0, ht
/// [N, H, K, V].  h0 and ht may be the same memory, as a program reads its part before it writes it; each may be left
/// out. Grid [N * H * ceil(V / blockV)].
language::Kernel dplrStep(DType element, const DplrStepConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRSTEP_H
