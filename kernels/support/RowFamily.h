//===- RowFamily.h - Families from rows x to rows out of the same type --------===//
#ifndef KILN_KERNELS_SUPPORT_ROWFAMILY_H
#define KILN_KERNELS_SUPPORT_ROWFAMILY_H

#include "kernels/support/Family.h"

namespace kiln::kernels {

/// x, read once, and out, written once: columns, or rows x columns.
class RowFamily : public Family {
public:
  std::vector<TensorParameter> tensors() const override {
    return {{"x", false, false, "columns, or rows x columns; f32, f16 or bf16"},
            {"out", true, false, "of x's shape and type"}};
  }
  Result<TensorTypes> outputs(const TensorTypes &inputs, const Numbers &) const override {
    return TensorTypes{{"out", inputs.at("x")}};
  }
  double bytes(const Call &call) const override {
    const Tensor &x = call.tensors.at("x");
    return 2.0 * static_cast<double>(x.elements()) * dtypeBytes(x.dtype);
  }
  TensorTypes example(DType dtype, bool large) const override {
    return {{"x", {dtype, large ? Shape{8192, 8192} : Shape{64, 1000}}}};
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_ROWFAMILY_H
