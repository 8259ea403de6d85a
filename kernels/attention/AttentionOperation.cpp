#include "kernels/attention/AttentionOperation.h"

#include "kernels/attention/AttentionTiling.h"
#include "kernels/support/Grid.h"
#include "support/Text.h"

#include <cmath>

namespace kiln::kernels {
namespace {

constexpr float log2e = 1.4426950408889634f; // the kernel computes to base 2

/// q or o: the heads in one dimension, or split into key heads and members of their groups.
struct Heads {
  std::int64_t batch, rows, heads, dim;
  bool split;
  Heads(const Tensor &t, bool packed) {
    const unsigned lead = packed ? 0 : 1; // dimensions before the rows
    split = t.rank == lead + 4;
    batch = packed ? 1 : t.shape[0];
    rows = t.shape[lead];
    dim = t.shape[t.rank - 1];
    heads = split ? t.shape[lead + 1] * t.shape[lead + 2] : t.shape[lead + 1];
  }
};

/// The narrowest tile for so many columns: matrix instructions have a depth of 32 bytes.
int tileWidth(std::int64_t columns, DType element) {
  const std::int64_t depth = 32 / static_cast<std::int64_t>(dtypeBytes(element));
  return static_cast<int>(std::max<std::int64_t>(depth, (columns + depth - 1) / depth * depth));
}

struct Descale {
  const char *name, *of;
  std::optional<Tensor> AttentionArguments::*tensor;
  bool AttentionConfig::*flag;
};
constexpr Descale descales[] = {{"q_descale", "q", &AttentionArguments::descaleQ, &AttentionConfig::descaleQ},
                                {"k_descale", "k", &AttentionArguments::descaleK, &AttentionConfig::descaleK},
                                {"v_descale", "v", &AttentionArguments::descaleV, &AttentionConfig::descaleV}};

Status badDim(const char *name, std::int64_t dim, std::int64_t unit) {
  return Status::invalid(std::string("attention: argument '") + name + "' has the head dim " + std::to_string(dim) +
                             ": a multiple of " + std::to_string(unit) + " from " + std::to_string(unit) + " to 256",
                         "pad the last dimension with zeros");
}

Status badWindow(const char *name, std::int64_t value) {
  return Status::invalid(std::string("attention: ") + name + " = " + std::to_string(value) +
                             ": -1 (everything), or 0 to 2^30",
                         "give -1 for an open side");
}

/// Rows of whole 16 bytes, wherever they begin: what the kernel is compiled for (Stride, Pointer).
bool isAligned(const Tensor &t) {
  constexpr std::int64_t bytes = 16;
  bool out = t.address % bytes == 0;
  for (unsigned d = 0; d + 1 < t.rank; ++d)
    out &= t.strides[d] * static_cast<std::int64_t>(dtypeBytes(t.dtype)) % bytes == 0;
  return out;
}

/// Of a sequence, at most.
std::int64_t queriesOf(const AttentionArguments &a) {
  return a.cuQ ? std::min(a.maxQueries, a.q.shape[0]) : a.q.shape[1];
}

float scaleOf(const AttentionArguments &a) {
  return a.scale.value_or(1 / std::sqrt(static_cast<float>(a.q.shape[a.q.rank - 1])));
}

/// Keys after its own that a query sees; -1: all.
std::int64_t rightOf(const AttentionArguments &a) {
  return a.causal ? 0 : a.windowRight;
}

/// The code for a call, with what the caller leaves open chosen.
Result<AttentionConfig> configOf(const Jit &jit, const AttentionArguments &a) {
  const bool packedQ = a.cuQ.has_value(), packedK = a.cuK.has_value();
  AttentionConfig c;
  c.dim = tileWidth(a.q.shape[a.q.rank - 1], a.q.dtype);
  c.dimV = tileWidth(a.v.shape[a.v.rank - 1], a.q.dtype);
  c.left = a.windowLeft >= 0;
  c.right = rightOf(a) >= 0;
  c.bottomRight = a.alignment == Alignment::BottomRight && !a.positionOffset;
  c.softcap = a.softcap > 0;
  c.alibi = a.alibi.has_value();
  c.sink = a.sink.has_value();
  c.packedQ = packedQ;
  c.packedK = packedK;
  c.usedQ = a.usedQ.has_value();
  c.usedK = a.usedK.has_value();
  for (const Descale &d : descales)
    c.*d.flag = (a.*d.tensor).has_value();
  c.lse = a.lse.has_value();
  if (a.tiling.stages)
    c.stages = a.tiling.stages;
  KILN_ASSIGN(const Target *code, findTarget(jit.codeTarget()));
  const Target *const device = jit.device().info().target;
  std::int64_t heads = packedQ ? a.cuQ->shape[0] - 1 : a.q.shape[0];
  for (unsigned d = packedQ ? 1 : 2; d + 1 < a.q.rank; ++d)
    heads *= a.q.shape[d];
  const AttentionExtent extent{queriesOf(a), a.k.shape[packedK ? 0 : 1], heads, isAligned(a.k) && isAligned(a.v),
                               a.q.dtype};
  chooseTiles(c, extent, *code, device ? *device : *code, jit.device().info().multiprocessors);
  for (const auto &[field, given] : {std::pair(&c.blockM, a.tiling.blockM), std::pair(&c.blockN, a.tiling.blockN),
                                     std::pair(&c.warps, a.tiling.warps)})
    if (given) {
      *field = given;
      c.maxRegisters = 0; // they were for the tiles that were chosen
    }
  c.persistent = a.persistent || takesSeveralTiles(c, extent, *code, jit.device().info().multiprocessors);
  return c;
}

} // namespace

Status AttentionOperation::check(const AttentionArguments &a) const {
  const Device &device = jit().device();
  const bool packedQ = a.cuQ.has_value(), packedK = a.cuK.has_value();
  const unsigned rankQ = packedQ ? 3 : 4, rank = packedK ? 3 : 4;
  for (const auto &[name, tensor, t, packed] :
       {std::tuple("cu_seqlens_q", "q", &a.q, packedQ), std::tuple("cu_seqlens_k", "k", &a.k, packedK)})
    if (!packed && t->rank == 3)
      return Status::invalid(std::string("attention: ") + name + " is missing: argument '" + tensor + "' has rank 3",
                             std::string("give ") + name + " for packed sequences, or " + tensor + " a batch in front");
  KILN_TRY(checkTensor("q", a.q)
               .on(device)
               .dtype({DType::F16, DType::BF16, DType::F8E4M3})
               .rankBetween(rankQ, rankQ + 1)
               .status());
  KILN_TRY(checkTensor("k", a.k).on(device).dtypeOf("q", a.q).rank(rank).stride(rank - 1, 1).status());
  KILN_TRY(checkTensor("v", a.v).on(device).dtypeOf("q", a.q).rank(rank).stride(rank - 1, 1).status());
  KILN_TRY(checkTensor("q", a.q).stride(a.q.rank - 1, 1).status());
  const std::int64_t keyHeads = a.k.shape[rank - 2], dimV = a.v.shape[rank - 1];
  const Heads q(a.q, packedQ);
  if (keyHeads == 0 ? q.heads != 0 : q.heads % keyHeads != 0)
    return Status::invalid("attention: q has " + std::to_string(q.heads) + " heads, k " + std::to_string(keyHeads) +
                               ": the first must be a multiple of the second",
                           "give q so many heads that each key head serves equally many");
  if (q.split && a.q.shape[rankQ - 2] != keyHeads)
    return Status::invalid("attention: q is split into " + std::to_string(a.q.shape[rankQ - 2]) +
                               " groups of heads, k has " + std::to_string(keyHeads) + " heads",
                           "give q the shape [.., heads of k, heads of a group, D]");
  for (const auto &[name, d] : {std::pair("q", q.dim), std::pair("v", dimV)})
    if (const std::int64_t unit = headDimUnit(a.q.dtype); d < unit || d > 256 || d % unit)
      return badDim(name, d, unit);
  KILN_TRY(checkTensor("k", a.k).extent(rank - 1, q.dim, "the head dim of q").status());
  auto v = checkTensor("v", a.v)
               .extent(rank - 2, keyHeads, "the heads of k")
               .extent(rank - 3, a.k.shape[rank - 3], "the rows of k");
  // The batch is that of q, or what the offsets say.
  std::int64_t batch = a.q.shape[0];
  const char *const of = packedQ   ? "one less than cu_seqlens_q's"
                         : packedK ? "one less than cu_seqlens_k's"
                                   : "the batch of q";
  for (const auto &[name, cu] : {std::pair("cu_seqlens_k", &a.cuK), std::pair("cu_seqlens_q", &a.cuQ)}) {
    if (!*cu)
      continue;
    KILN_TRY(checkTensor(name, **cu).on(device).dtype({DType::I32}).rank(1).stride(0, 1).status());
    batch = (*cu)->shape[0] - 1;
    if (batch < 0)
      return Status::invalid(std::string("attention: ") + name + " is empty",
                             "give batch + 1 offsets, the first of them 0");
  }
  if (packedK)
    KILN_TRY(checkTensor("cu_seqlens_k", *a.cuK)
                 .extent(0, batch + 1, packedQ ? "as of cu_seqlens_q" : "one more than q's batch")
                 .status());
  if (!packedQ)
    KILN_TRY(checkTensor("q", a.q).extent(0, batch, of).status());
  if (!packedK) {
    KILN_TRY(checkTensor("k", a.k).extent(0, batch, of).status());
    v.extent(0, batch, of);
  }
  KILN_TRY(v.status());
  if (packedQ && (a.maxQueries < 0 || (a.maxQueries == 0 && q.rows > 0 && batch > 0)))
    return Status::invalid("attention: max_queries = " + std::to_string(a.maxQueries),
                           "give the longest sequence's number of queries, or more");
  auto o = checkTensor("o", a.o).on(device);
  KILN_TRY((outputOf(a.q.dtype) == a.q.dtype ? o.dtypeOf("q", a.q) : o.dtype({outputOf(a.q.dtype)}))
               .rank(a.q.rank)
               .status());
  for (unsigned d = 0; d + 1 < a.q.rank; ++d)
    o.extent(d, a.q.shape[d], "as of q");
  KILN_TRY(o.extent(a.o.rank - 1, dimV, "the head dim of v")
               .stride(a.o.rank - 1, 1)
               .writable()
               .notOverlapping("q", a.q)
               .notOverlapping("k", a.k)
               .notOverlapping("v", a.v)
               .status());
  for (const auto &[name, t] : {std::pair("seqused_q", &a.usedQ), std::pair("seqused_k", &a.usedK)})
    if (*t)
      KILN_TRY(checkTensor(name, **t)
                   .on(device)
                   .dtype({DType::I32})
                   .rank(1)
                   .stride(0, 1)
                   .extent(0, batch, "the batch")
                   .status());
  if (a.lse) {
    auto lse = checkTensor("lse", *a.lse).on(device).dtype({DType::F32}).rank(packedQ ? 2 : 3);
    KILN_TRY(lse.status());
    if (!packedQ)
      lse.extent(0, batch, "the batch");
    KILN_TRY(lse.extent(a.lse->rank - 2, q.heads, "the heads of q")
                 .extent(a.lse->rank - 1, q.rows, "the rows of q")
                 .writable()
                 .status());
  }
  for (const Descale &d : descales)
    if (const std::optional<Tensor> &t = a.*d.tensor) {
      if (a.q.dtype != DType::F8E4M3)
        return Status::invalid(std::string("attention: ") + d.name + " is given, " + d.of + " is " +
                                   std::string(dtypeName(a.q.dtype)) + ": it belongs to f8e4m3",
                               "leave it out, or multiply scale or the result");
      KILN_TRY(checkTensor(d.name, *t)
                   .on(device)
                   .dtype({DType::F32})
                   .rank(2)
                   .extent(0, batch, "the batch")
                   .extent(1, keyHeads, "the heads of k")
                   .status());
    }
  if (a.sink)
    KILN_TRY(checkTensor("sink", *a.sink)
                 .on(device)
                 .dtype({DType::F32})
                 .rank(1)
                 .extent(0, q.heads, "the heads of q")
                 .status());
  if (a.alibi) {
    auto alibi = checkTensor("alibi", *a.alibi).on(device).dtype({DType::F32}).rankBetween(1, 2);
    KILN_TRY(alibi.status());
    if (a.alibi->rank == 2)
      alibi.extent(0, batch, "the batch");
    KILN_TRY(alibi.extent(a.alibi->rank - 1, q.heads, "the heads of q").status());
  }
  if (a.persistent && (packedQ || packedK || a.usedQ || a.usedK))
    return Status::invalid("attention: persistent is set, and the rows of each sequence are in tables",
                           "leave it out, or give dense tensors without used lengths");
  for (const auto &[name, window] : {std::pair("window_left", a.windowLeft), std::pair("window_right", a.windowRight)})
    if (window < -1 || window > 1 << 30)
      return badWindow(name, window);
  if (a.positionOffset && (*a.positionOffset < 0 || *a.positionOffset > 1 << 28)) // sums of a row, it and a window
    return Status::invalid("attention: position_offset = " + std::to_string(*a.positionOffset) + ": 0 to 2^28",
                           "give the number of tokens before the first row of q");
  KILN_TRY(checkTiling(name(), a.tiling));
  if (a.scale && !(std::isfinite(*a.scale * log2e) && *a.scale > 0))
    return Status::invalid(format("attention: scale = %g", static_cast<double>(*a.scale)),
                           "give a number above 0, at most 2e38");
  if (!(std::isfinite(a.softcap) && a.softcap >= 0))
    return Status::invalid(format("attention: softcap = %g", static_cast<double>(a.softcap)),
                           "give a finite number from 0 up; 0 means none");
  const float share = scaleOf(a) / a.softcap;
  if (a.softcap > 0 && !(std::isnormal(share) && std::isnormal(a.softcap * log2e)))
    return Status::invalid(format("attention: softcap = %g with scale = %g: the cap and the scale's share of it must "
                                  "lie between 1.2e-38 and 2e38",
                                  static_cast<double>(a.softcap), static_cast<double>(scaleOf(a))),
                           a.softcap > scaleOf(a) ? "give softcap 0 (none): no logit comes near this cap"
                                                  : "give a larger cap");
  for (const auto &[name, rows] : {std::pair("q", q.rows), std::pair("k", a.k.shape[rank - 3])})
    if (rows > 1 << 29) // sums of a row, a shift and a window stay in 32 bits
      return Status::invalid(std::string("attention: argument '") + name + "' has " + std::to_string(rows) +
                                 " rows; the limit is 2^29",
                             "split the call");
  if (a.tiling.given()) {
    KILN_ASSIGN(const AttentionConfig c, configOf(jit(), a));
    KILN_TRY(checkStages(jit(), name(), c.stages,
                         static_cast<std::int64_t>(dtypeBytes(a.q.dtype)) * c.blockN * (c.dim + c.dimV),
                         "block_n = " + std::to_string(c.blockN) + " keys with " + std::to_string(c.dim) + " + " +
                             std::to_string(c.dimV) + " columns"));
  }
  return {};
}

Status AttentionOperation::plan(const AttentionArguments &a, Plan &plan) const {
  const bool packedQ = a.cuQ.has_value(), packedK = a.cuK.has_value();
  const unsigned rank = packedK ? 3 : 4;
  const std::int64_t keyHeads = a.k.shape[rank - 2];
  const std::int64_t group = keyHeads ? Heads(a.q, packedQ).heads / keyHeads : 0;
  const Heads q(a.q, packedQ);
  const std::int64_t batch = packedQ ? a.cuQ->shape[0] - 1 : q.batch;
  const std::int64_t queries = queriesOf(a), right = rightOf(a);
  if (batch == 0 || q.heads == 0 || queries == 0)
    return {};
  KILN_ASSIGN(const AttentionConfig c, configOf(jit(), a));
  const auto element = kernelElement(a.q.dtype);
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element}, c, [&] { return attention(element, c); }));
  KILN_ASSIGN(const Target *code, findTarget(jit().codeTarget()));
  const Target *const device = jit().device().info().target ? jit().device().info().target : code;
  std::int64_t programs = ceilDiv(queries, c.blockM) * q.heads * batch;
  if (c.persistent)
    programs = std::min<std::int64_t>(programs,
                                      residentPrograms(c, a.q.dtype, *device, jit().device().info().multiprocessors));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), programs));
  // A batch in front, and the heads by key head and by member of its group.
  const auto heads = [&](Tensor t, bool packed, bool grouped) {
    if (packed)
      t = withDim(t, 0, 1, 0);
    if (!grouped || t.rank == 5)
      return t;
    const std::int64_t step = t.strides[2];
    t.shape[2] = keyHeads, t.strides[2] = step * group;
    return withDim(t, 3, group, step);
  };
  const auto orNone = [](const std::optional<Tensor> &t) { return t ? *t : Tensor(); };
  const auto inFront = [](const std::optional<Tensor> &t, unsigned rank, std::int64_t extent) {
    return !t ? Tensor() : t->rank < rank ? withDim(*t, 0, extent, 0) : *t;
  };
  const auto i32 = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  return plan.launch(
      *kernel, grid, named<"q">(heads(a.q, packedQ, true)), named<"k">(heads(a.k, packedK, false)),
      named<"v">(heads(a.v, packedK, false)), named<"o">(heads(a.o, packedQ, true)), named<"lse">(inFront(a.lse, 3, 1)),
      named<"sink">(orNone(a.sink)), named<"alibi">(inFront(a.alibi, 2, batch)), named<"cu_q">(orNone(a.cuQ)),
      named<"cu_k">(orNone(a.cuK)), named<"used_q">(orNone(a.usedQ)), named<"used_k">(orNone(a.usedK)),
      named<"q_descale">(orNone(a.descaleQ)), named<"k_descale">(orNone(a.descaleK)),
      named<"v_descale">(orNone(a.descaleV)), named<"queries">(i32(queries)), named<"window_left">(i32(a.windowLeft)),
      named<"window_right">(i32(right)), named<"position_offset">(i32(a.positionOffset.value_or(0))),
      named<"scale">(scaleOf(a)), named<"cap">(a.softcap));
}

} // namespace kiln::kernels
