//===- OnlineSoftmax.h - The softmax of rows whose logits come block by block ---===//
//
// A row keeps a base, the sum of the powers 2^(logit - base) so far and the values weighted by these powers. Invariants
// between blocks:
//
//   powers      are at most 2^(lift + slack): the base is a row's largest logit so far less `lift`, or up to `slack`
//               less than that.  One that is too small by so little serves as well, so few rows ever need a new one,
//               which costs a multiplication for each value so far
//   base = 0    is no base: the row has met no logit yet, or (not scaled ones, Logits.h) large ones, whose limit is the
//               largest logit and is taken off before the scale
//   limit       no logit above it needs a new base
//
// At the end everything is divided by the sum, and the base does not matter.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ONLINESOFTMAX_H
#define KILN_KERNELS_ATTENTION_ONLINESOFTMAX_H

#include "kernels/attention/Logits.h"

namespace kiln::kernels {

/// What rows have met so far.
struct SoftmaxRows {
  language::Tile<language::f32> base;   ///< what the multiply-add takes off the row's logits to base 2
  language::Tile<language::f32> limit;  ///< of rows with large logits: the largest
  language::Tile<language::f32> total;  ///< the sum of the powers, [rows, parts]
  language::Tile<language::f32> values; ///< the weighted values, [rows, columns]
};

/// How large powers may be, to base 2.
struct PowerRange {
  float lift = 0;  ///< of a row's largest logit, when the base was taken from it
  float slack = 8; ///< what later ones may be larger by before the row gets a new base
};

/// For the type that powers are rounded to.  Sums of 16-bit ones below 2^8 are far below the largest float.  The
/// largest number of e4m3 is 448, its smallest normal one 2^-6: powers from 2^8 down lose the fewest small ones.
constexpr PowerRange powersFor(DType element) {
  return element == DType::F8E4M3 ? PowerRange{6, 2} : PowerRange{};
}

class OnlineSoftmax {
  using Numbers = language::Tile<language::f32>;

public:
  /// `parts`: of a row's sum until its end.  Where registers allow, the lanes of an accumulator each have that of their
  /// columns, and exchange nothing in the loop.
  OnlineSoftmax(const Logits &logits, int rows, int keys, std::int64_t parts, PowerRange range)
      : logits(logits), rows(rows), keys(keys), parts(parts), lift(range.lift), slack(range.slack),
        slackOfLogits(slack / logits.toBase2) {}

  SoftmaxRows start(int columns) const {
    using namespace language;
    return {zeros<f32>({rows}), full<f32>({rows}, -std::numeric_limits<float>::max()), zeros<f32>({rows, parts}),
            zeros<f32>({rows, columns})};
  }

  /// The powers of a block of logits, [rows, keys], and the rows so far with the sum of these: what is weighted by them
  /// is to be added to `values`.
  struct Block {
    Numbers powers;
    SoftmaxRows rows;
  };
  Block next(const Numbers &z, const SoftmaxRows &seen) const {
    using namespace language;
    const auto peak = maximum(z, along(1));
    // All of it comes before the powers; otherwise none of these would be computed while the matrix unit works.
    const auto [taken, base, limit, total, values] = whenRows(
        !(peak <= seen.limit) | (seen.base == 0.0f), [&] { return rebased(z, peak, seen); },
        [&] { return std::tuple{z, seen.base, seen.limit, seen.total, seen.values}; });
    const auto powers = exp2((logits.scaled ? taken : taken * logits.toBase2) - expandDims(base, 1));
    return {powers, {base, limit, total + sumsOf(powers), values}};
  }

private:
  /// In place of a base of 0, which says something else.
  static constexpr float smallestBase = 0x1p-100f;
  /// Larger logits, to base 2, have their base taken off before the scale.
  static constexpr float largestFused = 4096;

  Numbers sumsOf(const Numbers &x) const {
    using namespace language;
    return parts == 1 ? expandDims(sum(x, along(1)), 1) : sum(reshape(x, {rows, keys / parts, parts}), along(1));
  }

