//===- RowFamily.h - Families from rows x to rows out of the same type --------===//
#ifndef KILN_KERNELS_SUPPORT_ROWFAMILY_H
#define KILN_KERNELS_SUPPORT_ROWFAMILY_H

#include "kernels/support/Family.h"

namespace kiln::kernels {

/// x and out: columns, or rows x columns.
class RowCallable : public Callable {
public:
  std::vector<TensorParameter> tensors() const override {
    return {{"x", false, false, "columns, or rows x columns; f32, f16 or bf16"},
            {"out", true, false, "of x's shape and type"}};
  }
  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &) const override {
    return TensorTypes{{"out", inputs.at("x")}};
  }
};

class RowSamples : public Samples {
public:
  TensorTypes example(DType dtype, bool large) const override {
    return {{"x", {dtype, large ? Shape{8192, 8192} : Shape{64, 1000}}}};
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_ROWFAMILY_H
