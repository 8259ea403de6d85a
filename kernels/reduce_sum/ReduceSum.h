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

#include "compiler/language/Kernel.h"

namespace kiln::kernels {

struct ReduceSumConfig {
  int block = 2048; ///< elements of a tile
  int warps = 4;
  bool adjacent = true; ///< the stride of x is 1 (and not used); partial kernel only
};

/// f32, f16, bf16, summed in fp32.
language::Kernel reduceSumPartial(DType element, const ReduceSumConfig &config = {});
language::Kernel reduceSumFinal(DType element, const ReduceSumConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_REDUCE_SUM_REDUCESUM_H
