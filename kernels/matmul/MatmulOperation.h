//===- MatmulOperation.h - Matrix products, as users call them ----------------===//
#ifndef KILN_KERNELS_MATMUL_MATMULOPERATION_H
#define KILN_KERNELS_MATMUL_MATMULOPERATION_H

#include "kernels/matmul/Matmul.h"
#include "kernels/support/KernelVariants.h"

#include <optional>

namespace kiln::kernels {

/// out = activation(scale * a x b + bias).  a: [M, K], b: [K, N], out: [M, N], each with a batch in front or not (one
/// without serves every batch); any strides, those of out without repetition.
///
/// | a and b | out |
/// |---|---|
/// | f16, bf16, f32 | the same type, or f32 |
/// | e4m3, e5m2 | f32, f16, bf16 |
/// | i8 | i32; no bias, scale or activation |
struct MatmulArguments {
  Tensor a, b, out;
  std::optional<Tensor> bias = {}; ///< [N], of out's type
  float scale = 1;
  Activation activation = Activation::None;
  language::Precision precision = language::Precision::Ieee; ///< of f32
};

class MatmulOperation : public Operation<MatmulArguments> {
public:
  using Operation::Operation;
  std::string_view name() const override { return "matmul"; }
  /// Names what is wrong: type, rank, an extent that does not belong to the others, overlap, an option that the types
  /// do not have.
  Status check(const MatmulArguments &arguments) const override;

protected:
  Status launch(const MatmulArguments &arguments, Stream *stream, DeviceAddress workspace) override;

private:
  KernelVariants variants;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_MATMUL_MATMULOPERATION_H