  /// Logits, base, limit, sum and values of rows with a new base.
  std::tuple<Numbers, Numbers, Numbers, Numbers, Numbers> rebased(const Numbers &z, const Numbers &peak,
                                                                  const SoftmaxRows &seen) const {
    using namespace language;
    const auto unscaled = seen.base == 0.0f;
    const auto highest = select(unscaled, maximum(seen.limit, peak), peak);
    const auto next = [&](const Numbers &logits, const Numbers &base, const Numbers &limit, const Numbers &fade) {
      return std::tuple{logits, base, limit, seen.total * expandDims(fade, 1), seen.values * expandDims(fade, 1)};
    };
    const auto unit = logits.scaled ? highest : highest * logits.toBase2;
    const auto lifted = lift == 0 ? unit : unit - lift;
    const auto base = select(lifted == 0.0f, smallestBase, lifted);
    if (logits.scaled)
      return next(z, base, highest + slack, exp2(select(unscaled, seen.limit, seen.base) - base));
    // One multiply-add takes what is rounded off what is not: by 2^-13 at most, and in all powers of the row alike.
    // Off larger logits the base is taken first, which is exact for all that counts.
    const auto large = !(abs(unit) <= largestFused);
    const auto before = select(unscaled, seen.limit * logits.toBase2, seen.base);
    const auto now = lift == 0 ? unit : select(large, unit, lifted);
    const auto grown = select(unscaled & large, (highest - seen.limit) * logits.toBase2, now - before);
    return next(z - expandDims(select(large, highest, 0.0f), 1), select(large, 0.0f, base),
                select(large, highest, highest + slackOfLogits), exp2(-grown));
  }

  Logits logits;
  int rows, keys;
  std::int64_t parts;
  float lift, slack;
  Logits::Number slackOfLogits; ///< unless they are scaled
};

/// Rows after their last key: o = values / total, lse = largest + ln total.
class SoftmaxEnd {
  using Numbers = language::Tile<language::f32>;
  static constexpr float minusInfinity = -std::numeric_limits<float>::infinity();

public:
  SoftmaxEnd(const Logits &logits, const SoftmaxRows &seen) {
    using namespace language;
    total = sum(seen.total, along(1)), values = seen.values;
    // Natural logits from here on, and rounded: multiply-adds would subtract what is not rounded from what is.
    largest = withoutContraction([&] {
      const auto natural = seen.base * ln2;
      return logits.scaled ? natural : select(seen.base == 0.0f, logits.natural(seen.limit), natural);
    });
    largest = select(total == 0.0f, minusInfinity, largest);
  }

  /// One more logit of every row, without a value.
  void addSink(const Logits::Number &natural) { addSinks(language::full<language::f32>({total.extent(0)}, natural)); }
  /// The same, each row's own.
  void addSinks(const Numbers &logit) {
    using namespace language;
    const auto with = maximum(largest, logit);
    const auto base = finite(with);
    const auto fade = exp2((largest - base) * log2e);
    total = total * fade + exp2((logit - base) * log2e);
    values = values * expandDims(fade, 1);
    largest = with;
  }

  /// 0 in rows that met nothing.
  Numbers output() const {
    using namespace language;
    return values * expandDims(select(total == 0.0f, 0.0f, div(1.0f, total)), 1);
  }
  /// Minus infinity in rows that met nothing.
  Numbers logSum() const {
    using namespace language;
    return select(total == 0.0f, minusInfinity, finite(largest) + log2(total, precise) * ln2);
  }

private:
  /// 0 in place of minus infinity: differences to it are taken, and (-inf) - (-inf) is no number.
  static Numbers finite(const Numbers &x) { return select(x == minusInfinity, 0.0f, x); }

  Numbers largest; ///< the base: natural, minus infinity in rows that met nothing
  Numbers total, values;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ONLINESOFTMAX_H
