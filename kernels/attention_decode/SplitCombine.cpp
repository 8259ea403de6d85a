#include "kernels/attention_decode/SplitCombine.h"

#include "compiler/language/Language.h"
#include "kernels/attention/Logits.h"

#include <optional>

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
        const auto blocks = ceilDiv(rows, c.rows);
        const auto row = programId() % blocks * c.rows + range(0, c.rows), token = row / c.group,
                   member = row % c.group;
        const auto isRow = row < rows;
        const auto pair = programId() / blocks;
        const auto keyHeads = cast<i32>(o.extent(2)), kvHead = pair % keyHeads, batch = pair / keyHeads;

        // [splits, rows]
        const auto sums = partialLse.at(pair, all, all);
        const auto sumsOf = [&](const Tile<i32> &s) {
          const auto address = sums.pointer() + expandDims(cast<i64>(s) * sums.stride(0), 1) +
                               expandDims(cast<i64>(row) * sums.stride(1), 0);
          return load(address, expandDims(s < splits, 1) & expandDims(isRow, 0), minusInfinity);
        };
        const auto every = sumsOf(range(0, c.splits));
        auto most = maximum(every, along(0));
        std::optional<Tile<f32>> sinks;
        if (c.sink) {
          sinks = load(sink.at(kvHead * c.group).pointer() + cast<i64>(member) * sink.stride(0), isRow);
          most = maximum(most, *sinks);
        }
        // (-inf) - (-inf) is no number.
        const auto base = select(most == minusInfinity, 0.0f, most);
        const auto weightsOf = [&](const Tile<f32> &sums) { return exp2((sums - expandDims(base, 0)) * log2e); };
        auto total = sum(weightsOf(every), along(0));
        if (c.sink)
          total = total + exp2((*sinks - base) * log2e);

        // [splits, rows, columns]
        const auto parts = partialO.at(pair, all, all, all);
        const auto column = range(0, c.dimV);
        const auto isColumn = cast<i64>(column) < multipleOf(parts.extent(2), 8);
        const auto outer = [](const auto &x, int before, int after) { // with dimensions of 1 before and after
          auto out = x;
          for (int i = 0; i < before; ++i)
            out = expandDims(out, 0);
          for (int i = 0; i < after; ++i)
            out = expandDims(out, static_cast<int>(out.rank()));
          return out;
        };
        const auto weighted =
            loop(over(0, splits, c.step), zeros<f32>({c.rows, c.dimV}), [&](auto first, auto weighted) {
              const auto s = first + range(0, c.step);
              const auto sums = sumsOf(s);
              const auto address = parts.pointer() + outer(cast<i64>(s) * parts.stride(0), 0, 2) +
                                   outer(cast<i64>(row) * parts.stride(1), 1, 1) + outer(column, 2, 0);
              const auto part = load(address, outer(sums != minusInfinity, 0, 1) & outer(isColumn, 2, 0));
              return weighted + sum(part * outer(weightsOf(sums), 0, 1), along(0));
            });
        const auto output = weighted * expandDims(select(total == 0.0f, 0.0f, div(1.0f, total)), 1);
        const auto to = o.at(batch, all, kvHead, all, all);
        const auto offset = cast<i64>(token) * to.stride(0) + cast<i64>(member) * to.stride(1);
        store(to.pointer() + expandDims(offset, 1) + expandDims(column, 0), cast<T>(output),
              expandDims(isRow, 1) & expandDims(isColumn, 0));
        if (c.lse) {
          const auto address = lse.at(batch, kvHead * c.group, 0).pointer() + cast<i64>(member) * lse.stride(1) +
                               cast<i64>(token) * lse.stride(2);
          store(address, select(total == 0.0f, minusInfinity, base + log2(total, precise) * ln2), isRow);
        }
      });
}

} // namespace

Kernel splitCombine(DType element, const SplitCombineConfig &config) {
  return withElement<f16, bf16>(element, "attention_decode_combine", [&]<Element T>() { return combineOf<T>(config); });
}

} // namespace kiln::kernels
