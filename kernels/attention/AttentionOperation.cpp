#include "kernels/attention/AttentionOperation.h"

#include "kernels/attention/AttentionChecks.h"
#include "kernels/attention/AttentionShape.h"
#include "kernels/attention/AttentionTiling.h"

namespace kiln::kernels {
namespace {

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
  c.descaleQ = a.descaleQ.has_value();
  c.descaleK = a.descaleK.has_value();
  c.descaleV = a.descaleV.has_value();
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
  KILN_TRY(checkAttention(jit().device(), name(), a, /*isWritten=*/true));
  if (a.persistent && (a.cuQ || a.cuK || a.usedQ || a.usedK))
    return Status::invalid("attention: persistent is set, and the rows of each sequence are in tables",
                           "leave it out, or give dense tensors without used lengths");
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
  const std::int64_t batch = batchOf(a), heads = Heads(a.q, a.cuQ.has_value()).heads, queries = queriesOf(a);
  if (batch == 0 || heads == 0 || queries == 0)
    return {};
  KILN_ASSIGN(const AttentionConfig c, configOf(jit(), a));
  const auto element = kernelElement(a.q.dtype);
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element}, c, [&] { return attention(element, c); }));
  KILN_ASSIGN(const Target *code, findTarget(jit().codeTarget()));
  const Target *const device = jit().device().info().target ? jit().device().info().target : code;
  std::int64_t programs = ceilDiv(queries, c.blockM) * heads * batch;
  if (c.persistent)
    programs = std::min<std::int64_t>(programs,
                                      residentPrograms(c, a.q.dtype, *device, jit().device().info().multiprocessors));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), programs));
  const auto i32 = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  return plan.launch(
      *kernel, grid, named<"q">(byGroup(a.q, a)), named<"k">(byKeyHead(a.k, a)), named<"v">(byKeyHead(a.v, a)),
      named<"o">(byGroup(a.o, a)), named<"lse">(inFront(a.lse, 3, 1)), named<"sink">(orNone(a.sink)),
      named<"alibi">(inFront(a.alibi, 2, batch)), named<"cu_q">(orNone(a.cuQ)), named<"cu_k">(orNone(a.cuK)),
      named<"used_q">(orNone(a.usedQ)), named<"used_k">(orNone(a.usedK)), named<"q_descale">(orNone(a.descaleQ)),
      named<"k_descale">(orNone(a.descaleK)), named<"v_descale">(orNone(a.descaleV)), named<"queries">(i32(queries)),
      named<"window_left">(i32(a.windowLeft)), named<"window_right">(i32(rightOf(a))),
      named<"position_offset">(i32(a.positionOffset.value_or(0))), named<"scale">(scaleOf(a)), named<"cap">(a.softcap));
}

} // namespace kiln::kernels
