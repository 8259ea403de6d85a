#include "kernels/copy/CopyOperation.h"

#include "kernels/support/AnyElement.h"
#include "kernels/support/Grid.h"

namespace kiln::kernels {

Status CopyOperation::check(const CopyArguments &a) const {
  const Device &device = jit().device();
  KILN_TRY(checkTensor("x", a.x).on(device).rankBetween(0, 4).status());
  return checkTensor("out", a.out)
      .on(device)
      .dtypeOf("x", a.x)
      .shapeOf("x", a.x)
      .writable()
      .notOverlapping("x", a.x)
      .status();
}

Status CopyOperation::plan(const CopyArguments &a, Plan &plan) const {
  const std::int64_t n = a.out.elements();
  if (n == 0)
    return {};
  CopyConfig c = config;
  c.block = config.blockFor(dtypeBytes(a.x.dtype));
  c.strided = !(a.x.isDense() && a.out.isDense());
  const auto element = bitsType(a.x.dtype);
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element}, c, [&] { return copy(element, c); }));
  if (!c.strided) {
    KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(n, c.block)));
    return plan.launch(*kernel, grid, named<"x">(asBits(a.x)), named<"out">(asBits(a.out)), named<"n">(n));
  }
  const Tensor x = inFourDims(asBits(a.x)), out = inFourDims(asBits(a.out));
  KILN_ASSIGN(const Dim3 grid,
              gridOf(name(), out.shape[0] * out.shape[1] * out.shape[2] * ceilDiv(out.shape[3], c.block)));
  return plan.launch(*kernel, grid, named<"x">(x), named<"out">(out));
}

} // namespace kiln::kernels
