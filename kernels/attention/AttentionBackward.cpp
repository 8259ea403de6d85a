#include "kernels/attention/AttentionBackward.h"

#include "kernels/attention/Attention.h"
#include "kernels/attention/AttentionBiasGradient.h"
#include "kernels/attention/BlockWalk.h"
#include "kernels/attention/PairGradients.h"
#include "kernels/attention/PairOptions.h"
#include "kernels/attention/QuerySums.h"
#include "kernels/attention/SequenceRows.h"
#include "kernels/attention/SumOrder.h"

#include <limits>

namespace kiln::kernels {

using namespace language;

namespace {

/// What a kernel has besides its parameters.
std::vector<TensorDeclaration> tensorsOf(const AttentionBackwardConfig &c) {
  std::vector<TensorDeclaration> out = c.hooks.tensors();
  if (c.ordered)
    std::ranges::move(SumOrder::tensors(), std::back_inserter(out));
  return out;
}

QuerySums sumsOf(const TensorView<f32, 4> &sums, const SequenceRows &mine, const Scalar<i32> &batch,
                 const Scalar<i32> &head, const AttentionBackwardConfig &c) {
  return {sums,      mine,     batch, head,
          c.packedQ, c.blockM, c.dim, c.vectorSums ? QuerySums::Order::Vectors : QuerySums::Order::Numbers};
}

template <Element T> Kernel rowsKernel(const AttentionBackwardConfig &c) {
  return kernel(
      "attention_rows", {.warps = c.warps, .config = entriesOf(c), .tensors = tensorsOf(c)},
      [&](TensorArg<T, 5, "o"> o, TensorArg<T, 5, "do"> dO, TensorArg<f32, 3, "lse"> lse,
          TensorArg<f32, 3, "dlse", maybe> dlse, TensorArg<f32, 1, "sink", maybe> sink, TensorArg<f32, 3, "lse2"> lse2,
          TensorArg<f32, 3, "delta"> delta, TensorArg<f32, 3, "dsinks", maybe> dsinks,
          TensorArg<f32, 4, "dq_sums", maybe> dqSums, TensorArg<i32, 1, "cu_q", maybe> cuQ,
          TensorArg<i32, 1, "used_q", maybe> usedQ, Arg<i32, "queries"> queries) {
        const auto group = cast<i32>(o.extent(3)), heads = cast<i32>(o.extent(2)) * group;
        const auto blocks = ceilDiv(queries, c.blockM);
        const auto program = programId();
        const auto batch = program / (blocks * heads), rest = program % (blocks * heads), head = rest / blocks;
        const auto block = rest % blocks, row0 = block * c.blockM, kvHead = head / group, member = head % group;
        const SequenceRows mine = sequenceRows(o.extent(1), queries, batch, cuQ, usedQ, c.packedQ, c.usedQ);
        const auto valueDim = multipleOf(o.extent(4), headDimUnit(elementOf<T>));
        const auto tileOf = [&](const TensorView<T, 5> &t) {
          return cast<f32>(loadView(
              mine.of(t.at(mine.batch, all, kvHead, member, all), valueDim).tiles({c.blockM, c.dimV}), {row0, 0}));
        };
        const auto view = [&](const TensorView<f32, 3> &t, Unit unit) {
          return mine.of(t.at(mine.batch, head, all)).tiles({c.blockM}, unit);
        };
        // Rows after the last one read as zero, and are not written.
        const auto natural = loadView(view(lse, Unit::None), {row0});
        const auto isEmpty = natural == -std::numeric_limits<float>::infinity();
        auto sums = sum(tileOf(o) * tileOf(dO), along(1));
        if (c.dlse)
          sums = sums - select(isEmpty, 0.0f, loadView(view(dlse, Unit::None), {row0}));
        auto toBase2 = natural * log2e;
        // Of rows that a bias of the lowest float hides: they have no gradient.
        if (c.bias != BiasType::None)
          toBase2 =
              select(toBase2 == -std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::max(), toBase2);
        storeView(view(lse2, Unit::Last), {row0}, select(isEmpty, 0.0f, toBase2));
        storeView(view(delta, Unit::Last), {row0}, sums);
        if (c.onePass)
          sumsOf(dqSums, mine, batch, head, c).clear(row0);
        if (c.ordered)
          SumOrder::clear(batch, head, row0, c.blockM);
        if (c.sink) {
          const auto i = row0 + range(0, c.blockM);
          // Minus infinity less itself is no number: a sink that is it has no share.
          const auto share = exp2((load(sink.at(head).pointer()) - natural) * log2e);
          const auto lost = select((i < mine.rows) & !isEmpty, share * sums, 0.0f);
          store(dsinks.at(batch, head, block).pointer(), 0.0f - sum(lost));
        }
      });
}

struct KeysProgram {
  Scalar<i32> batch, kvHead, block;
};
KeysProgram keysOfProgram(const Scalar<i32> &blocks, const Scalar<i32> &keyHeads, bool isOrdered) {
  if (isOrdered) {
    const SumOrder::Program program = SumOrder::next(blocks, numPrograms() / blocks);
    return {program.pair / keyHeads, program.pair % keyHeads, program.block};
  }
  const auto program = programId();
  const auto batch = program / (blocks * keyHeads), rest = program % (blocks * keyHeads), kvHead = rest / blocks;
  return {batch, kvHead, rest % blocks};
}

template <Element T, typename Options> Kernel keysKernel(const AttentionBackwardConfig &c) {
  return kernel(
      "attention_key_gradients",
      {.warps = c.warps, .stages = c.stages, .grade = approx, .config = entriesOf(c), .tensors = tensorsOf(c)},
      [&](TensorArg<T, 5, "q"> q, TensorArg<T, 4, "k"> k, TensorArg<T, 4, "v"> v, TensorArg<T, 5, "do"> dO,
          TensorArg<f32, 3, "lse2"> lse2, TensorArg<f32, 3, "delta"> delta, TensorArg<T, 4, "dk"> dk,
          TensorArg<T, 4, "dv"> dv, TensorArg<f32, 4, "dq_sums", maybe> dqSums, TensorArg<f32, 2, "alibi", maybe> alibi,
          TensorArg<i32, 1, "cu_q", maybe> cuQ, TensorArg<i32, 1, "cu_k", maybe> cuK,
          TensorArg<i32, 1, "used_q", maybe> usedQ, TensorArg<i32, 1, "used_k", maybe> usedK, Arg<i32, "keys"> keys,
          Arg<i32, "window_left"> windowLeft, Arg<i32, "window_right"> windowRight,
          Arg<i32, "position_offset"> positionOffset, Arg<f32, "scale"> scale, Arg<f32, "cap"> cap, Options options) {
        const auto group = cast<i32>(q.extent(3)), keyHeads = cast<i32>(q.extent(2));
        const auto blocks = ceilDiv(keys, c.blockN);
        // The first keys are seen by the most rows under a causal mask: they come first.
        const auto [batch, kvHead, block] = keysOfProgram(blocks, keyHeads, c.ordered);
        const auto key0 = block * c.blockN;
        const SequenceRows mine =
                               sequenceRows(q.extent(1), cast<i32>(q.extent(1)), batch, cuQ, usedQ, c.packedQ, c.usedQ),
                           theirs = sequenceRows(k.extent(1), keys, batch, cuK, usedK, c.packedK, c.usedK);
        when(key0 < theirs.rows, [&] {
          constexpr std::int64_t unit = headDimUnit(elementOf<T>);
          const auto headDim = multipleOf(q.extent(4), unit), valueDim = multipleOf(v.extent(3), unit);
          const auto viewOf = [&](const TensorView<T, 4> &t, const Scalar<i64> &columns, int width) {
            return theirs.of(t.at(theirs.batch, all, kvHead, all), columns).tiles({c.blockN, width});
          };
          const auto shift = c.bottomRight ? theirs.rows - mine.rows : positionOffset;
          const Visibility visibility({c.left, c.right, c.blockM, c.blockN, /*onlyRows=*/true}, mine.rows, theirs.rows,
                                      shift, windowLeft, windowRight);
          const auto keyTile = loadView(viewOf(k, headDim, c.dim), {key0, 0});
          const auto valueTile = loadView(viewOf(v, valueDim, c.dimV), {key0, 0});
          const auto j = expandDims(key0 + range(0, c.blockN), 1);
          const auto factor = options.dropoutFactor(c.dropout);
          const Visibility::Rows rows =
              c.ordered ? SumOrder::counted(visibility.seeing(key0)) : visibility.seeing(key0);
          const auto [keySums, valueSums] = loop(
              over(0, group), zeros<f32>({c.blockN, c.dim}), zeros<f32>({c.blockN, c.dimV}),
              [&](auto member, auto keySums, auto valueSums) {
                const auto qView =
                    mine.of(q.at(mine.batch, all, kvHead, member, all), headDim).tiles({c.blockM, c.dim});
                const auto doView =
                    mine.of(dO.at(mine.batch, all, kvHead, member, all), valueDim).tiles({c.blockM, c.dimV});
                const auto head = kvHead * group + member;
                const auto numbers = [&](const TensorView<f32, 3> &t) {
                  return mine.of(t.at(mine.batch, head, all)).tiles({c.blockM});
                };
                const auto lseView = numbers(lse2), deltaView = numbers(delta);
                const PairFunctions functions(c.hooks, batch, head, mine.rows, theirs.rows);
                Logits logits(c.softcap, c.alibi, c.bias != BiasType::None, scale, cap, functions.hasScore());
                if (c.alibi)
                  logits.setSlope(load(alibi.at(batch, head).pointer()));
                const PairBias bias =
                    options.bias(c.bias, {c.blockN, c.blockM, c.biasOfKeys, c.biasOfRows}, batch, head, key0);
                const PairDropout dropout = options.dropout(c.dropout, batch, head);
                std::optional<BlockWalk> walk; // over what lists name, in place of all rows that see the keys
                if (c.hooks.hasLists())
                  walk.emplace(c.hooks, batch, head, key0 / c.hooks.blockKeys, c.hooks.blockRows, c.blockM, mine.rows,
                               mine.extent);
                std::optional<SumOrder> order;
                if (c.ordered)
                  order.emplace(visibility, batch, head, key0, c.blockN);
                const Visibility::Rows steps = walk ? Visibility::Rows{constant<i32>(0), walk->rounds()} : rows;
                return loop(over(steps.begin, steps.end, walk ? 1 : c.blockM), keySums, valueSums,
                            [&](auto at, auto keySums, auto valueSums) {
                              BlockWalk::Tile tile = walk ? walk->at(at) : BlockWalk::Tile{at, {}};
                              if (order)
                                tile.first = SumOrder::row0(steps, at, c.blockM);
                              const auto row0 = tile.first;
                              const auto query = loadView(qView, {row0, 0}), gradient = loadView(doView, {row0, 0});
                              const auto i = row0 + range(0, c.blockM);
                              PairGradients pairs(logits, visibility, visibility.isCut(row0, key0),
                                                  visibility.positionsOf(expandDims(i, 0)), j);
                              pairs.drop(dropout.ofKeys(row0, c.blockM, key0, c.blockN), factor);
                              if (functions.given())
                                pairs.setFunctions(functions, expandDims(i, 0), tile.isPartial);
                              // Warpgroups multiply while threads compute.  Sums of dP begin at -delta: the
                              // difference takes no registers and no instructions.
                              std::optional<Tile<f32>> deltas;
                              Tile<f32> dp;
                              const auto multiplyGradients = [&] {
                                deltas = expandDims(loadView(deltaView, {row0}), 0);
                                dp = c.dropout ? dot(valueTile, transpose(gradient))
                                               : dot(valueTile, transpose(gradient),
                                                     broadcastTo(0.0f - *deltas, {c.blockN, c.blockM}));
                              };
                              // All products that need nothing else come first.  In one pass powers are computed while
                              // the round before is multiplied for dq, whose registers dP has after that.
                              if (!c.onePass)
                                multiplyGradients();
                              const auto products = dot(keyTile, transpose(query));
                              pairs.powers(products, expandDims(loadView(lseView, {row0}), 0), bias.at(row0));
                              if (c.onePass)
                                multiplyGradients();
                              const auto nextValues = dot(cast<T>(pairs.kept()), gradient, valueSums);
                              const auto dx = cast<T>(c.dropout ? pairs.gradients(dp, *deltas) : pairs.gradients(dp));
                              if (!c.onePass)
                                return std::tuple{dot(dx, query, keySums), nextValues};
                              const auto part = dot(transpose(dx), keyTile);
                              const auto nextKeys = dot(dx, query, keySums);
                              sumsOf(dqSums, mine, batch, head, c)
                                  .add(row0, part, order ? std::optional(order->after(row0)) : std::nullopt);
                              return std::tuple{nextKeys, nextValues};
                            });
              });
          storeView(viewOf(dk, headDim, c.dim), {key0, 0}, cast<T>(keySums * scale));
          storeView(viewOf(dv, valueDim, c.dimV), {key0, 0}, cast<T>(factor ? valueSums * *factor : valueSums));
        });
      });
}

template <Element T, typename Options> Kernel queriesKernel(const AttentionBackwardConfig &c) {
  return kernel(
      "attention_query_gradients",
      {.warps = c.warps, .stages = c.stages, .grade = approx, .config = entriesOf(c), .tensors = c.hooks.tensors()},
      [&](TensorArg<T, 5, "q"> q, TensorArg<T, 4, "k"> k, TensorArg<T, 4, "v"> v, TensorArg<T, 5, "do"> dO,
          TensorArg<f32, 3, "lse2"> lse2, TensorArg<f32, 3, "delta"> delta, TensorArg<T, 5, "dq"> dq,
          TensorArg<f32, 2, "alibi", maybe> alibi, TensorArg<i32, 1, "cu_q", maybe> cuQ,
          TensorArg<i32, 1, "cu_k", maybe> cuK, TensorArg<i32, 1, "used_q", maybe> usedQ,
          TensorArg<i32, 1, "used_k", maybe> usedK, Arg<i32, "queries"> queries, Arg<i32, "window_left"> windowLeft,
          Arg<i32, "window_right"> windowRight, Arg<i32, "position_offset"> positionOffset, Arg<f32, "scale"> scale,
          Arg<f32, "cap"> cap, Options options) {
        const auto group = cast<i32>(q.extent(3)), heads = cast<i32>(q.extent(2)) * group;
        const auto blocks = ceilDiv(queries, c.blockM);
        const auto program = programId();
        const auto batch = program / (blocks * heads), rest = program % (blocks * heads), head = rest / blocks;
        // The last rows see the most keys under a causal mask: they come first.
        const auto row0 = (c.right ? blocks - 1 - rest % blocks : rest % blocks) * c.blockM;
        const auto kvHead = head / group, member = head % group;
        const SequenceRows mine = sequenceRows(q.extent(1), queries, batch, cuQ, usedQ, c.packedQ, c.usedQ),
                           theirs =
                               sequenceRows(k.extent(1), cast<i32>(k.extent(1)), batch, cuK, usedK, c.packedK, c.usedK);
        when(row0 < mine.rows, [&] {
          constexpr std::int64_t unit = headDimUnit(elementOf<T>);
          const auto headDim = multipleOf(q.extent(4), unit), valueDim = multipleOf(v.extent(3), unit);
          const auto mineOf = [&](const TensorView<T, 5> &t, const Scalar<i64> &columns, int width) {
            return mine.of(t.at(mine.batch, all, kvHead, member, all), columns).tiles({c.blockM, width});
          };
          const auto kView = theirs.of(k.at(theirs.batch, all, kvHead, all), headDim).tiles({c.blockN, c.dim});
          const auto vView = theirs.of(v.at(theirs.batch, all, kvHead, all), valueDim).tiles({c.blockN, c.dimV});
          const auto numbers = [&](const TensorView<f32, 3> &t) {
            return expandDims(loadView(mine.of(t.at(mine.batch, head, all)).tiles({c.blockM}), {row0}), 1);
          };
          const auto shift = c.bottomRight ? theirs.rows - mine.rows : positionOffset;
          const Visibility visibility({c.left, c.right, c.blockM, c.blockN}, mine.rows, theirs.rows, shift, windowLeft,
                                      windowRight);
          const auto query = loadView(mineOf(q, headDim, c.dim), {row0, 0});
          const auto gradient = loadView(mineOf(dO, valueDim, c.dimV), {row0, 0});
          const auto lse = numbers(lse2), sums = numbers(delta);
          const auto i = row0 + range(0, c.blockM);
          const auto p = expandDims(visibility.positionsOf(i), 1);
          const PairFunctions functions(c.hooks, batch, head, mine.rows, theirs.rows);
          Logits logits(c.softcap, c.alibi, c.bias != BiasType::None, scale, cap, functions.hasScore());
          if (c.alibi)
            logits.setSlope(load(alibi.at(batch, head).pointer()));
          const PairBias bias =
              options.bias(c.bias, {c.blockM, c.blockN, c.biasOfRows, c.biasOfKeys}, batch, head, row0);
          const PairDropout dropout = options.dropout(c.dropout, batch, head);
          std::optional<BlockWalk> walk; // over what lists name, in place of all keys that are seen
          if (c.hooks.hasLists())
            walk.emplace(c.hooks, batch, head, row0 / c.hooks.blockRows, c.hooks.blockKeys, c.blockN, theirs.rows,
                         theirs.extent);
          const Visibility::Keys keys =
              walk ? Visibility::Keys{constant<i32>(0), walk->rounds()} : visibility.seenBy(row0);
          const auto total = loop(
              over(keys.begin, keys.end, walk ? 1 : c.blockN), zeros<f32>({c.blockM, c.dim}), [&](auto at, auto total) {
                const BlockWalk::Tile tile = walk ? walk->at(at) : BlockWalk::Tile{at, {}};
                const auto key0 = tile.first;
                const auto keyTile = loadView(kView, {key0, 0});
                PairGradients pairs(logits, visibility, visibility.isCut(row0, key0), p,
                                    expandDims(key0 + range(0, c.blockN), 0));
                pairs.drop(dropout.ofRows(row0, c.blockM, key0, c.blockN), options.dropoutFactor(c.dropout));
                if (functions.given())
                  pairs.setFunctions(functions, expandDims(i, 1), tile.isPartial);
                pairs.powers(dot(query, transpose(keyTile)), lse, bias.at(key0));
                const auto dx = pairs.gradients(dot(gradient, transpose(loadView(vView, {key0, 0}))), sums);
                return dot(cast<T>(dx), keyTile, total);
              });
          storeView(mineOf(dq, headDim, c.dim), {row0, 0}, cast<T>(total * scale));
        });
      });
}

template <Element T> Kernel sumsKernel(const AttentionBackwardConfig &c) {
  return kernel("attention_query_sums", {.warps = c.warps, .config = entriesOf(c)},
                [&](TensorArg<f32, 4, "dq_sums"> dqSums, TensorArg<T, 5, "dq"> dq, TensorArg<i32, 1, "cu_q", maybe> cuQ,
                    TensorArg<i32, 1, "used_q", maybe> usedQ, Arg<i32, "queries"> queries, Arg<f32, "scale"> scale) {
                  const auto group = cast<i32>(dq.extent(3)), heads = cast<i32>(dq.extent(2)) * group;
                  const auto blocks = ceilDiv(queries, c.blockM);
                  const auto program = programId();
                  const auto batch = program / (blocks * heads), rest = program % (blocks * heads);
                  const auto head = rest / blocks, row0 = rest % blocks * c.blockM;
                  const SequenceRows mine = sequenceRows(dq.extent(1), queries, batch, cuQ, usedQ, c.packedQ, c.usedQ);
                  const auto headDim = multipleOf(dq.extent(4), headDimUnit(elementOf<T>));
                  const auto out = mine.of(dq.at(mine.batch, all, head / group, head % group, all), headDim);
                  const auto sums = sumsOf(dqSums, mine, batch, head, c).load(row0);
                  storeView(out.tiles({c.blockM, c.dim}), {row0, 0}, cast<T>(sums * scale));
                });
}

Kernel sinkKernel(const AttentionBackwardConfig &c) {
  return kernel("attention_sink_gradient", {.warps = c.warps, .config = entriesOf(c)},
                [&](TensorArg<f32, 3, "dsinks"> dsinks, TensorArg<f32, 1, "dsink"> dsink) {
                  const auto head = programId();
                  const auto blocks = dsinks.extent(2), count = dsinks.extent(0) * blocks;
                  const auto total = loop(over(constant<i64>(0), count, c.blockM), zeros<f32>({c.blockM}),
                                          [&](auto first, auto total) {
                                            const auto at = first + cast<i64>(range(0, c.blockM));
                                            const auto part = dsinks.at(0, head, 0).pointer() +
                                                              at / blocks * dsinks.stride(0) + at % blocks;
                                            return total + load(part, at < count, 0.0f);
                                          });
                  store(dsink.at(head).pointer(), sum(total));
                });
}

} // namespace

AttentionBackwardConfig ofLaunch(AttentionBackwardLaunch launch, const AttentionBackwardConfig &call) {
  AttentionBackwardConfig c = call;
  c.ordered &= c.onePass && SumOrder::isKnown(c.hooks);
  const AttentionBackwardConfig standard;
  const bool isPairs = launch == AttentionBackwardLaunch::Keys || launch == AttentionBackwardLaunch::Queries;
  if (isPairs) {
    c.sink = c.dlse = c.biasParts = false;
    c.onePass &= launch == AttentionBackwardLaunch::Keys;
    c.ordered &= launch == AttentionBackwardLaunch::Keys;
    c.vectorSums |= !c.onePass;
    return c;
  }
  if (launch == AttentionBackwardLaunch::Bias) {
    c.sink = c.dlse = c.onePass = c.ordered = false;
    c.vectorSums = true;
    return c;
  }
  c.blockN = standard.blockN, c.stages = standard.stages;
  c.vectorSums |= launch != AttentionBackwardLaunch::Sums;
  if (!c.onePass)
    c.dim = standard.dim;
  c.left = c.right = c.softcap = c.alibi = c.packedK = c.usedK = c.dropout = false;
  c.hooks = {};
  if (launch == AttentionBackwardLaunch::BiasSums) {
    AttentionBackwardConfig sums;
    sums.bias = c.bias, sums.biasOfRows = c.biasOfRows, sums.biasOfKeys = c.biasOfKeys;
    sums.blockM = c.blockM, sums.warps = c.warps;
    return sums;
  }
  if (c.bias != BiasType::None)
    c.bias = BiasType::F32;
  c.biasOfRows = c.biasOfKeys = c.biasParts = false;
  c.bottomRight = standard.bottomRight;
  if (launch != AttentionBackwardLaunch::Rows) {
    c.dimV = standard.dimV, c.bias = standard.bias;
    c.sink = c.dlse = c.onePass = c.ordered = false;
  }
  if (launch == AttentionBackwardLaunch::Sink) {
    c.dim = standard.dim;
    c.packedQ = c.usedQ = false;
  }
  return c;
}

Kernel attentionBackward(AttentionBackwardLaunch launch, DType element, const AttentionBackwardConfig &config) {
  return withElement<f16, bf16>(element, "attention_backward", [&]<Element T>() {
    switch (launch) {
    case AttentionBackwardLaunch::Rows:
      return rowsKernel<T>(config);
    case AttentionBackwardLaunch::Keys:
      return withPairOptions(config, [&]<typename Options>() { return keysKernel<T, Options>(config); });
    case AttentionBackwardLaunch::Queries:
      return withPairOptions(config, [&]<typename Options>() { return queriesKernel<T, Options>(config); });
    case AttentionBackwardLaunch::Sums:
      return sumsKernel<T>(config);
    case AttentionBackwardLaunch::Sink:
      return sinkKernel(config);
    case AttentionBackwardLaunch::Bias:
      return biasGradient(element, config);
    case AttentionBackwardLaunch::BiasSums:
      return biasSums(config);
    }
    return Kernel();
  });
}

} // namespace kiln::kernels
