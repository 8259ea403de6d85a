//===- CumsumOperation.h - Running sums of rows, as users call it -----------------===//
#ifndef KILN_KERNELS_CUMSUM_CUMSUMOPERATION_H
#define KILN_KERNELS_CUMSUM_CUMSUMOPERATION_H

#include "kernels/cumsum/Cumsum.h"
#include "kernels/support/KernelTable.h"
#include "kernels/support/Rows.h"

namespace kiln::kernels {

/// Rank 1 or 2, f32, f16 or bf16, any strides; sums along the last dimension, in fp32.  `out` may be x itself.
struct CumsumArguments {
  Tensor x, out;
};

class CumsumOperation : public Operation<CumsumArguments> {
public:
  using Operation::Operation;
  std::string_view name() const override { return "cumsum"; }
  Status check(const CumsumArguments &a) const override { return checkRows(jit().device(), a.x, a.out); }

protected:
  Status plan(const CumsumArguments &a, Plan &plan) const override;

private:
  mutable KernelTable<CumsumConfig> variants;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_CUMSUM_CUMSUMOPERATION_H
