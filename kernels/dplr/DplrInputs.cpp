#include "kernels/dplr/DplrInputs.h"

#include "kernels/dplr/Decay.h"
#include "kernels/dplr/Segments.h"
#include "kernels/support/Grid.h"
#include "support/Text.h"

#include <cmath>

namespace kiln::kernels {
namespace {

DType elementOfOffsets(const std::optional<Tensor> &cu) {
  return cu && cu->dtype == DType::I32 ? DType::I32 : DType::I64;
}

Status badColumns(const DplrWords &words, const char *name, std::int64_t columns) {
  return Status::invalid(std::string(words.operation) + ": argument '" + name + "' has " + std::to_string(columns) +
                             " columns: from 1 to " + std::to_string(largestDim),
                         "split the heads");
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
  if (!part.rank)
    return part;
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

int tileWidth(std::int64_t columns) {
  std::int64_t width = 16;
  while (width < columns)
    width = width % 3 == 0 ? width / 3 * 4 : width >= 32 && width / 2 * 3 >= columns ? width / 2 * 3 : width * 2;
  return static_cast<int>(width);
}

RuleTensorList::RuleTensorList(const DplrWords &words, const DplrInputs &in) {
  const auto add = [&](const char *name, const Tensor &tensor) { items[count++] = {name, &tensor}; };
  add(words.q, in.q), add("k", in.k), add("v", in.v);
  if (in.rule == ChunkRule::Dplr)
    add("a", in.a), add("b", in.b);
  if (in.gate != GateKind::None)
    add(words.g, in.g);
  if (in.rule == ChunkRule::Delta)
    add("beta", in.beta);
}

GateKind gateOf(const std::optional<Tensor> &g) {
  return !g ? GateKind::None : g->rank == 3 ? GateKind::Head : GateKind::Channel;
}

Status checkInputs(const Device &device, const DplrWords &words, const DplrInputs &in,
                   std::initializer_list<DType> types) {
  // Strings are made where something is wrong, and only there.
  const auto operation = [&] { return std::string(words.operation); };
  KILN_TRY(checkTensor(words.q, in.q).on(device).dtype(types).rank(4).stride(3, 1).status());
  if (in.dim() < 1 || in.dim() > largestDim)
    return badColumns(words, words.q, in.dim());
  const auto asQ = [&](const char *name, const Tensor &t) {
    return checkTensor(name, t).on(device).dtypeOf(words.q, in.q).shapeOf(words.q, in.q).stride(3, 1).status();
  };
  /// f32 or of q's type, one number a token and head.
  const auto ofHead = [&](const char *name, const Tensor &t) {
    return checkTensor(name, t)
        .on(device)
        .dtype({DType::F32, in.q.dtype})
        .shape({in.batch(), in.tokens(), in.heads()})
        .status();
  };
  KILN_TRY(asQ("k", in.k));
  if (in.rule == ChunkRule::Dplr) {
    KILN_TRY(asQ("a", in.a));
    KILN_TRY(asQ("b", in.b));
  }
  if (in.gate == GateKind::Channel)
    KILN_TRY(checkTensor(words.g, in.g)
                 .on(device)
                 .dtype({DType::F32, in.q.dtype})
                 .shapeOf(words.q, in.q)
                 .stride(3, 1)
                 .status());
  if (in.gate == GateKind::Head)
    KILN_TRY(ofHead(words.g, in.g));
  if (in.rule == ChunkRule::Delta)
    KILN_TRY(ofHead("beta", in.beta));
  auto v = checkTensor("v", in.v).on(device).dtypeOf(words.q, in.q).rank(4).stride(3, 1);
  const std::string like = std::string("as of ") + words.q;
  for (unsigned d = 0; d < 3; ++d)
    v.extent(d, in.q.shape[d], like);
  KILN_TRY(v.extentAtMost(3, 1 << 30).status());
  if (in.dimV() < 1)
    return badColumns(words, "v", in.dimV());
  if (in.cuSeqlens) {
    if (in.batch() != 1)
      return Status::invalid(operation() + ": cu_seqlens is given, and the batch is " + std::to_string(in.batch()),
                             "pack the sequences into one batch: [1, T, H, K]");
    KILN_TRY(checkTensor("cu_seqlens", *in.cuSeqlens)
                 .on(device)
                 .dtype({DType::I32, DType::I64})
                 .rank(1)
                 .stride(0, 1)
                 .status());
    if (in.cuSeqlens->shape[0] < 1)
      return Status::invalid(operation() + ": cu_seqlens is empty", "give N + 1 offsets, the first of them 0");
  }
  if (in.initialState)
    KILN_TRY(
        checkState(device, words, in, "initial_state", *in.initialState, {DType::F32, DType::F16, DType::BF16}, false));
  if (in.scale && !std::isfinite(*in.scale))
    return Status::invalid(format("%s: scale = %g", words.operation, static_cast<double>(*in.scale)),
                           "give a finite number");
  if (in.lowerBound && !(*in.lowerBound < 0))
    return Status::invalid(
        format("%s: lower_bound = %g: log decays are below 0", words.operation, static_cast<double>(*in.lowerBound)),
        "give a number below 0, or none");
  if (in.tokens() > 1 << 30 || in.sequences() > 1 << 30)
    return Status::invalid(operation() + ": " + std::to_string(in.tokens()) + " tokens in " +
                               std::to_string(in.sequences()) + " sequences; the limit of each is 2^30",
                           "split the call");
  return {};
}

Status checkChunks(const Jit &jit, const DplrWords &words, const DplrInputs &in, bool gradients, bool saved) {
  if (in.dimV() > largestDim)
    return badColumns(words, "v", in.dimV());
  if (in.chunkSize != 0 && in.chunkSize != 16 && in.chunkSize != 32 && in.chunkSize != 64)
    return Status::invalid(std::string(words.operation) + ": chunk_size = " + std::to_string(in.chunkSize) +
                               ": 16, 32 or 64",
                           "give 0 to have it chosen");
  if (in.segmentSize < 0 || in.segmentSize > 4096 || (in.segmentSize & (in.segmentSize - 1)) != 0)
    return Status::invalid(std::string(words.operation) + ": segment_size = " + std::to_string(in.segmentSize) +
                               ": a power of two up to 4096",
                           "give 0 to have it chosen");
  DplrConfig c = untiled(jit.device(), in, gradients);
  c.saved = saved;
  if (in.segmentSize && isThin(c))
    return Status::invalid(std::string(words.operation) + ": segment_size = " + std::to_string(in.segmentSize) +
                               " for heads of more than 128 columns of K: they are walked along whole",
                           "give 0");
  if (const std::int64_t rows = slotsOf(in, c.chunk) * std::max({c.dim, c.dimV, c.chunk}); rows > 0x7FFFFFFF)
    return Status::invalid(format("%s: a workspace of %lld rows a head; the limit is 2^31 - 1", words.operation,
                                  static_cast<long long>(rows)),
                           "split the call");
  return checkTiling(jit, words, in, c, in.tiling);
}

Status checkOutput(const Device &device, const DplrWords &words, const DplrInputs &in, const char *name,
                   const Tensor &tensor, const char *like, const Tensor &likeTensor) {
  auto out = checkTensor(name, tensor).on(device).dtypeOf(like, likeTensor).shapeOf(like, likeTensor).writable();
  if (likeTensor.rank == 4)
    out.stride(3, 1);
  KILN_TRY(out.status());
  return checkApart(words, in, name, tensor);
}

Status checkApart(const DplrWords &words, const DplrInputs &in, const char *name, const Tensor &output) {
  auto apart = checkTensor(name, output);
  for (const NamedTensor &t : RuleTensorList(words, in))
    apart.apartFrom(t.name, *t.tensor);
  if (in.cuSeqlens)
    apart.apartFrom("cu_seqlens", *in.cuSeqlens);
  Status status = apart.status();
  return status.ok() ? status : std::move(status).withContext(words.operation);
}

Status checkState(const Device &device, const DplrWords &words, const DplrInputs &in, const char *name,
                  const Tensor &state, std::initializer_list<DType> types, bool isOutput) {
  auto check = checkTensor(name, state)
                   .on(device)
                   .dtype(types)
                   .rank(4)
                   .extent(0, in.sequences(), "one for each sequence")
                   .extent(1, in.heads(), "one for each head")
                   .extent(2, in.dim(), std::string("columns of ") + words.q)
                   .extent(3, in.dimV(), "columns of v")
                   .stride(3, 1);
  if (isOutput) {
    check.writable();
    if (in.initialState)
      check.notOverlapping("initial_state", *in.initialState);
  }
  return check.status();
}

DplrConfig tilesOf(const DplrInputs &in) {
  DplrConfig c;
  c.rule = in.rule, c.gate = in.gate;
  c.chunk = in.chunkSize ? static_cast<int>(in.chunkSize) : 64;
  c.dim = tileWidth(in.dim()), c.dimV = tileWidth(in.dimV());
  return c;
}

DplrConfig untiled(const Device &device, const DplrInputs &in, bool gradients) {
  DplrConfig c = tilesOf(in);
  c.gradients = gradients;
  c.exact = c.dim == in.dim() && c.dimV == in.dimV();
  // A safe gate promises -5 (S4).  Where half a chunk of the bound sums up to too much, each chunk is looked at.
  const std::optional<float> bound = in.lowerBound ? in.lowerBound : in.safeGate ? std::optional(-5.0f) : std::nullopt;
  c.bounded = in.gate == GateKind::None || (bound && *bound * static_cast<float>(c.chunk / 2) >= lowestSum);
  c.packed = in.cuSeqlens.has_value();
  c.initial = in.initialState.has_value();
  c.segment = segmentOf(device, in, c);
  if (in.gate != GateKind::None)
    c.gates = in.g.dtype;
  if (in.rule == ChunkRule::Delta)
    c.beta = in.beta.dtype;
  c.state = in.initialState ? in.initialState->dtype : DType::F32;
  c.offsets = elementOfOffsets(in.cuSeqlens);
  return c;
}

namespace {
/// Columns of V that a program which walks may have: a power of two that divides the tile.  Of wide heads at most 32:
/// of 64 columns each of four warps has more of the state than registers hold.  Programs that compose maps take columns
/// of K as of V.
int widestBlockV(const DplrConfig &c) {
  const int ofV = std::min(c.dim > widestWhole ? 32 : 64, c.dimV & -c.dimV);
  return c.segment ? std::min(ofV, c.dim & -c.dim) : ofV;
}
} // namespace

DplrConfig withTiling(const Device &device, const DplrInputs &in, DplrConfig c, const ChunkTiling &tiling) {
  c.warps = tiling.warps;
  if (!c.gradients) // there each kernel has its own number
    c.warps = warpsOfChunks(c, /*gradients=*/false);
  // As wide as keeps every multiprocessor busy.
  c.blockV = widestBlockV(c);
  const std::int64_t walks = in.sequences() * in.heads() * (c.segment ? fewestSegments : 1);
  while (c.blockV > 16 && walks * ceilDiv(in.dimV(), c.blockV) < device.info().multiprocessors)
    c.blockV /= 2;
  if (tiling.blockV)
    c.blockV = tiling.blockV;
  // Rows of more than 64 columns are divided among warps too: a step is shorter, and so is a program's text.  Not in
  // whole walks forward of up to 128 columns, which were slower (B2 T16384 H16 D128, 1.65 to 1.75 ms).
  const bool divided = c.dim > widestWhole || (c.dim > 64 && (c.segment || c.gradients));
  c.chainWarps = tiling.chainWarps ? tiling.chainWarps : std::max(c.blockV / 16, divided ? 4 : 1);
  if (tiling.stages)
    c.stages = tiling.stages;
  return c;
}

Status checkTiling(const Jit &jit, const DplrWords &words, const DplrInputs &in, const DplrConfig &untiled,
                   const ChunkTiling &tiling) {
  Status problem;
  ChunkTiling::options(tiling, [&](const CallOption &option, int value) {
    if (problem.ok())
      problem = checkTile(words.operation, option, value);
  });
  KILN_TRY(std::move(problem));
  const auto refused = [&](const char *name, int value, const std::string &what) {
    return Status::invalid(std::string(words.operation) + ": " + name + " = " + std::to_string(value) + what,
                           "give 0 to have it chosen");
  };
  if (tiling.warps && tiling.warps < 8 && std::max(untiled.dim, untiled.dimV) > widestWhole)
    return refused("warps", tiling.warps, " for heads of more than 128 columns: 8 or 16");
  if (tiling.blockV > widestBlockV(untiled))
    return refused("block_v", tiling.blockV,
                   " for tiles of " + std::to_string(untiled.dim) + " columns of " + words.q + " and " +
                       std::to_string(untiled.dimV) + " of v: at most " + std::to_string(widestBlockV(untiled)));
  if (!tiling.stages)
    return {};
  const DplrConfig c = withTiling(jit.device(), in, untiled, tiling);
  // What a step reads of its chunk: F and R, or Qh and columns of dO; where outputs are made Qh and Oh too.
  const bool withR = !makesRht(c), withQ = !c.gradients || makesRht(c);
  const std::int64_t rows = (reads(c.rule) ? rowsOfF(c) : 0) + (withR ? c.blockV : 0) + (withQ ? c.chunk : 0),
                     numbers = rows * c.dim + (withQ ? c.blockV * c.chunk : 0);
  const auto element = static_cast<std::int64_t>(dtypeBytes(in.q.dtype));
  KILN_TRY(
      checkStages(jit, words.operation, c.stages, element * numbers, std::to_string(numbers) + " numbers of a chunk"));
  if (!c.segment)
    return {};
  // Walks along segments read F of the elements' type, and what is added in f32.
  return checkStages(jit, words.operation, c.stages,
                     std::int64_t(c.dim) * ((reads(c.rule) ? element * c.dim : 0) + 4 * c.blockV),
                     "the maps of a segment");
}

DplrConfig tiled(Jit &jit, const DplrWords &words, const DplrInputs &in, const DplrConfig &c,
                 TunedTable<DplrConfig, ChunkTiling> &tuned) {
  if (in.tiling.given())
    return withTiling(jit.device(), in, c, in.tiling);
  const ChunkTiling kept =
      tuned.get(jit, {.operation = words.operation, .types = {in.q.dtype}}, c,
                {{"sequences", in.sequences()}, {"tokens", in.tokens()}, {"heads", in.heads()}, {"columns", in.dimV()}},
                [&](const ChunkTiling &tiling) { return checkTiling(jit, words, in, c, tiling).ok(); });
  return withTiling(jit.device(), in, c, kept);
}

} // namespace kiln::kernels
