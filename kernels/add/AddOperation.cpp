#include "kernels/add/AddOperation.h"

#include "kernels/support/Grid.h"

namespace kiln::kernels {

Status AddOperation::check(const AddArguments &a) const {
  const Device &device = jit().device();
  KILN_TRY(checkTensor("x", a.x).on(device).dtype({DType::F32, DType::F16, DType::BF16}).rankBetween(0, 4).status());
  KILN_TRY(checkTensor("y", a.y).on(device).dtypeOf("x", a.x).shapeOf("x", a.x).status());
  return checkTensor("out", a.out)
      .on(device)
      .dtypeOf("x", a.x)
      .shapeOf("x", a.x)
      .writable()
      .notOverlapping("x", a.x)
      .notOverlapping("y", a.y)
      .status();
}

Status AddOperation::plan(const AddArguments &a, Plan &plan) const {
  const std::int64_t n = a.out.elements();
  if (n == 0)
    return {};
  AddConfig c = config;
  c.strided = !(a.x.isDense() && a.y.isDense() && a.out.isDense());
  const auto element = kernelElement(a.x.dtype);
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element}, c, [&] { return add(element, c); }));
  if (!c.strided) {
    KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(n, c.block)));
    return plan.launch(*kernel, grid, named<"x">(a.x), named<"y">(a.y), named<"out">(a.out), named<"n">(n));
  }
  const Tensor x = inFourDims(a.x), y = inFourDims(a.y), out = inFourDims(a.out);
  KILN_ASSIGN(const Dim3 grid,
              gridOf(name(), out.shape[0] * out.shape[1] * out.shape[2] * ceilDiv(out.shape[3], c.block)));
  return plan.launch(*kernel, grid, named<"x">(x), named<"y">(y), named<"out">(out));
}

} // namespace kiln::kernels
