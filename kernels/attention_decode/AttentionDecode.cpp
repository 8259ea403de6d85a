#include "kernels/attention_decode/AttentionDecode.h"

#include "kernels/attention/Attention.h"
#include "kernels/attention/Descale.h"
#include "kernels/attention/OnlineSoftmax.h"
#include "kernels/attention/Visibility.h"
#include "kernels/attention_decode/NewRows.h"

#include <algorithm>

namespace kiln::kernels {

using namespace language;

namespace {

/// Tables, which lie apart from all that is written (AttentionDecodeChecks.cpp): so warps that only copy may read them.
constexpr TensorTraits unwritten{.noalias = true, .optional = true};

/// Tokens that a block of rows has a row of, at most.
int tokensOfBlock(int rows, int group) {
  return rows % group == 0 ? rows / group : group % rows == 0 ? 1 : (rows - 2) / group + 2;
}

template <Element T, Element C> Kernel decodeOf(const AttentionDecodeConfig &c) {
  return kernel(
      "attention_decode",
      {.warps = c.warps,
       .stages = c.stages,
       // Powers, quotients: far below the rounding of P to 16 bits.  The LSE is fp32: its logarithm is precise.
       .grade = approx,
       .config = entriesOf(c)},
      [&](TensorArg<T, 5, "q"> q, TensorArg<T, 4, "k"> k, TensorArg<T, 4, "v"> v, TensorArg<T, 4, "k_new", maybe> kNew,
          TensorArg<T, 4, "v_new", maybe> vNew, TensorArg<C, 2, "rotary_cos", maybe> cosines,
          TensorArg<C, 2, "rotary_sin", maybe> sines, TensorArg<OutputOf<T>, 5, "o"> o,
          TensorArg<f32, 3, "lse", maybe> lse, TensorArg<f32, 1, "sink", maybe> sink,
          TensorArg<f32, 2, "alibi", maybe> alibi, TensorArg<f32, 2, "q_descale", maybe> descaleQ,
          TensorArg<f32, 2, "k_descale", maybe> descaleK, TensorArg<f32, 2, "v_descale", maybe> descaleV,
          TensorArg<i32, 1, "cache_seqlens", unwritten> lengths, TensorArg<i32, 2, "page_table", unwritten> table,
          TensorArg<i32, 1, "cache_batch_idx", unwritten> batchIndex,
          TensorArg<i32, 1, "leftpad_k", unwritten> leftPads, TensorArg<f32, 4, "partial_o", maybe> partialO,
          TensorArg<f32, 3, "partial_lse", maybe> partialLse, Arg<i32, "splits"> splits,
          Arg<i32, "window_left"> windowLeft, Arg<i32, "window_right"> windowRight, Arg<f32, "scale"> scale,
          Arg<f32, "cap"> cap) {
        const bool append = c.blockNew > 0;
        const auto tokens = cast<i32>(q.extent(1)), keyHeads = cast<i32>(q.extent(2)), rows = tokens * c.group;
        const auto blocks = max(ceilDiv(rows, c.blockM), 1);
        const auto block = programId() % blocks;
        const auto split = c.split ? programId() / blocks % splits : constant<i32>(0);
        const auto pair = c.split ? programId() / blocks / splits : programId() / blocks;
        const auto kvHead = pair % keyHeads, batch = pair / keyHeads;

        // The keys: those in the cache, then the new ones.
        const SequenceInCache sequence(c, k, table, lengths, batchIndex, leftPads, batch);
        const auto added = append || c.appended ? cast<i32>(kNew.extent(1)) : constant<i32>(0);
        const auto before = sequence.count, count = c.appended ? min(before + added, sequence.capacity) : before;
        sequence.check(c, k.extent(0), added);
        const CacheRows cache(c, table, sequence, count);
        if (c.checked && c.place != CachePlace::Rows)
          cache.checkPages(k.extent(0), added);
        const Rotary<C> rotate(c, cosines, sines);

        // 16 bytes of a row are wholly inside it or wholly outside.
        constexpr std::int64_t unit = headDimUnit(elementOf<T>);
        const auto headDim = multipleOf(q.extent(4), unit), valueDim = multipleOf(o.extent(4), unit);
        const NewRows<T, C> newRows(c, kNew, vNew, rotate, batch, kvHead, count, added, headDim, valueDim);

        // Rows of this program: tokens of all heads of the group.
        const auto row0 = block * c.blockM, token0 = row0 / c.group;
        const auto row = row0 + range(0, c.blockM);
        const auto token = row / c.group, member = row % c.group;
        const auto isRow = row < rows;
        const auto addressOf = [&](const auto &tensor, int width) {
          const auto of = tensor.at(batch, all, kvHead, all, all);
          const auto offset = cast<i64>(token) * of.stride(0) + cast<i64>(member) * of.stride(1);
          return of.pointer() + expandDims(offset, 1) + expandDims(range(0, width), 0);
        };
        const auto isInside = [&](int width, const Scalar<i64> &columns) {
          return expandDims(isRow, 1) & expandDims(cast<i64>(range(0, width)) < columns, 0);
        };
        const auto positioned = c.left || c.right ? before + token : full({c.blockM}, before);
        const auto query = rotate(load(addressOf(q, c.dim), isInside(c.dim, headDim)), expandDims(positioned, 1),
                                  expandDims(isRow, 1));

        const auto keyRows = c.appended ? count : count + added, shift = keyRows - tokens;
        const int blockTokens = tokensOfBlock(c.blockM, c.group);
        const auto visibilityOf = [&](int keys, const Scalar<i32> &until, bool before = false) {
          return Visibility({.left = c.left, .right = c.right, .rows = blockTokens, .keys = keys, .before = before},
                            tokens, until, shift, windowLeft, windowRight);
        };
        const Visibility ofCached = visibilityOf(c.blockN, count, c.fromEnd);
        const auto p = expandDims(ofCached.positionsOf(token), 1);
        const auto factorOf = [&](bool isGiven, const TensorView<f32, 2> &factors) {
          return isGiven ? std::optional(load(factors.at(batch, kvHead).pointer())) : std::nullopt;
        };
        const auto factorOfProducts =
            scaleOfProducts(scale, factorOf(c.descaleQ, descaleQ), factorOf(c.descaleK, descaleK));
        Logits logits(c.softcap, c.alibi, /*hasBias=*/false, factorOfProducts, cap);
        std::optional<Tile<f32>> slopes;
        if (c.alibi)
          slopes =
              expandDims(Logits::toBase2Of(load(
                             alibi.at(batch, kvHead * c.group).pointer() + cast<i64>(member) * alibi.stride(1), isRow)),
                         1);
        const std::int64_t parts = std::max(c.dim, c.dimV) <= 64 ? 8 : 1;
        /// Rows after a block of keys from `first` on, whose tiles these are.
        const auto step = [&](const Visibility &visibility, int keys, const Scalar<i32> &first, const Tile<T> &keyTile,
                              const auto &valueTile, const SoftmaxRows &seen) {
          const OnlineSoftmax softmax(logits, c.blockM, keys, parts, powersFor(elementOf<T>));
          const auto x = logits.capped(dot(query, transpose(keyTile), zeros<f32>({c.blockM, keys})));
          const auto j = expandDims(first + range(0, keys), 0);
          auto z = logits.of(x, p, j);
          if (slopes)
            z = z - *slopes * cast<f32>(abs(p - j));
          z = when(
              visibility.isCut(token0, first),
              [&] { return select(visibility.sees(p, j), z, -std::numeric_limits<float>::infinity()); },
              [&] { return z; });
          auto [powers, next] = softmax.next(z, seen);
          next.values = dot(cast<T>(powers), valueTile(), next.values);
          return next;
        };
        /// `body` of each block of keys from `begin` to `end`, and the rows so far.
        const auto walk = [&](const SoftmaxRows &from, const Scalar<i32> &begin, const Scalar<i32> &end, int keys,
                              const auto &body) {
          const auto [base, limit, total, values] =
              loop(over(begin, end, keys), from.base, from.limit, from.total, from.values,
                   [&](auto first, auto base, auto limit, auto total, auto values) {
                     const SoftmaxRows next = body(first, SoftmaxRows{base, limit, total, values});
                     return std::tuple{next.base, next.limit, next.total, next.values};
                   });
          return SoftmaxRows{base, limit, total, values};
        };
        /// This split's share of the blocks from `begin` to `end`; `number`: which of the shares.
        const auto shareOf = [&](const Scalar<i32> &begin, const Scalar<i32> &end, int keys,
                                 const Scalar<i32> &number) {
          if (!c.split)
            return std::pair{begin, end};
          const auto share = ceilDiv(max(ceilDiv(end - begin, keys), 0), splits) * keys;
          const auto first = begin + number * share;
          return std::pair{first, min(first + share, end)};
        };
        const Visibility::Keys cached = ofCached.seenBy(token0);
        auto firstBlock = cached.begin;
        if (c.fromEnd) {
          // Whole blocks but for the first, which may begin before row 0, where tensors read as zero: a tensor map has
          // them all.  It knows nothing of lengths, and what lies after the last key may be no numbers.
          const auto origin = count - ceilDiv(count, c.blockN) * c.blockN;
          firstBlock = origin + (cached.begin - origin) / c.blockN * c.blockN;
        }
        const auto [begin, end] = shareOf(firstBlock, cached.end, c.blockN, split);
        SoftmaxRows seen = walk(OnlineSoftmax(logits, c.blockM, c.blockN, parts, powersFor(elementOf<T>)).start(c.dimV),
                                begin, end, c.blockN, [&](const Scalar<i32> &first, const SoftmaxRows &rows) {
                                  return step(
                                      ofCached, c.blockN, first, cache.tile(k, kvHead, first, c.blockN, c.dim, headDim),
                                      [&] { return cache.tile(v, kvHead, first, c.blockN, c.dimV, valueDim); }, rows);
                                });
        if (append) {
          const Visibility ofNew = visibilityOf(c.blockNew, keyRows);
          const Visibility::Keys visible = ofNew.seenBy(token0);
          const auto from = max(visible.begin - count, 0) / c.blockNew * c.blockNew;
          // The last split has the fewest cached keys.
          const auto [begin, end] = shareOf(from, visible.end - count, c.blockNew, splits - 1 - split);
          seen = walk(seen, begin, end, c.blockNew, [&](const Scalar<i32> &first, const SoftmaxRows &rows) {
            return step(
                ofNew, c.blockNew, count + first, newRows.keys(first), [&] { return newRows.values(first); }, rows);
          });
        }

        SoftmaxEnd softmaxEnd(logits, seen);
        const auto outputOfRows = [&] {
          const auto factor = factorOf(c.descaleV, descaleV);
          return factor ? softmaxEnd.output() * *factor : softmaxEnd.output();
        };
        if (c.split) {
          const auto to = partialO.at(pair, split, all, all);
          const auto address = to.pointer() + expandDims(cast<i64>(row) * to.stride(0), 1);
          store(address + expandDims(range(0, c.dimV), 0), outputOfRows(), isInside(c.dimV, valueDim));
          const auto ofRow = partialLse.at(pair, split, all);
          store(ofRow.pointer() + cast<i64>(row) * ofRow.stride(0), softmaxEnd.logSum(), isRow);
        } else {
          if (c.sink)
            softmaxEnd.addSinks(load(sink.at(kvHead * c.group).pointer() + cast<i64>(member) * sink.stride(0), isRow));
          store(addressOf(o, c.dimV), cast<OutputOf<T>>(outputOfRows()), isInside(c.dimV, valueDim));
          if (c.lse) {
            const auto to = lse.at(batch, kvHead * c.group, 0).pointer();
            store(to + cast<i64>(member) * lse.stride(1) + cast<i64>(token) * lse.stride(2), softmaxEnd.logSum(),
                  isRow);
          }
        }

        // The new rows into the cache: blocks of them, in turn, by the programs of this sequence and key head.
        if (append) {
          const auto programs = c.split ? blocks * splits : blocks, program = c.split ? split * blocks + block : block;
          loop(over(program * c.blockNew, added, programs * c.blockNew).stages(1),
               [&](auto first) { newRows.put(cache, k, v, first, sequence.capacity); });
        }
      });
}

} // namespace

Kernel attentionDecode(DType element, const AttentionDecodeConfig &config) {
  return withElement<f16, bf16, f8e4m3>(element, "attention_decode", [&]<Element T>() {
    if constexpr (std::same_as<T, f8e4m3>) // nothing of it is rotated
      return decodeOf<T, f32>(config);
    else
      return withElement<f32, T>(config.angles, "attention_decode",
                                 [&]<Element C>() { return decodeOf<T, C>(config); });
  });
}

} // namespace kiln::kernels
