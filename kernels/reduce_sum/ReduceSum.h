//===- ReduceSum.h - The sum of all elements, in two launches -------------------===//
//
// Launch 1, reduce_sum_partial(x, partial): each program sums blocks of x that are the grid's size apart
// and writes one fp32 number to the workspace `partial`; grid [P], P <= ceil(n / block) is enough, P >= 1.
// Launch 2, reduce_sum_final(partial, out): one program sums the P numbers and writes one T.
// Both orders are fixed: two runs are bit-equal.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_REDUCE_SUM_REDUCESUM_H
#define KILN_KERNELS_REDUCE_SUM_REDUCESUM_H

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

struct ReduceSumConfig {
  int block = 2048;
  int warps = 4;
  bool adjacent = true;
  bool operator==(const ReduceSumConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("block", &ReduceSumConfig::block, powersOfTwo(1, 1 << 16).tuned(), "elements of a tile");
    v("warps", &ReduceSumConfig::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("adjacent", &ReduceSumConfig::adjacent, anyValue, "the stride of x is 1, and not used; first launch only");
  }
};

/// f32, f16, bf16, summed in fp32.
language::Kernel reduceSumPartial(DType element, const ReduceSumConfig &config = {});
language::Kernel reduceSumFinal(DType element, const ReduceSumConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_REDUCE_SUM_REDUCESUM_H
