#include "kernels/reduce_sum/ReduceSumOperation.h"

#include "kernels/support/Grid.h"

namespace kiln::kernels {

Status ReduceSumOperation::check(const ReduceSumArguments &a) const {
  const Device &device = jit().device();
  KILN_TRY(checkTensor("x", a.x).on(device).dtype({DType::F32, DType::F16, DType::Bf16}).status());
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

std::size_t ReduceSumOperation::workspaceBytes(const ReduceSumArguments &a) const {
  return static_cast<std::size_t>(programs(a)) * sizeof(float);
}

Status ReduceSumOperation::launch(const ReduceSumArguments &a, Stream *stream, DeviceAddress workspace) {
  const std::int64_t n = a.x.elements(), count = programs(a), stride = a.x.rank == 1 ? a.x.strides[0] : 1;
  ReduceSumConfig c = config;
  c.adjacent = stride == 1 || n <= 1;
  const unsigned dtype = floatIndex(a.x.dtype);
  KILN_ASSIGN(JitKernel * first,
              partial.get(jit(), 2 * dtype + c.adjacent, [&] { return reduceSumPartial(elementOf(a.x.dtype), c); }));
  KILN_ASSIGN(JitKernel * second,
              final.get(jit(), dtype, [&] { return reduceSumFinal(elementOf(a.x.dtype), config); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), count));
  KILN_TRY(first->launch(grid, stream, a.x, stride, static_cast<std::uint64_t>(workspace), n));
  return second->launch(Dim3{}, stream, static_cast<std::uint64_t>(workspace), a.out, count);
}

} // namespace kiln::kernels
