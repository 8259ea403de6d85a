#include "kernels/dplr/DplrStepOperation.h"

#include "kernels/support/Grid.h"
#include "kernels/support/KernelSlots.h"
#include "support/Text.h"

#include <cmath>

namespace kiln::kernels {
namespace {

/// A head's rows have a place in one warp's registers, next to 8 columns of the state.
constexpr std::int64_t largestDim = 256;

DplrInputs inputsOf(const DplrStepArguments &a) {
  DplrInputs in{a.q, a.k, a.v, a.a, a.b, a.g};
  in.initialState = a.initialState, in.cuSeqlens = a.cuSeqlens, in.scale = a.scale;
  return in;
}

/// As DplrOperation's checkInputs, of these types and extents.
Status checkStepInputs(const Device &device, const DplrWords &words, const DplrInputs &in) {
  const std::string operation = words.operation;
  KILN_TRY(
      checkTensor(words.q, in.q).on(device).dtype({DType::F32, DType::F16, DType::Bf16}).rank(4).stride(3, 1).status());
  if (in.dim() < 1 || in.dim() > largestDim)
    return Status::invalid(operation + ": argument '" + words.q + "' has " + std::to_string(in.dim()) +
                               " columns: from 1 to " + std::to_string(largestDim),
                           "split the heads");
  for (const auto &[name, t] : {std::pair("k", &in.k), {"a", &in.a}, {"b", &in.b}})
    KILN_TRY(checkTensor(name, *t).on(device).dtypeOf(words.q, in.q).shapeOf(words.q, in.q).stride(3, 1).status());
  KILN_TRY(checkTensor(words.g, in.g)
               .on(device)
               .dtype({DType::F32, in.q.dtype})
               .shapeOf(words.q, in.q)
               .stride(3, 1)
               .status());
  auto v = checkTensor("v", in.v).on(device).dtypeOf(words.q, in.q).rank(4).stride(3, 1);
  const std::string asQ = std::string("as of ") + words.q;
  for (unsigned d = 0; d < 3; ++d)
    v.extent(d, in.q.shape[d], asQ);
  KILN_TRY(v.extentAtMost(3, 1 << 30).status());
  if (in.dimV() < 1)
    return Status::invalid(operation + ": argument 'v' has no columns", "give at least one");
  if (in.cuSeqlens) {
    if (in.batch() != 1)
      return Status::invalid(operation + ": cu_seqlens is given, and the batch is " + std::to_string(in.batch()),
                             "pack the sequences into one batch: [1, T, H, K]");
    KILN_TRY(checkTensor("cu_seqlens", *in.cuSeqlens)
                 .on(device)
                 .dtype({DType::I32, DType::I64})
                 .rank(1)
                 .stride(0, 1)
                 .status());
    if (in.cuSeqlens->shape[0] < 1)
      return Status::invalid(operation + ": cu_seqlens is empty", "give N + 1 offsets, the first of them 0");
  }
  if (in.initialState)
    KILN_TRY(
        checkState(device, words, in, "initial_state", *in.initialState, {DType::F32, DType::F16, DType::Bf16}, false));
  if (in.scale && !std::isfinite(*in.scale))
    return Status::invalid(format("%s: scale = %g", words.operation, static_cast<double>(*in.scale)),
                           "give a finite number");
  if (in.tokens() > 1 << 30 || in.sequences() > 1 << 30)
    return Status::invalid(operation + ": " + std::to_string(in.tokens()) + " tokens in " +
                               std::to_string(in.sequences()) + " sequences; the limit of each is 2^30",
                           "split the call");
  return {};
}

/// Programs read whole rows of tokens while others write: not even the same window will do.
Status apart(const DplrWords &words, const char *name, const Tensor &out, const char *other, const Tensor &tensor) {
  // One dimension more, and no two windows are the same.
  if (checkTensor(name, out).notOverlapping(other, withDim(tensor, 0, 1, 0)).status().ok())
    return {};
  return Status::invalid(format("%s: argument '%s' (%s) overlaps '%s' (%s)", words.operation, name,
                                out.toString().c_str(), other, tensor.toString().c_str()),
                         "use memory of its own");
}

Status apartFromInputs(const DplrWords &words, const DplrInputs &in, const char *name, const Tensor &out) {
  for (const auto &[other, t] :
       {std::pair(words.q, &in.q), {"k", &in.k}, {"v", &in.v}, {"a", &in.a}, {"b", &in.b}, {words.g, &in.g}})
    KILN_TRY(apart(words, name, out, other, *t));
  if (in.cuSeqlens)
    KILN_TRY(apart(words, name, out, "cu_seqlens", *in.cuSeqlens));
  return {};
}

/// 2^k or 3 2^k, at least 16.
int widthOfK(std::int64_t dim) {
  int width = 16;
  while (width < dim)
    width = width % 3 == 0 ? width / 3 * 4 : width >= 32 ? width / 2 * 3 : width * 2;
  return width;
}

/// By extents and the device; never by the number of tokens.
DplrStepConfig stepConfigOf(const Device &device, const DplrInputs &in, const std::optional<Tensor> &last) {
  DplrStepConfig c;
  c.dim = widthOfK(in.dim());
  // A thread has at most 64 numbers of the state; then as many programs as multiprocessors, if there are that many.
  // Rows of 8 columns are a sector of an f32 state.
  const auto programs = [&](int columns) { return in.sequences() * in.heads() * ceilDiv(in.dimV(), columns); };
  c.blockV = 64;
  while (c.blockV > 8 && (c.blockV * c.dim > 64 * 32 || c.blockV / 2 >= in.dimV() ||
                          programs(c.blockV) < device.info().multiprocessors))
    c.blockV /= 2;
  c.packed = in.cuSeqlens.has_value();
  c.gates = elementOf(in.g.dtype);
  c.lastState = last ? elementOf(last->dtype) : language::ElementType::F32;
  c.state = in.initialState ? elementOf(in.initialState->dtype) : c.lastState;
  if (in.cuSeqlens && in.cuSeqlens->dtype == DType::I32)
    c.offsets = language::ElementType::I32;
  return c;
}

} // namespace

Status DplrStepPlanner::check(const DplrStepArguments &a) const {
  const Device &device = jit.device();
  const DplrInputs in = inputsOf(a);
  KILN_TRY(checkStepInputs(device, words, in));
  auto o = checkTensor("o", a.o).on(device).dtypeOf("v", a.v).shapeOf("v", a.v).stride(3, 1);
  if (in.tokens()) // without any, strides may be whatever they are
    o.writable();
  KILN_TRY(o.status());
  KILN_TRY(apartFromInputs(words, in, "o", a.o));
  if (a.initialState)
    KILN_TRY(apart(words, "o", a.o, "initial_state", *a.initialState));
  if (!a.finalState)
    return {};
  if (a.initialState)
    KILN_TRY(checkState(device, words, in, "final_state", *a.finalState, {DType::F32, a.initialState->dtype}, true));
  else
    KILN_TRY(checkState(device, words, in, "final_state", *a.finalState, {DType::F32, DType::F16, DType::Bf16}, true));
  KILN_TRY(apartFromInputs(words, in, "final_state", *a.finalState));
  return apart(words, "final_state", *a.finalState, "o", a.o);
}

Status DplrStepPlanner::plan(const DplrStepArguments &a, Plan &plan) const {
  const DplrInputs in = inputsOf(a);
  if (in.sequences() == 0 || in.heads() == 0 || (in.tokens() == 0 && !a.finalState))
    return {};
  const DplrStepConfig c = stepConfigOf(jit.device(), in, a.finalState);
  KILN_ASSIGN(JitKernel * kernel, kernels.get(jit, {a.q.dtype, c}, [&] { return dplrStep(elementOf(a.q.dtype), c); }));
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
