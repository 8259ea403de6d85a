#include "kernels/attention_decode/AttentionDecodeOperation.h"

#include "kernels/attention/AttentionShape.h"
#include "kernels/attention_decode/AttentionAppend.h"
#include "kernels/attention_decode/AttentionDecodeChecks.h"
#include "kernels/attention_decode/AttentionDecodeTiling.h"
#include "kernels/support/CallWords.h"

namespace kiln::kernels {
namespace {

std::int64_t groupOf(const AttentionDecodeArguments &a) {
  const std::int64_t keyHeads = a.kCache.shape[2];
  return keyHeads ? Heads(a.q, false).heads / keyHeads : 1;
}

/// Tokens of all heads of a group.
std::int64_t rowsOf(const AttentionDecodeArguments &a) {
  return a.q.shape[1] * groupOf(a);
}

std::int64_t newTokensOf(const AttentionDecodeArguments &a) {
  return a.kNew ? a.kNew->shape[1] : 0;
}

/// Programs of a launch whose rows have their keys for themselves.
std::int64_t programsOf(const AttentionDecodeConfig &c, const AttentionDecodeArguments &a) {
  return std::max<std::int64_t>(1, ceilDiv(rowsOf(a), c.blockM)) * a.kCache.shape[2] * a.q.shape[0];
}

Result<std::int64_t> splitsFor(const Jit &jit, const AttentionDecodeConfig &c, const AttentionDecodeArguments &a) {
  if (a.splits)
    return a.splits;
  KILN_ASSIGN(const Targets targets, targetsOf(jit));
  const std::int64_t room = capacityOf(a), keys = a.maxKeys ? std::min(a.maxKeys, room) : room;
  return chooseSplits(c, a.q.dtype, programsOf(c, a), keys, targets.device, jit.device().info().multiprocessors);
}

} // namespace

Result<AttentionDecodeConfig> AttentionDecodeOperation::configOf(const AttentionDecodeArguments &a) const {
  AttentionDecodeConfig c;
  c.dim = tileWidth(a.kCache.shape[3], a.q.dtype), c.dimV = tileWidth(a.vCache.shape[3], a.q.dtype);
  c.group = static_cast<int>(std::max<std::int64_t>(1, groupOf(a)));
  c.lengths = a.cacheSeqlens.has_value();
  c.batchIndex = a.cacheBatchIdx.has_value();
  c.leftPad = a.leftPadK.has_value();
  c.left = a.windowLeft >= 0, c.right = a.causal || a.windowRight >= 0;
  c.softcap = a.softcap > 0, c.alibi = a.alibi.has_value(), c.sink = a.sink.has_value(), c.lse = a.lse.has_value();
  c.checked = a.checked;
  c.descaleQ = a.descaleQ.has_value(), c.descaleK = a.descaleK.has_value(), c.descaleV = a.descaleV.has_value();
  if (a.rotaryCos) {
    c.rotary = static_cast<int>(2 * a.rotaryCos->shape[1]);
    c.pairs = a.rotaryInterleaved ? RotaryPairs::Neighbours : RotaryPairs::Halves;
    c.angles = a.rotaryCos->dtype;
  }
  KILN_ASSIGN(const Targets targets, targetsOf(jit()));
  const auto with = [&](const Tiling &tiling) {
    AttentionDecodeConfig out = c;
    chooseDecodeTiles(out, {rowsOf(a), newTokensOf(a), a.q.dtype}, targets.code, targets.device);
    for (const auto &[field, given] : {std::pair(&out.blockM, tiling.blockM), std::pair(&out.blockN, tiling.blockN),
                                       std::pair(&out.warps, tiling.warps), std::pair(&out.stages, tiling.stages)})
      if (given)
        *field = given;
    if (a.pageTable) {
      const std::int64_t pageSize = a.kCache.shape[1];
      out.place = pageSize % out.blockN == 0 && !a.leftPadK ? CachePlace::Pages : CachePlace::Gathered;
      if (out.place == CachePlace::Gathered)
        out.pageSize = static_cast<int>(std::max<std::int64_t>(1, pageSize));
    }
    out.fromEnd = copiesWholeBlocks(out, targets.code);
    out.appended = out.fromEnd && out.blockNew > 0;
    return out;
  };
  if (a.tiling.given())
    return with(a.tiling);
  return with(tuned.get(jit(), {.operation = name(), .types = {kernelElement(a.q.dtype)}}, c,
                        {{"rows", rowsOf(a)},
                         {"new_tokens", newTokensOf(a)},
                         {"keys", a.maxKeys ? std::min(a.maxKeys, capacityOf(a)) : capacityOf(a)},
                         {"heads", a.kCache.shape[2] * a.q.shape[0]},
                         {"page", a.pageTable ? a.kCache.shape[1] : 0},
                         {"left", a.windowLeft},
                         {"splits", a.splits}},
                        [&](const Tiling &tiling) { return checkTiles(a, with(tiling)).ok(); }));
}

Status AttentionDecodeOperation::checkTiles(const AttentionDecodeArguments &a, const AttentionDecodeConfig &c) const {
  return checkStages(jit(), name(), c.stages,
                     static_cast<std::int64_t>(dtypeBytes(a.q.dtype)) * c.blockN * (c.dim + c.dimV),
                     "block_n = " + std::to_string(c.blockN) + " keys with " + std::to_string(c.dim) + " + " +
                         std::to_string(c.dimV) + " columns");
}

Status AttentionDecodeOperation::check(const AttentionDecodeArguments &a) const {
  KILN_TRY(checkAttentionDecode(jit().device(), a));
  if (a.tiling.given()) {
    KILN_ASSIGN(const AttentionDecodeConfig c, configOf(a));
    KILN_TRY(checkTiles(a, c));
  }
  return {};
}

Result<std::int64_t> AttentionDecodeOperation::splitsOf(const AttentionDecodeArguments &a) const {
  KILN_ASSIGN(const AttentionDecodeConfig c, configOf(a));
  return splitsFor(jit(), c, a);
}

/// New rows into the cache.
Status AttentionDecodeOperation::planAppend(const AttentionDecodeArguments &a, const AttentionDecodeConfig &call,
                                            Plan &plan) const {
  const AttentionDecodeConfig c = configOfAppend(call);
  const auto element = kernelElement(a.q.dtype);
  KILN_ASSIGN(JitKernel * kernel, appends.get(jit(), {element}, c, [&] { return attentionAppend(element, c); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(newTokensOf(a), c.blockNew) * a.kCache.shape[2] * a.q.shape[0]));
  return plan.launch(*kernel, grid, named<"k">(a.kCache), named<"v">(a.vCache), named<"k_new">(orNone(a.kNew)),
                     named<"v_new">(orNone(a.vNew)), named<"rotary_cos">(orNone(a.rotaryCos)),
                     named<"rotary_sin">(orNone(a.rotarySin)), named<"cache_seqlens">(orNone(a.cacheSeqlens)),
                     named<"page_table">(orNone(a.pageTable)), named<"cache_batch_idx">(orNone(a.cacheBatchIdx)),
                     named<"leftpad_k">(orNone(a.leftPadK)));
}

Status AttentionDecodeOperation::plan(const AttentionDecodeArguments &a, Plan &plan) const {
  const std::int64_t batch = a.q.shape[0], keyHeads = a.kCache.shape[2], rows = rowsOf(a);
  if (batch == 0 || keyHeads == 0 || (rows == 0 && newTokensOf(a) == 0))
    return {};
  KILN_ASSIGN(AttentionDecodeConfig c, configOf(a));
  KILN_ASSIGN(const std::int64_t splits, splitsFor(jit(), c, a));
  c.split = splits > 1;
  c.lse = c.lse && !c.split, c.sink = c.sink && !c.split; // the second launch has them
  if (c.appended) {
    KILN_TRY(planAppend(a, c, plan));
    c.blockNew = 0;
  }
  const AttentionArguments same = asAttention(a);
  const auto element = kernelElement(a.q.dtype);
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element}, c, [&] { return attentionDecode(element, c); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), programsOf(c, a) * splits));

  const std::int64_t dimV = a.vCache.shape[3], pairs = batch * keyHeads;
  Tensor partialO, partialLse;
  if (c.split) {
    const auto bytesOf = [](std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); };
    KILN_ASSIGN(const auto parts, plan.workspace({{"partial outputs", bytesOf(pairs * splits * rows * dimV)},
                                                  {"partial sums", bytesOf(pairs * splits * rows)}}));
    const auto dense = [](DeviceAddress address, std::initializer_list<std::int64_t> shape) {
      Tensor t;
      t.address = address, t.dtype = DType::F32;
      for (const std::int64_t extent : shape)
        t.shape[t.rank++] = extent;
      std::int64_t stride = 1;
      for (unsigned d = t.rank; d-- > 0; stride *= t.shape[d])
        t.strides[d] = stride;
      return t;
    };
    partialO = dense(parts[0], {pairs, splits, rows, dimV}), partialLse = dense(parts[1], {pairs, splits, rows});
  }
  const auto i32 = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  const Tensor o = byGroup(a.o, same), lse = orNone(a.lse), sink = orNone(a.sink);
  KILN_TRY(plan.launch(*kernel, grid, named<"q">(byGroup(a.q, same)), named<"k">(a.kCache), named<"v">(a.vCache),
                       named<"k_new">(orNone(a.kNew)), named<"v_new">(orNone(a.vNew)),
                       named<"rotary_cos">(orNone(a.rotaryCos)), named<"rotary_sin">(orNone(a.rotarySin)),
                       named<"o">(o), named<"lse">(lse), named<"sink">(sink),
                       named<"alibi">(inFront(a.alibi, 2, batch)), named<"q_descale">(orNone(a.descaleQ)),
                       named<"k_descale">(orNone(a.descaleK)), named<"v_descale">(orNone(a.descaleV)),
                       named<"cache_seqlens">(orNone(a.cacheSeqlens)), named<"page_table">(orNone(a.pageTable)),
                       named<"cache_batch_idx">(orNone(a.cacheBatchIdx)), named<"leftpad_k">(orNone(a.leftPadK)),
                       named<"partial_o">(partialO), named<"partial_lse">(partialLse), named<"splits">(i32(splits)),
                       named<"window_left">(i32(a.windowLeft)), named<"window_right">(i32(rightOf(same))),
                       named<"scale">(scaleOf(same)), named<"cap">(a.softcap)));
  if (!c.split || rows == 0)
    return {};
  const auto output = kernelElement(a.o.dtype);
  SplitCombineConfig combine;
  combine.dimV = c.dimV, combine.group = c.group, combine.sink = a.sink.has_value(), combine.lse = a.lse.has_value();
  chooseCombineTiles(combine, splits, rows);
  KILN_ASSIGN(JitKernel * second,
              combines.get(jit(), {output}, combine, [&] { return splitCombine(output, combine); }));
  KILN_ASSIGN(const Dim3 gridOfRows, gridOf(name(), ceilDiv(rows, combine.rows) * pairs));
  return plan.launch(*second, gridOfRows, named<"partial_o">(partialO), named<"partial_lse">(partialLse), named<"o">(o),
                     named<"lse">(lse), named<"sink">(sink));
}

std::optional<std::string> AttentionDecodeOperation::callText(const AttentionDecodeArguments &a) const {
  const CallTensor tensors[] = {{"q", a.q},
                                {"k_cache", a.kCache},
                                {"v_cache", a.vCache},
                                {"lse", a.lse},
                                {"cache_seqlens", a.cacheSeqlens},
                                {"k_new", a.kNew},
                                {"v_new", a.vNew},
                                {"rotary_cos", a.rotaryCos},
                                {"rotary_sin", a.rotarySin},
                                {"page_table", a.pageTable},
                                {"cache_batch_idx", a.cacheBatchIdx},
                                {"leftpad_k", a.leftPadK},
                                {"sink", a.sink},
                                {"alibi", a.alibi},
                                {"q_descale", a.descaleQ},
                                {"k_descale", a.descaleK},
                                {"v_descale", a.descaleV}};
  return callWords(name(), tensors, optionValuesOf(a));
}

} // namespace kiln::kernels
