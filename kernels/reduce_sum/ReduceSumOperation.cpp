#include "kernels/reduce_sum/ReduceSumOperation.h"

#include "kernels/support/Grid.h"

namespace kiln::kernels {

Status ReduceSumOperation::check(const ReduceSumArguments &a) const {
  const Device &device = jit().device();
  KILN_TRY(checkTensor("x", a.x).on(device).dtype({DType::F32, DType::F16, DType::BF16}).status());
  if (a.x.rank != 1)
    KILN_TRY(checkTensor("x", a.x).dense().status());
  KILN_TRY(checkTensor("out", a.out).on(device).dtypeOf("x", a.x).writable().notOverlapping("x", a.x).status());
  if (a.out.elements() != 1)
    return Status::invalid("out is " + a.out.toString() + ", and the sum is one element", "give it one element");
  return {};
}

std::int64_t ReduceSumOperation::programs(const ReduceSumArguments &a) const {
  return std::clamp<std::int64_t>(ceilDiv(a.x.elements(), config.block), 1, 1024);
}

Status ReduceSumOperation::plan(const ReduceSumArguments &a, Plan &plan) const {
  const std::int64_t n = a.x.elements(), count = programs(a), stride = a.x.rank == 1 ? a.x.strides[0] : 1;
  ReduceSumConfig c = config;
  c.adjacent = stride == 1 || n <= 1;
  const auto element = kernelElement(a.x.dtype);
  KILN_ASSIGN(JitKernel * first, partial.get(jit(), {element}, c, [&] { return reduceSumPartial(element, c); }));
  KILN_ASSIGN(JitKernel * second, final.get(jit(), {element}, config, [&] { return reduceSumFinal(element, config); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), count));
  const auto vector = [](Tensor t, DeviceAddress address, DType dtype, std::int64_t elements, std::int64_t step) {
    t.address = address, t.dtype = dtype, t.rank = 1, t.shape[0] = elements, t.strides[0] = step;
    return t;
  };
  KILN_ASSIGN(const auto parts, plan.workspace({{"partial sums", static_cast<std::size_t>(count) * sizeof(float)}}));
  const Tensor sums = vector({}, parts[0], DType::F32, count, 1);
  KILN_TRY(
      plan.launch(*first, grid, named<"x">(vector(a.x, a.x.address, a.x.dtype, n, stride)), named<"partial">(sums)));
  return plan.launch(*second, Dim3{}, named<"partial">(sums),
                     named<"out">(vector(a.out, a.out.address, a.out.dtype, 1, 1)));
}

} // namespace kiln::kernels
