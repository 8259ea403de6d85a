//===- SoftmaxOperation.h - Softmax of rows, as users call it -----------------===//
#ifndef KILN_KERNELS_SOFTMAX_SOFTMAXOPERATION_H
#define KILN_KERNELS_SOFTMAX_SOFTMAXOPERATION_H

#include "kernels/softmax/Softmax.h"
#include "kernels/support/KernelTable.h"
#include "kernels/support/Rows.h"

namespace kiln::kernels {

/// Rank 1 or 2, f32, f16 or bf16, any strides; softmax along the last dimension.  `out` may be x itself.
struct SoftmaxArguments {
  Tensor x, out;
};

class SoftmaxOperation : public Operation<SoftmaxArguments> {
public:
  using Operation::Operation;
  std::string_view name() const override { return "softmax"; }
  Status check(const SoftmaxArguments &a) const override { return checkRows(jit().device(), a.x, a.out); }

protected:
  Status plan(const SoftmaxArguments &a, Plan &plan) const override;

private:
  mutable KernelTable<SoftmaxConfig> variants;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SOFTMAX_SOFTMAXOPERATION_H
