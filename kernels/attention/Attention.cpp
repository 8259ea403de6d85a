#include "kernels/attention/Attention.h"

#include "compiler/language/Language.h"

#include <algorithm>
#include <limits>

namespace kiln::kernels {

using namespace language;

namespace {

constexpr float minusInfinity = -std::numeric_limits<float>::infinity();
constexpr float largestFloat = std::numeric_limits<float>::max();
/// What the base of the powers may be too small by, to base 2.
constexpr float slack = 8;
/// In place of a base of 0, which says something else.
constexpr float smallestBase = 0x1p-100f;
constexpr float log2e = 1.4426950408889634f, ln2 = 0.6931471805599453f;

/// What a row has met so far.
struct Running {
  /// What the multiply-add takes off the row's logits times `toBase2`: the largest of them, up to `slack` less.  0: the
  /// row's logits are large, or there was none yet; each round looks after it.
  Tile<f32> base;
  Tile<f32> limit;         ///< no logit above it: the base serves on.  Of those rows the largest logit
  Tile<f32> total, values; ///< the sum of the powers, the weighted values
};

/// `x` in place of minus infinity: differences to it are taken, and (-inf) - (-inf) is no number.
template <typename V> V finite(const V &x, Location loc = Location::current()) {
  const LocationScope scope(loc);
  return select(x == minusInfinity, 0.0f, x);
}

/// The rows of one sequence: a batch of a dense tensor, or part of a packed one.
template <Element T> struct Sequence {
  Scalar<i64> batch, start; ///< where it begins
  Scalar<i32> rows;
  Scalar<i64> extent; ///< of the tensor's rows
  bool whole;         ///< all of them

  TensorView<T, 2> of(const TensorView<T, 2> &tensor, const Scalar<i64> &columns) const {
    const auto all = tensor.withExtents(extent, columns);
    return whole ? all : all.narrow(along(0), start, rows);
  }
};

template <Element T>
Sequence<T> sequenceOf(const Scalar<i64> &extent, const Scalar<i32> &dense, const Scalar<i32> &batch,
                       const TensorView<i32, 1> &starts, const TensorView<i32, 1> &used, bool packed, bool isUsed) {
  Sequence<T> s{cast<i64>(batch), constant<i64>(0), dense, extent, !packed && !isUsed};
  if (packed) {
    const auto begin = load(starts.at(batch).pointer());
    s.rows = load(starts.at(batch + 1).pointer()) - begin;
    s.start = cast<i64>(begin);
    s.batch = constant<i64>(0);
  }
  if (isUsed)
    s.rows = load(used.at(batch).pointer());
  return s;
}

template <Element T> Kernel attentionOf(const AttentionConfig &c) {
  return kernel(
      "attention",
      {.warps = c.warps,
       .stages = c.stages,
       .assemblerLevel = assemblerLevel(c),
       // Powers, quotients: far below the rounding of P to 16 bits.  The LSE is fp32: its logarithm is precise.
       .grade = approx,
       .config = {{"blockM", c.blockM},
                  {"blockN", c.blockN},
                  {"dim", c.dim},
                  {"dimV", c.dimV},
                  {"left", c.left},
                  {"right", c.right},
                  {"bottomRight", c.bottomRight},
                  {"softcap", c.softcap},
                  {"alibi", c.alibi},
                  {"sink", c.sink},
                  {"packedQ", c.packedQ},
                  {"packedK", c.packedK},
                  {"usedQ", c.usedQ},
                  {"usedK", c.usedK},
                  {"lse", c.lse}}},
      [&](TensorArg<T, 5, "q"> q, TensorArg<T, 4, "k"> k, TensorArg<T, 4, "v"> v, TensorArg<T, 5, "o"> o,
          TensorArg<f32, 3, "lse", maybe> lse, TensorArg<f32, 1, "sink", maybe> sink,
          TensorArg<f32, 2, "alibi", maybe> alibi, TensorArg<i32, 1, "cu_q", maybe> cuQ,
          TensorArg<i32, 1, "cu_k", maybe> cuK, TensorArg<i32, 1, "used_q", maybe> usedQ,
          TensorArg<i32, 1, "used_k", maybe> usedK, Arg<i32, "queries"> queries, Arg<i32, "window_left"> windowLeft,
          Arg<i32, "window_right"> windowRight, Arg<f32, "scale"> scale, Arg<f32, "cap"> cap) {
        const auto group = cast<i32>(q.extent(3)), heads = cast<i32>(q.extent(2)) * group;
        const auto blocks = ceilDiv(queries, c.blockM);
        const auto program = programId();
        const auto batch = program / (blocks * heads), rest = program % (blocks * heads), head = rest / blocks;
        // The last rows see the most keys under a causal mask: they come first.
        const auto row0 = (c.right ? blocks - 1 - rest % blocks : rest % blocks) * c.blockM;
        const auto kvHead = head / group, member = head % group;

        const Sequence<T> mine = sequenceOf<T>(q.extent(1), queries, batch, cuQ, usedQ, c.packedQ, c.usedQ),
                          theirs =
                              sequenceOf<T>(k.extent(1), cast<i32>(k.extent(1)), batch, cuK, usedK, c.packedK, c.usedK);
        const auto queryRows = mine.rows, keyRows = theirs.rows;

        when(row0 < queryRows, [&] {
          // The head dims are multiples of 8: 16 bytes of a row are wholly inside it or wholly outside.
          const auto headDim = multipleOf(q.extent(4), 8), valueDim = multipleOf(o.extent(4), 8);
          const auto qView = mine.of(q.at(mine.batch, all, kvHead, member, all), headDim).tiles({c.blockM, c.dim});
          const auto kView = theirs.of(k.at(theirs.batch, all, kvHead, all), headDim).tiles({c.blockN, c.dim});
          const auto vView = theirs.of(v.at(theirs.batch, all, kvHead, all), valueDim).tiles({c.blockN, c.dimV});
          const auto oView = mine.of(o.at(mine.batch, all, kvHead, member, all), valueDim).tiles({c.blockM, c.dimV});

          const auto shift = c.bottomRight ? keyRows - queryRows : keyRows * 0;
          const auto query = loadView(qView, {row0, 0});
          const auto i = row0 + range(0, c.blockM);
          const auto p = expandDims(i + shift, 1);
          // Logits are compared before they are scaled, where they are the products: both factors are above 0 (the
          // operation refuses others).  Capped ones, and those with distances of slopes, are scaled first, to base 2.
          const bool plain = !c.alibi && !c.softcap;
          const Scalar<f32> factor = c.softcap ? Scalar<f32>(cap) : Scalar<f32>(scale), toBase2 = factor * log2e,
                            slackOfLogits = slack / toBase2;
          Scalar<f32> slope = factor;
          if (c.alibi) {
            slope = load(alibi.at(batch, head).pointer());
            // A finite one stays finite: 0 times infinity is no number.
            slope = select(abs(slope) <= largestFloat, max(min(slope * log2e, largestFloat), -largestFloat), slope);
          }

          // Some row may see a key from `begin` (a multiple of blockN) to `end`.
          const auto clamp = [&](const auto &x) { return max(min(x, keyRows), 0); };
          Scalar<i32> begin = keyRows * 0, end = keyRows;
          if (c.right)
            end = clamp(min(row0 + c.blockM, queryRows) + shift + windowRight);
          if (c.left)
            begin = clamp(row0 + shift - windowLeft) / c.blockN * c.blockN;
          // Whether some row sees not all keys of a block.
          const auto isCut = [&](const Scalar<i32> &first) {
            const auto next = first + c.blockN;
            Scalar<i1> cut = next > keyRows;
            if (c.right)
              cut = cut | (next > row0 + shift + windowRight + 1);
            if (c.left)
              cut = cut | (first < row0 + c.blockM - 1 + shift - windowLeft);
            return cut;
          };

          // Rows are summed up after the loop where there are registers for parts of the sums: the lanes of an
          // accumulator each have those of their columns, and exchange nothing in the loop.
          const std::int64_t parts = std::max(c.dim, c.dimV) <= 64 ? 8 : 1;
          const auto partSums = [&](const Tile<f32> &x) {
            return parts == 1 ? expandDims(sum(x, along(1)), 1)
                              : sum(reshape(x, {c.blockM, c.blockN / parts, parts}), along(1));
          };

          const auto step = [&](const Scalar<i32> &first, const Running &seen) {
            const auto keyTile = loadView(kView, {first, 0});
            const auto x = dot(query, transpose(keyTile), zeros<f32>({c.blockM, c.blockN}));
            Tile<f32> z = x;
            if (c.softcap)
              z = tanh(x * div(scale, cap, precise));
            const auto j = expandDims(first + range(0, c.blockN), 0);
            if (!plain)
              z = z * toBase2;
            if (c.alibi)
              z = z - slope * cast<f32>(abs(p - j));
            // One loop with a branch, not one loop for the blocks that need a mask and one for the others: half the
            // code to compile, and the copies of the next keys go on across the border.
            z = when(
                isCut(first),
                [&] {
                  auto visible = broadcastTo(j < keyRows, {c.blockM, c.blockN});
                  if (c.right)
                    visible = visible & (j <= p + windowRight);
                  if (c.left)
                    visible = visible & (j >= p - windowLeft);
                  return select(visible, z, minusInfinity);
                },
                [&] { return z; });
            // A new base costs a multiplication for each value so far.  One that is a little too small serves as well:
            // powers stay below 2^slack, sums far below the largest float.  So few rows need a new one; all of it
            // comes before the powers, or none of them were taken while the matrix unit works.
            const auto peak = maximum(z, along(1));
            const auto [logits, base, limit, total, values] = whenRows(
                !(peak <= seen.limit) | (seen.base == 0.0f),
                [&] {
                  const auto unscaled = seen.base == 0.0f;
                  const auto highest = select(unscaled, maximum(seen.limit, peak), peak);
                  const auto next = [&](const Tile<f32> &logits, const Tile<f32> &base, const Tile<f32> &limit,
                                        const Tile<f32> &fade) {
                    return std::tuple{logits, base, limit, seen.total * expandDims(fade, 1),
                                      seen.values * expandDims(fade, 1)};
                  };
                  const auto unit = plain ? highest * toBase2 : highest;
                  const auto base = select(unit == 0.0f, smallestBase, unit);
                  if (!plain)
                    return next(z, base, highest + slack, exp2(select(unscaled, seen.limit, seen.base) - base));
                  // One multiply-add takes what is rounded off what is not: by 2^-13 at most, and in all powers of the
                  // row alike.  Off larger logits the base is taken first, which is exact for all that counts.
                  const auto large = !(abs(unit) <= 4096.0f);
                  const auto before = select(unscaled, seen.limit * toBase2, seen.base);
                  const auto grown = select(unscaled & large, (highest - seen.limit) * toBase2, unit - before);
                  return next(z - expandDims(select(large, highest, 0.0f), 1), select(large, 0.0f, base),
                              select(large, highest, highest + slackOfLogits), exp2(-grown));
                },
                [&] { return std::tuple{z, seen.base, seen.limit, seen.total, seen.values}; });
            const auto power = exp2((plain ? logits * toBase2 : logits) - expandDims(base, 1));
            return Running{base, limit, total + partSums(power),
                           dot(cast<T>(power), loadView(vView, {first, 0}), values)};
          };
          const auto [base, limit, sums, weighted] =
              loop(over(begin, end, c.blockN), zeros<f32>({c.blockM}), full<f32>({c.blockM}, -largestFloat),
                   zeros<f32>({c.blockM, parts}), zeros<f32>({c.blockM, c.dimV}),
                   [&](auto first, auto base, auto limit, auto total, auto values) {
                     const Running next = step(first, {base, limit, total, values});
                     return std::tuple{next.base, next.limit, next.total, next.values};
                   });

          // Natural logits from here on, and rounded: multiply-adds would subtract what is not rounded from what is.
          Tile<f32> total = sum(sums, along(1)), values = weighted;
          Tile<f32> largest = withoutContraction([&] {
            const auto natural = base * ln2;
            return plain ? select(base == 0.0f, limit * factor, natural) : natural;
          });
          largest = select(total == 0.0f, minusInfinity, largest);
          if (c.sink) { // one more logit without a value
            const auto logit = full<f32>({c.blockM}, load(sink.at(head).pointer()));
            const auto with = maximum(largest, logit);
            const auto base = finite(with);
            const auto fade = exp2((largest - base) * log2e);
            total = total * fade + exp2((logit - base) * log2e);
            values = values * expandDims(fade, 1);
            largest = with;
          }
          const auto nothing = total == 0.0f;
          const auto result = values * expandDims(select(nothing, 0.0f, div(1.0f, total)), 1);
          storeView(oView, {row0, 0}, cast<T>(result));
          if (c.lse) {
            const auto logSum = select(nothing, minusInfinity, finite(largest) + log2(total, precise) * ln2);
            const auto rows = lse.at(mine.batch, head, all);
            store(rows.pointer() + (mine.start + cast<i64>(i)) * rows.stride(0), logSum, i < queryRows);
          }
        });
      });
}

} // namespace

int assemblerLevel(const AttentionConfig &c) {
  const int wide = std::max(c.dim, c.dimV);
  const bool rows32 = wide > 96 && wide <= 128 && c.blockM == 32 * c.warps && c.blockN == 64;
  const bool widest = wide > 192 && c.blockM == 16 * c.warps && c.blockN == 32;
  return rows32 || widest ? 1 : 3;
}

Kernel attention(ElementType element, const AttentionConfig &config) {
  return withElement<f16, bf16>(element, "attention", [&]<Element T>() { return attentionOf<T>(config); });
}

} // namespace kiln::kernels
