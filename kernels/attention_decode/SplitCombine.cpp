#include "kernels/attention_decode/SplitCombine.h"

#include "compiler/language/Language.h"
#include "kernels/attention/Logits.h"

namespace kiln::kernels {

using namespace language;

namespace {

template <Element T> Kernel combineOf(const SplitCombineConfig &c) {
  return kernel(
      "attention_decode_combine", {.warps = c.warps, .stages = 2, .grade = approx, .config = entriesOf(c)},
      [&](TensorArg<f32, 4, "partial_o"> partialO, TensorArg<f32, 3, "partial_lse"> partialLse, TensorArg<T, 5, "o"> o,
          TensorArg<f32, 3, "lse", maybe> lse, TensorArg<f32, 1, "sink", maybe> sink) {
        constexpr float minusInfinity = -std::numeric_limits<float>::infinity();
        const auto splits = cast<i32>(partialLse.extent(1)), rows = cast<i32>(partialLse.extent(2));
        const auto row = programId() % rows, pair = programId() / rows;
        const auto keyHeads = cast<i32>(o.extent(2)), kvHead = pair % keyHeads, batch = pair / keyHeads;
        const auto token = row / c.group, member = row % c.group, head = kvHead * c.group + member;

        const auto sums = partialLse.at(pair, all, row);
        const auto sumsOf = [&](const Tile<i32> &s) {
          return load(sums.pointer() + cast<i64>(s) * sums.stride(0), s < splits, minusInfinity);
        };
        const auto every = sumsOf(range(0, SplitCombineConfig::mostSplits));
        auto most = maximum(every);
        if (c.sink)
          most = maximum(most, load(sink.at(head).pointer()));
        // (-inf) - (-inf) is no number.
        const auto base = select(most == minusInfinity, 0.0f, most);
        const auto weightOf = [&](const auto &sum) { return exp2((sum - base) * log2e); };
        auto total = sum(weightOf(every));
        if (c.sink)
          total = total + weightOf(load(sink.at(head).pointer()));

        const auto parts = partialO.at(pair, all, row, all);
        const auto column = expandDims(range(0, c.dimV), 0);
        const auto isColumn = cast<i64>(column) < multipleOf(parts.extent(1), 8);
        const auto weighted = loop(over(0, splits, c.step), zeros<f32>({c.dimV}), [&](auto first, auto weighted) {
          const auto s = first + range(0, c.step);
          const auto sumOfSplit = sumsOf(s);
          const auto address = parts.pointer() + expandDims(cast<i64>(s) * parts.stride(0), 1) + column;
          const auto part = load(address, expandDims(sumOfSplit != minusInfinity, 1) & isColumn);
          return weighted + sum(part * expandDims(weightOf(sumOfSplit), 1), along(0));
        });
        const auto output = weighted * select(total == 0.0f, 0.0f, div(1.0f, total));
        const auto to = o.at(batch, token, kvHead, member, all);
        store(to.pointer() + range(0, c.dimV), cast<T>(output),
              cast<i64>(range(0, c.dimV)) < multipleOf(o.extent(4), 8));
        if (c.lse)
          store(lse.at(batch, head, token).pointer(),
                select(total == 0.0f, minusInfinity, base + log2(total, precise) * ln2));
      });
}

} // namespace

Kernel splitCombine(DType element, const SplitCombineConfig &config) {
  return withElement<f16, bf16>(element, "attention_decode_combine", [&]<Element T>() { return combineOf<T>(config); });
}

} // namespace kiln::kernels
