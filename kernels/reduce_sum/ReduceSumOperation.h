//===- ReduceSumOperation.h - The sum of all elements, as users call it --------===//
#ifndef KILN_KERNELS_REDUCE_SUM_REDUCESUMOPERATION_H
#define KILN_KERNELS_REDUCE_SUM_REDUCESUMOPERATION_H

#include "kernels/reduce_sum/ReduceSum.h"
#include "kernels/support/KernelTable.h"

namespace kiln::kernels {

/// x: dense of any rank, or of rank 1 with any stride; f32, f16 or bf16, summed in fp32.  out: one element of x's type.
/// Two launches and a workspace; the order is fixed, so two runs are bit-equal.
struct ReduceSumArguments {
  Tensor x, out;
};

class ReduceSumOperation : public Operation<ReduceSumArguments> {
public:
  explicit ReduceSumOperation(Jit &jit, ReduceSumConfig config = {}) : Operation(jit), config(config) {}
  std::string_view name() const override { return "reduce_sum"; }
  Status check(const ReduceSumArguments &arguments) const override;

protected:
  Status plan(const ReduceSumArguments &arguments, Plan &plan) const override;

private:
  /// Programs of the first launch: enough to fill a GPU, and the same on every device.
  std::int64_t programs(const ReduceSumArguments &arguments) const;
  ReduceSumConfig config;
  mutable KernelTable<ReduceSumConfig> partial, final;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_REDUCE_SUM_REDUCESUMOPERATION_H
