#include "kernels/attention_decode/AttentionAppend.h"

#include "kernels/attention/Attention.h"
#include "kernels/attention_decode/NewRows.h"

namespace kiln::kernels {

using namespace language;

namespace {

template <Element T, Element C> Kernel appendOf(const AttentionDecodeConfig &c) {
  return kernel(
      "attention_decode_append", {.warps = c.warps, .stages = c.stages, .config = entriesOf(c)},
      [&](TensorArg<T, 4, "k"> k, TensorArg<T, 4, "v"> v, TensorArg<T, 4, "k_new"> kNew, TensorArg<T, 4, "v_new"> vNew,
          TensorArg<C, 2, "rotary_cos", maybe> cosines, TensorArg<C, 2, "rotary_sin", maybe> sines,
          TensorArg<i32, 1, "cache_seqlens"> lengths, TensorArg<i32, 2, "page_table", maybe> table,
          TensorArg<i32, 1, "cache_batch_idx", maybe> batchIndex, TensorArg<i32, 1, "leftpad_k", maybe> leftPads) {
        const auto added = cast<i32>(kNew.extent(1)), keyHeads = cast<i32>(kNew.extent(2));
        const auto blocks = ceilDiv(added, c.blockNew);
        const auto pair = programId() / blocks, kvHead = pair % keyHeads, batch = pair / keyHeads;
        const SequenceInCache sequence(c, k, table, lengths, batchIndex, leftPads, batch);
        sequence.check(c, k.extent(0), added);
        const CacheRows cache(c, table, sequence, sequence.count);
        if (c.checked && c.place != CachePlace::Rows)
          cache.checkPages(k.extent(0), added);
        constexpr std::int64_t unit = headDimUnit(elementOf<T>);
        NewRows<T, C>(c, kNew, vNew, Rotary<C>(c, cosines, sines), batch, kvHead, sequence.count, added,
                      multipleOf(kNew.extent(3), unit), multipleOf(vNew.extent(3), unit))
            .put(cache, k, v, programId() % blocks * c.blockNew, sequence.capacity);
      });
}

} // namespace

AttentionDecodeConfig configOfAppend(const AttentionDecodeConfig &call) {
  AttentionDecodeConfig out;
  out.blockNew = call.blockNew, out.stages = 1;
  out.dim = call.dim, out.dimV = call.dimV;
  out.place = call.place, out.pageSize = call.pageSize;
  out.lengths = call.lengths, out.batchIndex = call.batchIndex, out.leftPad = call.leftPad;
  out.rotary = call.rotary, out.pairs = call.pairs, out.angles = call.angles;
  out.checked = call.checked;
  return out;
}

Kernel attentionAppend(DType element, const AttentionDecodeConfig &config) {
  return withElement<f16, bf16, f8e4m3>(element, "attention_decode_append", [&]<Element T>() {
    if constexpr (std::same_as<T, f8e4m3>) // nothing of it is rotated
      return appendOf<T, f32>(config);
    else
      return withElement<f32, T>(config.angles, "attention_decode_append",
                                 [&]<Element C>() { return appendOf<T, C>(config); });
  });
}

} // namespace kiln::kernels
