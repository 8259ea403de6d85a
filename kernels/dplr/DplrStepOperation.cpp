#include "kernels/dplr/DplrStepOperation.h"

#include "kernels/support/Grid.h"

namespace kiln::kernels {
namespace {

DplrInputs inputsOf(const DplrStepArguments &a) {
  DplrInputs in{a.q, a.k, a.v, a.a, a.b, a.g};
  in.initialState = a.initialState, in.cuSeqlens = a.cuSeqlens, in.scale = a.scale;
  return in;
}

/// By extents and the device; never by the number of tokens.
DplrStepConfig stepConfigOf(const Device &device, const DplrInputs &in, const std::optional<Tensor> &last) {
  DplrStepConfig c;
  c.dim = tileWidth(in.dim());
  // A thread has at most 64 numbers of the state; then as many programs as multiprocessors, if there are that many.
  // Rows of 8 columns are a sector of an f32 state.
  const auto programs = [&](int columns) { return in.sequences() * in.heads() * ceilDiv(in.dimV(), columns); };
  c.blockV = 64;
  while (c.blockV > 8 && (c.blockV * c.dim > 64 * 32 || c.blockV / 2 >= in.dimV() ||
                          programs(c.blockV) < device.info().multiprocessors))
    c.blockV /= 2;
  c.packed = in.cuSeqlens.has_value();
  c.gates = in.g.dtype;
  c.lastState = last ? last->dtype : DType::F32;
  c.state = in.initialState ? in.initialState->dtype : c.lastState;
  if (in.cuSeqlens && in.cuSeqlens->dtype == DType::I32)
    c.offsets = DType::I32;
  return c;
}

} // namespace

Status DplrStepPlanner::check(const DplrStepArguments &a) const {
  const Device &device = jit.device();
  const DplrInputs in = inputsOf(a);
  KILN_TRY(checkInputs(device, words, in, {DType::F32, DType::F16, DType::BF16}));
  auto o = checkTensor("o", a.o).on(device).dtypeOf("v", a.v).shapeOf("v", a.v).stride(3, 1);
  if (in.tokens()) // without any, strides may be whatever they are
    o.writable();
  KILN_TRY(o.status());
  KILN_TRY(checkApart(words, in, "o", a.o));
  if (a.initialState)
    KILN_TRY(checkTensor("o", a.o).apartFrom("initial_state", *a.initialState).status());
  if (!a.finalState)
    return {};
  if (a.initialState)
    KILN_TRY(checkState(device, words, in, "final_state", *a.finalState, {DType::F32, a.initialState->dtype}, true));
  else
    KILN_TRY(checkState(device, words, in, "final_state", *a.finalState, {DType::F32, DType::F16, DType::BF16}, true));
  KILN_TRY(checkApart(words, in, "final_state", *a.finalState));
  return checkTensor("final_state", *a.finalState).apartFrom("o", a.o).status();
}

Status DplrStepPlanner::plan(const DplrStepArguments &a, Plan &plan) const {
  const DplrInputs in = inputsOf(a);
  if (in.sequences() == 0 || in.heads() == 0 || (in.tokens() == 0 && !a.finalState))
    return {};
  const DplrStepConfig c = stepConfigOf(jit.device(), in, a.finalState);
  const auto element = kernelElement(a.q.dtype);
  KILN_ASSIGN(JitKernel * kernel, kernels.get(jit, {element}, c, [&] { return dplrStep(element, c); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(words.operation, in.sequences() * in.heads() * ceilDiv(in.dimV(), c.blockV)));
  return plan.launch(*kernel, grid, named<"q">(a.q), named<"k">(a.k), named<"v">(a.v), named<"a">(a.a), named<"b">(a.b),
                     named<"g">(a.g), named<"h0">(a.initialState.value_or(Tensor())),
                     named<"cu_seqlens">(a.cuSeqlens.value_or(Tensor())), named<"o">(a.o),
                     named<"ht">(a.finalState.value_or(Tensor())), named<"scale">(scaleOf(in)));
}

DplrStepArguments Rwkv7StepOperation::asDplr(const Rwkv7StepArguments &a) {
  return {a.r, a.k, a.v, a.a, a.b, a.w, a.o, a.initialState, a.finalState, a.cuSeqlens, a.scale.value_or(1.0f)};
}

} // namespace kiln::kernels
