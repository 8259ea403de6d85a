#include "kernels/attention/AttentionOperation.h"

#include "kernels/attention/AttentionChecks.h"
#include "kernels/attention/AttentionHooks.h"
#include "kernels/attention/AttentionShape.h"
#include "kernels/attention/AttentionTiling.h"
#include "kernels/support/CallWords.h"

namespace kiln::kernels {

/// The code for a call, with what the caller leaves open chosen.
Result<AttentionConfig> AttentionOperation::configOf(const AttentionArguments &a) const {
  AttentionConfig c;
  describeCall(a, c);
  c.sink = a.sink.has_value();
  c.descaleQ = a.descaleQ.has_value();
  c.descaleK = a.descaleK.has_value();
  c.descaleV = a.descaleV.has_value();
  c.lse = a.lse.has_value();
  c.hooks = hooksOf(jit().device(), a);
  KILN_ASSIGN(const Targets targets, targetsOf(jit()));
  const AttentionExtent extent{queriesOf(a), a.k.shape[c.packedK ? 0 : 1], batchOf(a) * Heads(a.q, c.packedQ).heads,
                               isAligned(a.k) && isAligned(a.v), a.q.dtype};
  const auto with = [&](const Tiling &tiling) {
    AttentionConfig out = c;
    if (tiling.stages)
      out.stages = tiling.stages;
    const std::int64_t multiprocessors = jit().device().info().multiprocessors;
    chooseTiles(out, extent, targets.code, targets.device, multiprocessors);
    for (const auto &[field, given] : {std::pair(&out.blockM, tiling.blockM), std::pair(&out.blockN, tiling.blockN),
                                       std::pair(&out.warps, tiling.warps)})
      if (given) {
        *field = given;
        out.maxRegisters = 0; // they were for the tiles that were chosen
      }
    out.persistent = a.persistent || takesSeveralTiles(out, extent, targets.code, multiprocessors);
    return out;
  };
  if (a.tiling.given())
    return with(a.tiling);
  return with(tuned.get(jit(), {.operation = name(), .types = {kernelElement(a.q.dtype)}}, c,
                        {{"queries", extent.queries},
                         {"keys", extent.keys},
                         {"heads", extent.heads},
                         {"left", a.windowLeft},
                         {"right", rightOf(a)},
                         {"aligned", extent.aligned},
                         {"persistent", a.persistent}},
                        [&](const Tiling &tiling) { return checkTiles(a, with(tiling)).ok(); }));
}

Status AttentionOperation::checkTiles(const AttentionArguments &a, const AttentionConfig &c) const {
  KILN_TRY(checkTilesOfBlocks(name(), c.hooks, c.blockM, c.blockN));
  return checkStages(jit(), name(), c.stages,
                     static_cast<std::int64_t>(dtypeBytes(a.q.dtype)) * c.blockN * (c.dim + c.dimV),
                     "block_n = " + std::to_string(c.blockN) + " keys with " + std::to_string(c.dim) + " + " +
                         std::to_string(c.dimV) + " columns");
}

Status AttentionOperation::check(const AttentionArguments &a) const {
  KILN_TRY(checkAttention(jit().device(), name(), a, /*isWritten=*/true));
  if (a.persistent && (a.cuQ || a.cuK || a.usedQ || a.usedK))
    return Status::invalid("attention: persistent is set, and the rows of each sequence are in tables",
                           "leave it out, or give dense tensors without used lengths");
  if (a.tiling.given()) {
    KILN_ASSIGN(const AttentionConfig c, configOf(a));
    KILN_TRY(checkTiles(a, c));
  }
  return {};
}

Status AttentionOperation::plan(const AttentionArguments &a, Plan &plan) const {
  const std::int64_t batch = batchOf(a), heads = Heads(a.q, a.cuQ.has_value()).heads, queries = queriesOf(a);
  if (batch == 0 || heads == 0 || queries == 0)
    return {};
  KILN_ASSIGN(const AttentionConfig c, configOf(a));
  const auto element = kernelElement(a.q.dtype);
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element}, c, [&] { return attention(element, c); }));
  std::int64_t programs = ceilDiv(queries, c.blockM) * heads * batch;
  if (c.persistent) {
    KILN_ASSIGN(const Targets targets, targetsOf(jit()));
    programs =
        std::min(programs, residentPrograms(c, a.q.dtype, targets.device, jit().device().info().multiprocessors));
  }
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), programs));
  const auto i32 = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  const auto launch = [&](const auto &...options) {
    return plan.launch(
        *kernel, grid, named<"q">(byGroup(a.q, a)), named<"k">(byKeyHead(a.k, a)), named<"v">(byKeyHead(a.v, a)),
        named<"o">(byGroup(a.o, a)), named<"lse">(inFront(a.lse, 3, 1)), named<"sink">(orNone(a.sink)),
        named<"alibi">(inFront(a.alibi, 2, batch)), named<"cu_q">(orNone(a.cuQ)), named<"cu_k">(orNone(a.cuK)),
        named<"used_q">(orNone(a.usedQ)), named<"used_k">(orNone(a.usedK)), named<"q_descale">(orNone(a.descaleQ)),
        named<"k_descale">(orNone(a.descaleK)), named<"v_descale">(orNone(a.descaleV)), named<"queries">(i32(queries)),
        named<"window_left">(i32(a.windowLeft)), named<"window_right">(i32(rightOf(a))),
        named<"position_offset">(i32(a.positionOffset.value_or(0))), named<"scale">(scaleOf(a)),
        named<"cap">(a.softcap), options...);
  };
  return withOptionArguments(a, ofEveryHead(a.bias, batch, heads), /*ofKeys=*/false, launch);
}

/// Heads in groups and packed rows of one side have no words.
std::optional<std::string> AttentionOperation::callText(const AttentionArguments &a) const {
  if (a.functions.given() || a.blockMask || !a.aux.empty() || a.q.rank != (a.cuQ ? 3 : 4))
    return std::nullopt;
  const CallTensor tensors[] = {{"q", a.q},
                                {"k", a.k},
                                {"v", a.v},
                                {"lse", a.lse},
                                {"sink", a.sink},
                                {"alibi", a.alibi},
                                {"bias", a.bias},
                                {"cu_seqlens_q", a.cuQ},
                                {"cu_seqlens_k", a.cuK},
                                {"seqused_q", a.usedQ},
                                {"seqused_k", a.usedK},
                                {"q_descale", a.descaleQ},
                                {"k_descale", a.descaleK},
                                {"v_descale", a.descaleV}};
  return callWords(name(), tensors, optionValuesOf(a));
}

} // namespace kiln::kernels
