#include "kernels/attention/Attention.h"

#include "kernels/attention/BlockWalk.h"
#include "kernels/attention/Descale.h"
#include "kernels/attention/OnlineSoftmax.h"
#include "kernels/attention/PairFunctions.h"
#include "kernels/attention/PairOptions.h"
#include "kernels/attention/SequenceRows.h"
#include "kernels/attention/Visibility.h"

#include <algorithm>

namespace kiln::kernels {

using namespace language;

namespace {

template <Element T, typename Options> Kernel attentionOf(const AttentionConfig &c) {
  return kernel(
      "attention",
      {.warps = c.warps,
       .stages = c.stages,
       .maxRegisters = c.maxRegisters,
       .assemblerLevel = assemblerLevel(c),
       // Powers, quotients: far below the rounding of P to 16 bits.  The LSE is fp32: its logarithm is precise.
       .grade = approx,
       .config = entriesOf(c),
       .tensors = c.hooks.tensors()},
      [&](TensorArg<T, 5, "q"> q, TensorArg<T, 4, "k"> k, TensorArg<T, 4, "v"> v, TensorArg<OutputOf<T>, 5, "o"> o,
          TensorArg<f32, 3, "lse", maybe> lse, TensorArg<f32, 1, "sink", maybe> sink,
          TensorArg<f32, 2, "alibi", maybe> alibi, TensorArg<i32, 1, "cu_q", maybe> cuQ,
          TensorArg<i32, 1, "cu_k", maybe> cuK, TensorArg<i32, 1, "used_q", maybe> usedQ,
          TensorArg<i32, 1, "used_k", maybe> usedK, TensorArg<f32, 2, "q_descale", maybe> descaleQ,
          TensorArg<f32, 2, "k_descale", maybe> descaleK, TensorArg<f32, 2, "v_descale", maybe> descaleV,
          Arg<i32, "queries"> queries, Arg<i32, "window_left"> windowLeft, Arg<i32, "window_right"> windowRight,
          Arg<i32, "position_offset"> positionOffset, Arg<f32, "scale"> scale, Arg<f32, "cap"> cap, Options options) {
        const auto group = cast<i32>(q.extent(3)), heads = cast<i32>(q.extent(2)) * group;
        const auto blocks = ceilDiv(queries, c.blockM);
        const auto takeTile = [&](const Scalar<i32> &program) {
          const auto batch = program / (blocks * heads), rest = program % (blocks * heads), head = rest / blocks;
          // The last rows see the most keys under a causal mask: they come first.
          const auto row0 = (c.right ? blocks - 1 - rest % blocks : rest % blocks) * c.blockM;
          const auto kvHead = head / group, member = head % group;

          const SequenceRows mine = sequenceRows(q.extent(1), queries, batch, cuQ, usedQ, c.packedQ, c.usedQ),
                             theirs = sequenceRows(k.extent(1), cast<i32>(k.extent(1)), batch, cuK, usedK, c.packedK,
                                                   c.usedK);

          const auto tile = [&] {
            // 16 bytes of a row are wholly inside it or wholly outside.
            constexpr std::int64_t unit = headDimUnit(elementOf<T>);
            const auto headDim = multipleOf(q.extent(4), unit), valueDim = multipleOf(o.extent(4), unit);
            const auto qView = mine.of(q.at(mine.batch, all, kvHead, member, all), headDim).tiles({c.blockM, c.dim});
            const auto kView = theirs.of(k.at(theirs.batch, all, kvHead, all), headDim).tiles({c.blockN, c.dim});
            const auto vView = theirs.of(v.at(theirs.batch, all, kvHead, all), valueDim).tiles({c.blockN, c.dimV});
            const auto oView = mine.of(o.at(mine.batch, all, kvHead, member, all), valueDim).tiles({c.blockM, c.dimV});

            const auto shift = c.bottomRight ? theirs.rows - mine.rows : positionOffset;
            const Visibility visibility({c.left, c.right, c.blockM, c.blockN}, mine.rows, theirs.rows, shift,
                                        windowLeft, windowRight);
            const auto query = loadView(qView, {row0, 0});
            const auto i = row0 + range(0, c.blockM);
            const auto p = expandDims(visibility.positionsOf(i), 1);
            const auto factorOf = [&](bool isGiven, const TensorView<f32, 2> &factors) {
              return isGiven ? std::optional(load(factors.at(batch, kvHead).pointer())) : std::nullopt;
            };
            const auto factorOfProducts =
                scaleOfProducts(scale, factorOf(c.descaleQ, descaleQ), factorOf(c.descaleK, descaleK));
            const PairFunctions functions(c.hooks, batch, head, mine.rows, theirs.rows);
            Logits logits(c.softcap, c.alibi, c.bias != BiasType::None, factorOfProducts, cap, functions.hasScore());
            // Narrow heads leave registers for parts of the sums.
            const OnlineSoftmax softmax(logits, c.blockM, c.blockN, std::max(c.dim, c.dimV) <= 64 ? 8 : 1,
                                        powersFor(elementOf<T>));
            if (c.alibi)
              logits.setSlope(load(alibi.at(batch, head).pointer()));
            const PairBias bias =
                options.bias(c.bias, {c.blockM, c.blockN, c.biasOfRows, c.biasOfKeys}, batch, head, row0);

            const PairDropout dropout = options.dropout(c.dropout, batch, head);

            const auto step = [&](const BlockWalk::Tile &at, const SoftmaxRows &seen) {
              const auto first = at.first;
              const auto keyTile = loadView(kView, {first, 0});
              const auto products = dot(query, transpose(keyTile), zeros<f32>({c.blockM, c.blockN}));
              auto x = functions.hasScore() ? products * factorOfProducts : logits.capped(products);
              const auto j = expandDims(first + range(0, c.blockN), 0);
              if (functions.hasScore())
                x = functions.score(x, expandDims(i, 1), j);
              auto z = logits.of(x, p, j, bias.at(first));
              // One loop with a branch, not one loop for the blocks that need a mask and one for the others: half the
              // code to compile, and the copies of the next keys go on across the border.
              z = when(
                  visibility.isCut(row0, first),
                  [&] { return select(visibility.sees(p, j), z, -std::numeric_limits<float>::infinity()); },
                  [&] { return z; });
              if (functions.hasMask())
                z = functions.masked(z, expandDims(i, 1), j, at.isPartial, -std::numeric_limits<float>::infinity());
              auto [powers, rows] = softmax.next(z, seen);
              if (const auto kept = dropout.ofRows(row0, c.blockM, first, c.blockN))
                powers = select(*kept, powers, 0.0f);
              rows.values = dot(cast<T>(powers), loadView(vView, {first, 0}), rows.values);
              return rows;
            };
            std::optional<BlockWalk> walk; // over what lists name, in place of all keys that are seen
            if (c.hooks.hasLists())
              walk.emplace(c.hooks, batch, head, row0 / c.hooks.blockRows, c.hooks.blockKeys, c.blockN, theirs.rows,
                           theirs.extent);
            const Visibility::Keys keys =
                walk ? Visibility::Keys{constant<i32>(0), walk->rounds()} : visibility.seenBy(row0);
            const SoftmaxRows start = softmax.start(c.dimV);
            const auto [base, limit, total, values] =
                loop(over(keys.begin, keys.end, walk ? 1 : c.blockN), start.base, start.limit, start.total,
                     start.values, [&](auto at, auto base, auto limit, auto total, auto values) {
                       const SoftmaxRows next =
                           step(walk ? walk->at(at) : BlockWalk::Tile{at, {}}, {base, limit, total, values});
                       return std::tuple{next.base, next.limit, next.total, next.values};
                     });

            SoftmaxEnd end(logits, {base, limit, total, values});
            if (c.sink)
              end.addSink(load(sink.at(head).pointer()));
            auto output = end.output();
            if (const auto factor = options.dropoutFactor(c.dropout))
              output = output * *factor;
            if (c.descaleV)
              output = output * load(descaleV.at(batch, kvHead).pointer());
            storeView(oView, {row0, 0}, cast<OutputOf<T>>(output));
            if (c.lse) {
              const auto logSum = end.logSum();
              const auto rows = lse.at(mine.batch, head, all);
              store(rows.pointer() + (mine.start + cast<i64>(i)) * rows.stride(0), logSum, i < mine.rows);
            }
          };
          if (c.persistent)
            tile();
          else
            when(row0 < mine.rows, tile);
        };
        if (!c.persistent)
          return takeTile(programId());
        loop(over(programId(), cast<i32>(q.extent(0)) * heads * blocks, numPrograms()).stages(1), takeTile);
      });
}

} // namespace

int assemblerLevel(const AttentionConfig &c) {
  const int wide = std::max(c.dim, c.dimV);
  const bool rows32 = wide > 96 && wide <= 128 && c.blockM == 32 * c.warps && c.blockN == 64;
  const bool widest = wide > 192 && c.blockM == 16 * c.warps && c.blockN == 32;
  return rows32 || widest ? 1 : 3;
}

Kernel attention(DType element, const AttentionConfig &config) {
  return withElement<f16, bf16, f8e4m3>(element, "attention", [&]<Element T>() {
    return withPairOptions(config, [&]<typename Options>() { return attentionOf<T, Options>(config); });
  });
}

} // namespace kiln::kernels
