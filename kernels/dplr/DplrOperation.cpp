#include "kernels/dplr/DplrOperation.h"

#include "kernels/dplr/Decay.h"
#include "kernels/support/Grid.h"
#include "kernels/support/KernelSlots.h"
#include "support/Text.h"

#include <cmath>

namespace kiln::kernels {
namespace {

constexpr std::int64_t largestDim = 128;
/// 2^k or 3 2^k, at least 16: two such widths make a tile.
int tileWidth(std::int64_t columns) {
  std::int64_t width = 16;
  while (width < columns)
    width = width % 3 == 0 ? width / 3 * 4 : width >= 32 && width / 2 * 3 >= columns ? width / 2 * 3 : width * 2;
  return static_cast<int>(width);
}

language::ElementType elementOfOffsets(const std::optional<Tensor> &cu) {
  return cu && cu->dtype == DType::I32 ? language::ElementType::I32 : language::ElementType::I64;
}

} // namespace

std::int64_t slotsOf(const DplrInputs &in, int chunk) {
  return in.cuSeqlens ? in.tokens() / chunk + in.sequences() : in.batch() * ceilDiv(in.tokens(), chunk);
}

Tensor workspaceTensor(DeviceAddress address, DType dtype, std::int64_t heads, std::int64_t rows,
                       std::int64_t columns) {
  Tensor t;
  t.address = address, t.dtype = dtype, t.rank = 3;
  t.shape = {heads, rows, columns};
  t.strides = {rows * columns, columns, 1};
  return t;
}

Tensor bySlot(const Tensor &part, std::int64_t slots) {
  Tensor t = part;
  const std::int64_t rows = part.shape[1] / std::max<std::int64_t>(1, slots);
  t.rank = 4;
  t.shape = {part.shape[0], slots, rows, part.shape[2]};
  t.strides = {part.strides[0], rows * part.shape[2], part.shape[2], 1};
  return t;
}

float scaleOf(const DplrInputs &in) {
  return in.scale.value_or(1 / std::sqrt(static_cast<float>(in.dim())));
}

Status checkInputs(const Device &device, const DplrWords &words, const DplrInputs &in) {
  const std::string operation = words.operation;
  KILN_TRY(checkTensor(words.q, in.q).on(device).dtype({DType::F16, DType::Bf16}).rank(4).stride(3, 1).status());
  const auto badDim = [&](const char *name, std::int64_t value) {
    return Status::invalid(operation + ": argument '" + name + "' has " + std::to_string(value) +
                               " columns: from 1 to " + std::to_string(largestDim),
                           "split the heads");
  };
  if (in.dim() < 1 || in.dim() > largestDim)
    return badDim(words.q, in.dim());
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
  KILN_TRY(v.status());
  if (in.dimV() < 1 || in.dimV() > largestDim)
    return badDim("v", in.dimV());
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
    KILN_TRY(checkState(device, words, in, "initial_state", *in.initialState, {DType::F32, DType::F16, DType::Bf16},
                        false));
  if (in.scale && !std::isfinite(*in.scale))
    return Status::invalid(format("%s: scale = %g", words.operation, static_cast<double>(*in.scale)),
                           "give a finite number");
  if (in.lowerBound && !(*in.lowerBound < 0))
    return Status::invalid(format("%s: lower_bound = %g: log decays are below 0", words.operation,
                                  static_cast<double>(*in.lowerBound)),
                           "give a number below 0, or none");
  if (in.chunkSize != 0 && in.chunkSize != 16 && in.chunkSize != 32 && in.chunkSize != 64)
    return Status::invalid(operation + ": chunk_size = " + std::to_string(in.chunkSize) + ": 16, 32 or 64",
                           "give 0 to have it chosen");
  if (in.tokens() > 1 << 30 || in.sequences() > 1 << 30)
    return Status::invalid(operation + ": " + std::to_string(in.tokens()) + " tokens in " +
                               std::to_string(in.sequences()) + " sequences; the limit of each is 2^30",
                           "split the call");
  return {};
}

Status checkOutput(const Device &device, const DplrWords &words, const DplrInputs &in, const char *name,
                   const Tensor &tensor, const char *like, const Tensor &likeTensor) {
  auto out = checkTensor(name, tensor)
                 .on(device)
                 .dtypeOf(like, likeTensor)
                 .shapeOf(like, likeTensor)
                 .stride(3, 1)
                 .writable();
  for (const auto &[other, t] : {std::pair(words.q, &in.q), {"k", &in.k}, {"v", &in.v}, {"a", &in.a}, {"b", &in.b},
                                 {words.g, &in.g}})
    out.notOverlapping(other, *t);
  return out.status();
}

Status checkState(const Device &device, const DplrWords &words, const DplrInputs &in, const char *name,
                  const Tensor &state, std::initializer_list<DType> types, bool isOutput) {
  auto check = checkTensor(name, state)
                   .on(device)
                   .dtype(types)
                   .rank(4)
                   .extent(0, in.sequences(), "one for each sequence")
                   .extent(1, in.heads(), "one for each head")
                   .extent(2, in.dim(), std::string("the columns of ") + words.q)
                   .extent(3, in.dimV(), "the columns of v")
                   .stride(3, 1);
  if (isOutput) {
    check.writable();
    if (in.initialState)
      check.notOverlapping("initial_state", *in.initialState);
  }
  return check.status();
}

DplrConfig configOf(const Device &device, const DplrInputs &in) {
  DplrConfig c;
  c.chunk = in.chunkSize ? static_cast<int>(in.chunkSize) : 64;
  c.dim = tileWidth(in.dim()), c.dimV = tileWidth(in.dimV());
  c.warps = 8;
  // A safe gate promises -5 (S4).  Where half a chunk of the bound sums up to too much, each chunk is looked at.
  const std::optional<float> bound = in.lowerBound ? in.lowerBound : in.safeGate ? std::optional(-5.0f) : std::nullopt;
  c.bounded = bound && *bound * static_cast<float>(c.chunk / 2) >= lowestSum;
  c.packed = in.cuSeqlens.has_value();
  c.initial = in.initialState.has_value();
  // The widest power of two that divides the tile and keeps every multiprocessor busy.
  c.blockV = std::min(64, c.dimV & -c.dimV);
  while (c.blockV > 16 &&
         in.sequences() * in.heads() * ceilDiv(in.dimV(), c.blockV) < device.info().multiprocessors)
    c.blockV /= 2;
  c.chainWarps = c.blockV / 16;
  c.gates = elementOf(in.g.dtype);
  c.state = in.initialState ? elementOf(in.initialState->dtype) : language::ElementType::F32;
  c.offsets = elementOfOffsets(in.cuSeqlens);
  return c;
}

DplrInputs DplrPlanner::inputsOf(const DplrArguments &a) {
  return {a.q, a.k, a.v, a.a, a.b, a.g, a.initialState, a.cuSeqlens, a.scale, a.safeGate, a.lowerBound, a.chunkSize};
}

Status DplrPlanner::check(const DplrArguments &a) const {
  const Device &device = jit.device();
  const DplrInputs in = inputsOf(a);
  KILN_TRY(checkInputs(device, words, in));
  KILN_TRY(checkOutput(device, words, in, "o", a.o, "v", a.v));
  if (!a.finalState)
    return {};
  KILN_TRY(checkState(device, words, in, "final_state", *a.finalState, {DType::F32}, true));
  return checkTensor("final_state", *a.finalState).notOverlapping("o", a.o).status();
}

Status DplrPlanner::plan(const DplrArguments &a, Plan &plan) const {
  const DplrInputs in = inputsOf(a);
  if (in.sequences() == 0 || in.heads() == 0)
    return {};
  DplrConfig c = configOf(jit.device(), in);
  c.final = a.finalState.has_value();
  const std::int64_t slots = slotsOf(in, c.chunk);
  const auto element = elementOf(a.q.dtype);
  const auto bytes = [&](std::int64_t elements, std::int64_t size) {
    return static_cast<std::size_t>(in.heads() * slots * elements * size);
  };
  KILN_ASSIGN(const auto parts, plan.workspace({{"f", bytes(c.dim * c.dim, 2)},
                                                {"r", bytes(c.dimV * c.dim, 2)},
                                                {"qh", bytes(c.chunk * c.dim, 2)},
                                                {"oh", bytes(c.dimV * c.chunk, 2)},
                                                {"decay", bytes(c.dim, 4)}}));
  const auto part = [&](unsigned n, std::int64_t rows, std::int64_t columns, DType dtype) {
    return workspaceTensor(parts[n], dtype, in.heads(), slots * rows, columns);
  };
  const Tensor f = part(0, c.dim, c.dim, a.q.dtype), rt = part(1, c.dimV, c.dim, a.q.dtype),
               qh = part(2, c.chunk, c.dim, a.q.dtype), oht = part(3, c.dimV, c.chunk, a.q.dtype),
               decay = part(4, 1, c.dim, DType::F32);
  const Tensor cu = a.cuSeqlens.value_or(Tensor());
  if (slots) {
    const DplrConfig mine = ofChunks(c);
    KILN_ASSIGN(JitKernel * kernel, maps.get(jit, {a.q.dtype, mine}, [&] { return dplrMaps(element, mine); }));
    KILN_ASSIGN(const Dim3 grid, gridOf(words.operation, slots * in.heads()));
    KILN_TRY(plan.launch(*kernel, grid, named<"q">(a.q), named<"k">(a.k), named<"v">(a.v), named<"a">(a.a),
                         named<"b">(a.b), named<"g">(a.g), named<"cu_seqlens">(cu), named<"f">(bySlot(f, slots)),
                         named<"rt">(bySlot(rt, slots)), named<"qh">(bySlot(qh, slots)),
                         named<"oht">(bySlot(oht, slots)), named<"decay">(decay), named<"sequences">(static_cast<std::int32_t>(in.sequences())),
                         named<"scale">(scaleOf(in))));
  }
  const DplrConfig mine = ofChain(c);
  KILN_ASSIGN(JitKernel * kernel, outs.get(jit, {a.q.dtype, mine}, [&] { return dplrOut(element, mine); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(words.operation, in.sequences() * in.heads() * ceilDiv(in.dimV(), c.blockV)));
  return plan.launch(*kernel, grid, named<"h0">(a.initialState.value_or(Tensor())), named<"f">(f), named<"rt">(rt),
                     named<"qh">(qh), named<"oht">(oht), named<"decay">(decay), named<"cu_seqlens">(cu),
                     named<"o">(a.o), named<"ht">(a.finalState.value_or(Tensor())));
}

DplrArguments Rwkv7Operation::asDplr(const Rwkv7Arguments &a) {
  return {a.r,          a.k,          a.v,       a.a,           a.b,       a.w, a.o, a.initialState, a.finalState,
          a.cuSeqlens, a.scale.value_or(1.0f), a.safeGate, a.lowerBound, a.chunkSize};
}

} // namespace kiln::kernels
