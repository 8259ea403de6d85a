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

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

struct DplrStepConfig {
  int dim = 64, blockV = 32;
  int stages = 3;
  bool packed = false;
  DType gates = DType::F32;
  DType state = DType::F32;
  DType lastState = DType::F32;
  DType offsets = DType::I64;
  bool operator==(const DplrStepConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("dim", &DplrStepConfig::dim, powersOfTwo(16, 256), "tile width of K: at least the extent, which is an argument");
    v("blockV", &DplrStepConfig::blockV, powersOfTwo(1, 256).tuned(), "columns of the state that a program has");
    v("stages", &DplrStepConfig::stages, between(1, 8).tuned().ofLaunch(),
      "tokens whose rows are there or on their way");
    v("packed", &DplrStepConfig::packed, anyValue, "cu_seqlens says where sequences start");
    v("gates", &DplrStepConfig::gates, anyValue, "f32 or the type of the activations");
    v("state", &DplrStepConfig::state, anyValue, "of the first state: f32, f16, bf16");
    v("lastState", &DplrStepConfig::lastState, anyValue, "of the last state: f32, or as the first one");
    v("offsets", &DplrStepConfig::offsets, anyValue, "of cu_seqlens: i32 or i64");
  }
};

/// dplr_step(q, k, v, a, b, g, h0, cu_seqlens, o, ht, scale): q, k, a, b, g [B, T, H, K], v, o [B, T, H, V]; h0, ht
/// [N, H, K, V].  h0 and ht may be the same memory, as a program reads its part before it writes it; each may be left
/// out. Grid [N * H * ceil(V / blockV)].
language::Kernel dplrStep(DType element, const DplrStepConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRSTEP_H
