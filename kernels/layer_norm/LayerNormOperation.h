//===- LayerNormOperation.h - Layer normalisation of rows, as users call it ---===//
#ifndef KILN_KERNELS_LAYER_NORM_LAYERNORMOPERATION_H
#define KILN_KERNELS_LAYER_NORM_LAYERNORMOPERATION_H

#include "kernels/layer_norm/LayerNorm.h"
#include "kernels/support/CallOptions.h"
#include "kernels/support/KernelTable.h"
#include "kernels/support/Rows.h"

namespace kiln::kernels {

/// x: rank 1 or 2, f32, f16 or bf16, any strides, normalised along the last dimension.  weight and bias: rank 1, x's
/// type and number of columns, adjacent; both or neither (address 0).  `out` may be x itself.
struct LayerNormArguments {
  Tensor x, weight, bias, out;
  float eps = 1e-5f;

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) {
    v(CallOption{"eps", "added to the variance"}, a.eps);
  }

  /// Both or neither; a default Tensor is none.
  bool affine() const { return given(weight) || given(bias); }
  static bool given(const Tensor &t) { return t.address != 0 || t.device != nullptr; }
};

class LayerNormOperation : public Operation<LayerNormArguments> {
public:
  using Operation::Operation;
  std::string_view name() const override { return "layer_norm"; }
  Status check(const LayerNormArguments &arguments) const override;

protected:
  Status plan(const LayerNormArguments &arguments, Plan &plan) const override;

private:
  mutable KernelTable<LayerNormConfig> variants;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_LAYER_NORM_LAYERNORMOPERATION_H
