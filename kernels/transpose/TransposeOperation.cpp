#include "kernels/transpose/TransposeOperation.h"

#include "kernels/support/AnyElement.h"
#include "kernels/support/Grid.h"

namespace kiln::kernels {
namespace {

/// The dimension whose stride is 1; -1 if there is none.
int unitOf(const Tensor &t) {
  return t.strides[1] == 1 ? 1 : t.strides[0] == 1 ? 0 : -1;
}

} // namespace

Status TransposeOperation::check(const TransposeArguments &a) const {
  const Device &device = jit().device();
  KILN_TRY(checkTensor("x", a.x).on(device).rank(2).status());
  return checkTensor("out", a.out)
      .on(device)
      .dtypeOf("x", a.x)
      .rank(2)
      .extent(0, a.x.shape[1], "the columns of x")
      .extent(1, a.x.shape[0], "the rows of x")
      .writable()
      .notOverlapping("x", a.x.transposed(0, 1))
      .status();
}

Status TransposeOperation::plan(const TransposeArguments &a, Plan &plan) const {
  const std::int64_t rows = a.x.shape[0], columns = a.x.shape[1];
  if (rows == 0 || columns == 0)
    return {};
  TransposeConfig c = config;
  c.xUnit = unitOf(a.x);
  c.outUnit = unitOf(a.out);
  const auto element = bitsType(a.x.dtype);
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element}, c, [&] { return transpose(element, c); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(rows, c.tileRows) * ceilDiv(columns, c.tileColumns)));
  return plan.launch(*kernel, grid, named<"x">(asBits(a.x)), named<"out">(asBits(a.out)));
}

} // namespace kiln::kernels
