#include "kernels/add/AddOperation.h"

#include "kernels/support/Grid.h"

namespace kiln::kernels {

Status AddOperation::check(const AddArguments &a) const {
  const Device &device = jit().device();
  KILN_TRY(checkTensor("x", a.x).on(device).dtype({DType::F32, DType::F16, DType::Bf16}).rankBetween(0, 4).status());
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

Status AddOperation::launch(const AddArguments &a, Stream *stream, DeviceAddress) {
  const std::int64_t n = a.out.elements();
  if (n == 0)
    return {};
  AddConfig c = config;
  c.strided = !(a.x.isDense() && a.y.isDense() && a.out.isDense());
  KILN_ASSIGN(JitKernel * kernel,
              slots.get(jit(), 2 * floatIndex(a.x.dtype) + c.strided, [&] { return add(elementOf(a.x.dtype), c); }));
  if (!c.strided) {
    KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(n, c.block)));
    return kernel->launch(grid, stream, a.x, a.y, a.out, n);
  }
  const auto e = FourDims(a.out).extents;
  const auto x = FourDims::strides(a.x), y = FourDims::strides(a.y), o = FourDims::strides(a.out);
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), e[0] * e[1] * e[2] * ceilDiv(e[3], c.block)));
  return kernel->launch(grid, stream, a.x, x[0], x[1], x[2], x[3], a.y, y[0], y[1], y[2], y[3], a.out, o[0], o[1], o[2],
                        o[3], e[1], e[2], e[3]);
}

} // namespace kiln::kernels
