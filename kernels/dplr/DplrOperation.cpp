#include "kernels/dplr/DplrOperation.h"

#include "kernels/support/Grid.h"
#include "kernels/support/KernelSlots.h"
#include "support/Text.h"

#include <cmath>

namespace kiln::kernels {
namespace {

constexpr std::int64_t largestDim = 128;
/// What `bounded` takes for granted (Decay.h): 16 rows of it sum up to -80.
constexpr float boundOfBlocks = -5;

/// 2^k or 3 2^k, at least 16: two such widths make a tile.
int tileWidth(std::int64_t columns) {
  std::int64_t width = 16;
  while (width < columns)
    width = width % 3 == 0 ? width / 3 * 4 : width >= 32 && width / 2 * 3 >= columns ? width / 2 * 3 : width * 2;
  return static_cast<int>(width);
}

struct Extents {
  std::int64_t batch, tokens, heads, dim, dimV, sequences;
  explicit Extents(const DplrArguments &a)
      : batch(a.q.shape[0]), tokens(a.q.shape[1]), heads(a.q.shape[2]), dim(a.q.shape[3]), dimV(a.v.shape[3]),
        sequences(a.cuSeqlens ? a.cuSeqlens->shape[0] - 1 : batch) {}
  std::int64_t slots(bool packed, int chunk) const {
    return packed ? tokens / chunk + sequences : batch * ceilDiv(tokens, chunk);
  }
};

/// A part of the workspace, dense, with the heads in front.
Tensor partOf(DeviceAddress address, DType dtype, std::int64_t heads, std::int64_t rows, std::int64_t columns) {
  Tensor t;
  t.address = address, t.dtype = dtype, t.rank = 3;
  t.shape = {heads, rows, columns};
  t.strides = {rows * columns, columns, 1};
  return t;
}

language::ElementType elementOfOffsets(const std::optional<Tensor> &cu) {
  return cu && cu->dtype == DType::I32 ? language::ElementType::I32 : language::ElementType::I64;
}

} // namespace

Status DplrPlanner::check(const DplrArguments &a) const {
  const Device &device = jit.device();
  const std::string operation = names.operation;
  KILN_TRY(checkTensor(names.q, a.q).on(device).dtype({DType::F16, DType::Bf16}).rank(4).stride(3, 1).status());
  const std::int64_t dim = a.q.shape[3];
  const auto badDim = [&](const char *name, std::int64_t value) {
    return Status::invalid(operation + ": argument '" + name + "' has " + std::to_string(value) +
                               " columns: from 1 to " + std::to_string(largestDim),
                           "split the heads");
  };
  if (dim < 1 || dim > largestDim)
    return badDim(names.q, dim);
  for (const auto &[name, t] : {std::pair("k", &a.k), std::pair("a", &a.a), std::pair("b", &a.b)})
    KILN_TRY(checkTensor(name, *t).on(device).dtypeOf(names.q, a.q).shapeOf(names.q, a.q).stride(3, 1).status());
  KILN_TRY(checkTensor(names.g, a.g)
               .on(device)
               .dtype({DType::F32, a.q.dtype})
               .shapeOf(names.q, a.q)
               .stride(3, 1)
               .status());
  auto v = checkTensor("v", a.v).on(device).dtypeOf(names.q, a.q).rank(4).stride(3, 1);
  const std::string asQ = std::string("as of ") + names.q;
  for (unsigned d = 0; d < 3; ++d)
    v.extent(d, a.q.shape[d], asQ);
  KILN_TRY(v.status());
  if (a.v.shape[3] < 1 || a.v.shape[3] > largestDim)
    return badDim("v", a.v.shape[3]);
  auto o = checkTensor("o", a.o).on(device).dtypeOf(names.q, a.q).shapeOf("v", a.v).stride(3, 1).writable();
  for (const auto &[name, t] : {std::pair(names.q, &a.q), {"k", &a.k}, {"v", &a.v}, {"a", &a.a}, {"b", &a.b},
                                {names.g, &a.g}})
    o.notOverlapping(name, *t);
  KILN_TRY(o.status());
  if (a.cuSeqlens) {
    if (a.q.shape[0] != 1)
      return Status::invalid(operation + ": cu_seqlens is given, and the batch is " + std::to_string(a.q.shape[0]),
                             "pack the sequences into one batch: [1, T, H, K]");
    KILN_TRY(checkTensor("cu_seqlens", *a.cuSeqlens)
                 .on(device)
                 .dtype({DType::I32, DType::I64})
                 .rank(1)
                 .stride(0, 1)
                 .status());
    if (a.cuSeqlens->shape[0] < 1)
      return Status::invalid(operation + ": cu_seqlens is empty", "give N + 1 offsets, the first of them 0");
  }
  const Extents e(a);
  for (const auto &[name, t] : {std::pair("initial_state", &a.initialState), {"final_state", &a.finalState}}) {
    if (!*t)
      continue;
    auto state = checkTensor(name, **t).on(device);
    if (t == &a.initialState)
      state.dtype({DType::F32, DType::F16, DType::Bf16});
    else
      state.dtype({DType::F32}).writable();
    KILN_TRY(state.rank(4)
                 .extent(0, e.sequences, "one for each sequence")
                 .extent(1, e.heads, "one for each head")
                 .extent(2, dim, std::string("the columns of ") + names.q)
                 .extent(3, e.dimV, "the columns of v")
                 .stride(3, 1)
                 .status());
  }
  if (a.finalState) {
    auto last = checkTensor("final_state", *a.finalState).notOverlapping("o", a.o);
    if (a.initialState)
      last.notOverlapping("initial_state", *a.initialState);
    KILN_TRY(last.status());
  }
  if (a.scale && !std::isfinite(*a.scale))
    return Status::invalid(format("%s: scale = %g", names.operation, static_cast<double>(*a.scale)),
                           "give a finite number");
  if (a.lowerBound && !(*a.lowerBound < 0))
    return Status::invalid(format("%s: lower_bound = %g: log decays are below 0", names.operation,
                                  static_cast<double>(*a.lowerBound)),
                           "give a number below 0, or none");
  if (a.chunkSize != 0 && a.chunkSize != 16 && a.chunkSize != 32 && a.chunkSize != 64)
    return Status::invalid(operation + ": chunk_size = " + std::to_string(a.chunkSize) + ": 16, 32 or 64",
                           "give 0 to have it chosen");
  if (e.tokens > 1 << 30 || e.sequences > 1 << 30)
    return Status::invalid(operation + ": " + std::to_string(e.tokens) + " tokens in " + std::to_string(e.sequences) +
                               " sequences; the limit of each is 2^30",
                           "split the call");
  return {};
}

DplrConfig DplrPlanner::configOf(const DplrArguments &a) const {
  const Extents e(a);
  DplrConfig c;
  c.chunk = a.chunkSize ? static_cast<int>(a.chunkSize) : 64;
  c.dim = tileWidth(e.dim), c.dimV = tileWidth(e.dimV);
  c.warps = std::max(c.dim, c.dimV) > 64 ? 8 : 4;
  c.bounded = (a.safeGate && !a.lowerBound) || (a.lowerBound && *a.lowerBound >= boundOfBlocks);
  c.packed = a.cuSeqlens.has_value();
  c.initial = a.initialState.has_value();
  c.final = a.finalState.has_value();
  // The widest that keeps every multiprocessor busy.
  c.blockV = std::min(c.dimV % 3 ? 64 : 48, c.dimV);
  while (c.blockV > 16 && c.blockV % 32 == 0 &&
         e.sequences * e.heads * ceilDiv(e.dimV, c.blockV) < jit.device().info().multiprocessors)
    c.blockV /= 2;
  c.chainWarps = std::max(1, c.blockV / 16);
  c.gates = elementOf(a.g.dtype);
  c.state = a.initialState ? elementOf(a.initialState->dtype) : language::ElementType::F32;
  c.offsets = elementOfOffsets(a.cuSeqlens);
  return c;
}

Status DplrPlanner::plan(const DplrArguments &a, Plan &plan) const {
  const Extents e(a);
  if (e.sequences == 0 || e.heads == 0)
    return {};
  const DplrConfig c = configOf(a);
  const std::int64_t slots = e.slots(c.packed, c.chunk);
  const auto element = elementOf(a.q.dtype);
  const auto bytes = [&](std::int64_t elements, std::int64_t size) {
    return static_cast<std::size_t>(e.heads * slots * elements * size);
  };
  KILN_ASSIGN(const auto parts, plan.workspace({{"f", bytes(c.dim * c.dim, 2)},
                                                {"r", bytes(c.dimV * c.dim, 2)},
                                                {"qh", bytes(c.chunk * c.dim, 2)},
                                                {"oh", bytes(c.dimV * c.chunk, 2)},
                                                {"decay", bytes(c.dim, 4)}}));
  const Tensor f = partOf(parts[0], a.q.dtype, e.heads, slots * c.dim, c.dim),
               rt = partOf(parts[1], a.q.dtype, e.heads, slots * c.dimV, c.dim),
               qh = partOf(parts[2], a.q.dtype, e.heads, slots * c.chunk, c.dim),
               oht = partOf(parts[3], a.q.dtype, e.heads, slots * c.dimV, c.chunk),
               decay = partOf(parts[4], DType::F32, e.heads, slots, c.dim);
  const Tensor cu = a.cuSeqlens.value_or(Tensor());
  if (slots) {
    const DplrConfig mine = ofMaps(c);
    KILN_ASSIGN(JitKernel * kernel, maps.get(jit, {a.q.dtype, mine}, [&] { return dplrMaps(element, mine); }));
    KILN_ASSIGN(const Dim3 grid, gridOf(names.operation, slots * e.heads));
    const float scale = a.scale.value_or(1 / std::sqrt(static_cast<float>(e.dim)));
    KILN_TRY(plan.launch(*kernel, grid, named<"q">(a.q), named<"k">(a.k), named<"v">(a.v), named<"a">(a.a),
                         named<"b">(a.b), named<"g">(a.g), named<"cu_seqlens">(cu), named<"f">(f), named<"rt">(rt),
                         named<"qh">(qh), named<"oht">(oht), named<"decay">(decay),
                         named<"sequences">(static_cast<std::int32_t>(e.sequences)), named<"scale">(scale)));
  }
  const DplrConfig mine = ofOut(c);
  KILN_ASSIGN(JitKernel * kernel, outs.get(jit, {a.q.dtype, mine}, [&] { return dplrOut(element, mine); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(names.operation, e.sequences * e.heads * ceilDiv(e.dimV, c.blockV)));
  return plan.launch(*kernel, grid, named<"h0">(a.initialState.value_or(Tensor())), named<"f">(f), named<"rt">(rt),
                     named<"qh">(qh), named<"oht">(oht), named<"decay">(decay), named<"cu_seqlens">(cu),
                     named<"o">(a.o), named<"ht">(a.finalState.value_or(Tensor())));
}

DplrArguments Rwkv7Operation::asDplr(const Rwkv7Arguments &a) {
  return {a.r,          a.k,          a.v,       a.a,           a.b,       a.w, a.o, a.initialState, a.finalState,
          a.cuSeqlens, a.scale.value_or(1.0f), a.safeGate, a.lowerBound, a.chunkSize};
}

} // namespace kiln::kernels
