//===- TransposeOperation.h - out[j, i] = x[i, j], as users call it ------------===//
#ifndef KILN_KERNELS_TRANSPOSE_TRANSPOSEOPERATION_H
#define KILN_KERNELS_TRANSPOSE_TRANSPOSEOPERATION_H

#include "kernels/support/KernelTable.h"
#include "kernels/transpose/Transpose.h"

namespace kiln::kernels {

/// x: rows x columns, out: columns x rows, of one type, any strides.
struct TransposeArguments {
  Tensor x, out;
};

class TransposeOperation : public Operation<TransposeArguments> {
public:
  explicit TransposeOperation(Jit &jit, TransposeConfig config = {}) : Operation(jit), config(config) {}
  std::string_view name() const override { return "transpose"; }
  Status check(const TransposeArguments &arguments) const override;

protected:
  Status plan(const TransposeArguments &arguments, Plan &plan) const override;

private:
  TransposeConfig config;
  mutable KernelTable<TransposeConfig> variants;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_TRANSPOSE_TRANSPOSEOPERATION_H
