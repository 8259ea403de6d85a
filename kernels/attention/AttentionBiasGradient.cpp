#include "kernels/attention/AttentionBiasGradient.h"

#include "kernels/attention/Attention.h"
#include "kernels/attention/PairGradients.h"
#include "kernels/attention/PairOptions.h"
#include "kernels/attention/SequenceRows.h"

namespace kiln::kernels {

using namespace language;

namespace {

template <Element T, Element B, Element Out> Kernel gradientOf(const AttentionBackwardConfig &c) {
  return kernel(
      "attention_bias_gradient",
      {.warps = c.warps, .stages = c.stages, .grade = approx, .config = entriesOf(c), .tensors = c.hooks.tensors()},
      [&](TensorArg<T, 5, "q"> q, TensorArg<T, 4, "k"> k, TensorArg<T, 4, "v"> v, TensorArg<T, 5, "do"> dO,
          TensorArg<f32, 3, "lse2"> lse2, TensorArg<f32, 3, "delta"> delta, TensorArg<Out, 4, "dbias"> dbias,
          TensorArg<f32, 2, "alibi", maybe> alibi, TensorArg<i32, 1, "cu_q", maybe> cuQ,
          TensorArg<i32, 1, "cu_k", maybe> cuK, TensorArg<i32, 1, "used_q", maybe> usedQ,
          TensorArg<i32, 1, "used_k", maybe> usedK, Arg<i32, "sequences"> sequences, Arg<i32, "heads_of_bias"> shared,
          Arg<i32, "window_left"> windowLeft, Arg<i32, "window_right"> windowRight,
          Arg<i32, "position_offset"> positionOffset, Arg<f32, "scale"> scale, Arg<f32, "cap"> cap,
          PairOptions<B> options) {
        using Number = Scalar<i32>;
        const auto group = cast<i32>(q.extent(3));
        const bool both = c.biasOfRows && c.biasOfKeys, ofRows = hasRowsOfBias(c);
        const auto blocksOfRows = ofRows ? ceilDiv(cast<i32>(dbias.extent(2)), c.blockM) : constant<i32>(1);
        const auto blocksOfKeys = both || !ofRows ? ceilDiv(cast<i32>(dbias.extent(3)), c.blockN) : constant<i32>(1);
        const auto program = programId(), tile = program % (blocksOfRows * blocksOfKeys),
                   place = program / (blocksOfRows * blocksOfKeys);
        const auto heads = cast<i32>(dbias.extent(1));
        const auto firstHead = place % heads, firstBatch = place / heads;
        const auto ownRow = tile / blocksOfKeys * c.blockM, ownKey = tile % blocksOfKeys * c.blockN;

        /// A sequence and a head of it.
        struct Head {
          Number batch, head;
          SequenceRows mine, theirs;
        };
        const auto headAt = [&](const Number &batch, const Number &head) {
          return Head{batch, head,
                      sequenceRows(q.extent(1), cast<i32>(q.extent(1)), batch, cuQ, usedQ, c.packedQ, c.usedQ),
                      sequenceRows(k.extent(1), cast<i32>(k.extent(1)), batch, cuK, usedK, c.packedK, c.usedK)};
        };
        constexpr std::int64_t unit = headDimUnit(elementOf<T>);
        const auto headDim = multipleOf(q.extent(4), unit), valueDim = multipleOf(v.extent(3), unit);
        struct Rows {
          Tile<T> query, gradient;
          Tile<f32> lse, delta;
        };
        const auto rowsOf = [&](const Head &at, const Number &row0) {
          const auto tileOf = [&](const TensorView<T, 5> &t, const Scalar<i64> &columns, int width) {
            const auto rows = t.at(at.mine.batch, all, at.head / group, at.head % group, all);
            return loadView(at.mine.of(rows, columns).tiles({c.blockM, width}), {row0, 0});
          };
          const auto numbers = [&](const TensorView<f32, 3> &t) {
            return expandDims(loadView(at.mine.of(t.at(at.mine.batch, at.head, all)).tiles({c.blockM}), {row0}), 1);
          };
          return Rows{tileOf(q, headDim, c.dim), tileOf(dO, valueDim, c.dimV), numbers(lse2), numbers(delta)};
        };
        struct Keys {
          Tile<T> key, value;
        };
        const auto keysOf = [&](const Head &at, const Number &key0) {
          const auto tileOf = [&](const TensorView<T, 4> &t, const Scalar<i64> &columns, int width) {
            const auto rows = t.at(at.theirs.batch, all, at.head / group, all);
            return loadView(at.theirs.of(rows, columns).tiles({c.blockN, width}), {key0, 0});
          };
          return Keys{tileOf(k, headDim, c.dim), tileOf(v, valueDim, c.dimV)};
        };
        const auto visibilityOf = [&](const Head &at) {
          const auto shift = c.bottomRight ? at.theirs.rows - at.mine.rows : positionOffset;
          return Visibility({c.left, c.right, c.blockM, c.blockN, /*onlyRows=*/true}, at.mine.rows, at.theirs.rows,
                            shift, windowLeft, windowRight);
        };
        /// dz of a block, [rows, keys].
        const auto pairsOf = [&](const Head &at, const Visibility &visibility, const Rows &rows, const Keys &keys,
                                 const Number &row0, const Number &key0, const std::optional<Tile<f32>> &bias) {
          const PairFunctions functions(c.hooks, at.batch, at.head, at.mine.rows, at.theirs.rows);
          Logits logits(c.softcap, c.alibi, /*hasBias=*/true, scale, cap, functions.hasScore());
          if (c.alibi)
            logits.setSlope(load(alibi.at(at.batch, at.head).pointer()));
          PairGradients pairs(logits, visibility, visibility.isCut(row0, key0),
                              expandDims(visibility.positionsOf(row0 + range(0, c.blockM)), 1),
                              expandDims(key0 + range(0, c.blockN), 0));
          const PairDropout dropout = options.dropout(c.dropout, at.batch, at.head);
          pairs.drop(dropout.ofRows(row0, c.blockM, key0, c.blockN), options.dropoutFactor(c.dropout));
          if (functions.given())
            pairs.setFunctions(functions, expandDims(row0 + range(0, c.blockM), 1), {});
          pairs.powers(dot(rows.query, transpose(keys.key)), rows.lse, bias);
          return pairs.ofLogits(dot(rows.gradient, transpose(keys.value)), rows.delta);
        };

        if (both) {
          const auto total =
              loop(over(0, sequences * shared), zeros<f32>({c.blockM, c.blockN}), [&](auto n, auto total) {
                const Head at = headAt(firstBatch + n / shared, firstHead + n % shared);
                const Visibility visibility = visibilityOf(at);
                const Visibility::Keys seen = visibility.seenBy(ownRow);
                return when((ownRow < at.mine.rows) & (ownKey < seen.end) & (ownKey + c.blockN > seen.begin),
                            [&] {
                              const PairBias bias =
                                  options.bias(c.bias, {c.blockM, c.blockN, true, true}, at.batch, at.head, ownRow);
                              return total + pairsOf(at, visibility, rowsOf(at, ownRow), keysOf(at, ownKey), ownRow,
                                                     ownKey, bias.at(ownKey));
                            },
                            [&] { return total; });
              });
          storeView(dbias.at(firstBatch, firstHead, all, all).tiles({c.blockM, c.blockN}, Unit::None), {ownRow, ownKey},
                    cast<Out>(total));
          return;
        }
        const Head at = headAt(firstBatch, firstHead);
        const Visibility visibility = visibilityOf(at);
        if (ofRows) {
          const PairBias bias =
              options.bias(c.bias, {c.blockM, c.blockN, c.biasOfRows, false}, at.batch, at.head, ownRow);
          const Rows rows = rowsOf(at, ownRow);
          const Visibility::Keys seen = visibility.seenBy(ownRow);
          const auto end = select(ownRow < at.mine.rows, seen.end, seen.begin);
          const auto total = loop(over(seen.begin, end, c.blockN), zeros<f32>({c.blockM}), [&](auto key0, auto total) {
            return total + sum(pairsOf(at, visibility, rows, keysOf(at, key0), ownRow, key0, bias.at(key0)), along(1));
          });
          storeView(dbias.at(firstBatch, firstHead, all, 0).tiles({c.blockM}, Unit::None), {ownRow}, cast<Out>(total));
          return;
        }
        const Keys keys = keysOf(at, ownKey);
        const Visibility::Rows seeing = visibility.seeing(ownKey);
        const auto end = select(ownKey < at.theirs.rows, seeing.end, seeing.begin);
        const auto bias = options.bias(c.bias, {c.blockM, c.blockN, false, true}, at.batch, at.head, ownRow).at(ownKey);
        const auto total = loop(over(seeing.begin, end, c.blockM), zeros<f32>({c.blockN}), [&](auto row0, auto total) {
          return total + sum(pairsOf(at, visibility, rowsOf(at, row0), keys, row0, ownKey, bias), along(0));
        });
        storeView(dbias.at(firstBatch, firstHead, 0, all).tiles({c.blockN}, Unit::None), {ownKey}, cast<Out>(total));
      });
}

template <Element Out> Kernel sumsOf(const AttentionBackwardConfig &c) {
  return kernel("attention_bias_sums", {.warps = c.warps, .config = entriesOf(c)},
                [&](TensorArg<f32, 3, "parts"> parts, TensorArg<Out, 3, "dbias"> dbias, Arg<i32, "sequences"> sequences,
                    Arg<i32, "heads_of_bias"> shared) {
                  const bool isOne = !c.biasOfRows && !c.biasOfKeys;
                  const auto blocks = ceilDiv(cast<i32>(dbias.extent(2)), c.blockM), program = programId(),
                             place = program / blocks, heads = cast<i32>(dbias.extent(1));
                  const auto first = program % blocks * c.blockM, head = place % heads, batch = place / heads;
                  const auto total = loop(over(0, sequences * shared), zeros<f32>({c.blockM}), [&](auto n, auto total) {
                    const auto view = parts.at(batch + n / shared, head + n % shared, all).tiles({c.blockM});
                    if (!isOne)
                      return total + loadView(view, {first});
                    return loop(over(0, cast<i32>(parts.extent(2)), c.blockM), total,
                                [&](auto at, auto total) { return total + loadView(view, {at}); });
                  });
                  if (isOne)
                    store(dbias.at(batch, head, 0).pointer(), cast<Out>(sum(total)));
                  else
                    storeView(dbias.at(batch, head, all).tiles({c.blockM}, Unit::None), {first}, cast<Out>(total));
                });
}

/// Calls `make.template operator()<B>()` for the bias's type.
template <typename F> Kernel withBias(const AttentionBackwardConfig &c, F &&make) {
  switch (c.bias) {
  case BiasType::None:
    break;
  case BiasType::F32:
    return make.template operator()<f32>();
  case BiasType::F16:
    return make.template operator()<f16>();
  case BiasType::BF16:
    return make.template operator()<bf16>();
  }
  return Kernel::failed(
      Status::invalid("attention_backward: the launch for dbias without a bias", "set bias to f32, f16 or bf16"));
}

} // namespace

Kernel biasGradient(DType element, const AttentionBackwardConfig &c) {
  return withElement<f16, bf16>(element, "attention_backward", [&]<Element T>() {
    return withBias(c, [&]<Element B>() { return c.biasParts ? gradientOf<T, B, f32>(c) : gradientOf<T, B, B>(c); });
  });
}

Kernel biasSums(const AttentionBackwardConfig &c) {
  return withBias(c, [&]<Element B>() { return sumsOf<B>(c); });
}

} // namespace kiln::kernels
