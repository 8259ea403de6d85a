//===- PairGradients.h - Powers and their gradients, of a block of pairs -------===//
//
// A block is [rows, keys], or turned, [keys, rows]: positions and keys come as tiles that broadcast to it, and so do
// what rows have.  Of a pair that the row sees (specification "Attention kernels", section 7):
//
//   p  = exp(z - lse), the share of the key's value in the row's output
//   dz = p (dp - delta), the gradient of its logit, where dp = do v and `delta` is what the row's own sums take away
//        With dropout dp is 0 where the pair is not kept, and grows as p did where it is
//   dx = dz, or dz (1 - tanh^2) with a cap, or dz times a score function's slope: the gradient of the product times the
//        scale
//
// Of other pairs both are 0, whatever their rows hold.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_PAIRGRADIENTS_H
#define KILN_KERNELS_ATTENTION_PAIRGRADIENTS_H

#include "kernels/attention/Logits.h"
#include "kernels/attention/PairDropout.h"
#include "kernels/attention/PairFunctions.h"
#include "kernels/attention/Visibility.h"

namespace kiln::kernels {

class PairGradients {
  using Numbers = language::Tile<language::f32>;
  using Places = language::Tile<language::i32>;

public:
  /// Of rows at `positions` and of `keys`; `isCut`: some pair of the block is not seen.
  PairGradients(const Logits &logits, const Visibility &visibility, const language::Scalar<language::i1> &isCut,
                const Places &positions, const Places &keys)
      : logits(logits), visibility(visibility), isCut(isCut), positions(positions), keys(keys) {}

  /// Before all others: which pairs dropout keeps, and its factor.
  void drop(const std::optional<PairDropout::Kept> &pairs, const std::optional<PairDropout::Factor> &by) {
    keeps = pairs, factor = by;
  }
  /// Before `powers`: of `rows`, counted as keys are; `isPartial` as of a BlockWalk::Tile.
  void setFunctions(const PairFunctions &of, const Places &rows,
                    const std::optional<language::Scalar<language::i1>> &isPartial) {
    functions = of, this->rows = rows, this->isPartial = isPartial;
  }

  /// p, of products of queries and keys; `lse`: to base 2, 0 in place of minus infinity; `bias`: with one, natural.
  Numbers powers(const Numbers &products, const Numbers &lse, const std::optional<Numbers> &bias = {}) {
    using namespace language;
    if (functions && functions->hasScore()) {
      const auto [score, derivative] = functions->scored(products * logits.scale, *rows, keys);
      capped = score, slope = derivative;
    } else {
      capped = logits.capped(products);
    }
    if (functions && functions->hasMask() && !isPartial)
      exists = functions->mask(*rows, keys, products.shape());
    const auto z = logits.of(capped, positions, keys, bias);
    const auto exponent = (logits.scaled ? z : z * logits.toBase2) - lse;
    p = exp2(seen(exponent, -std::numeric_limits<float>::infinity()));
    return p;
  }

  /// p of pairs that are kept, 0 of others: what values are weighted with, but for the factor; after `powers`.
  Numbers kept() const { return keeps ? language::select(*keeps, p, 0.0f) : p; }

  /// dx; after `powers`.
  Numbers gradients(const Numbers &dp, const Numbers &delta) const { return gradients(kept(dp) - delta); }
  /// The same of the difference, without dropout.
  Numbers gradients(const Numbers &dpLessDelta) const {
    auto dx = p * dpLessDelta;
    if (logits.hasCap)
      dx = dx * (1.0f - capped * capped);
    if (slope)
      dx = dx * *slope;
    return seen(dx, 0);
  }

  /// dz; after `powers`.
  Numbers ofLogits(const Numbers &dp, const Numbers &delta) const { return seen(p * (kept(dp) - delta), 0); }

private:
  Numbers kept(const Numbers &dp) const { return keeps ? language::select(*keeps, dp * *factor, 0.0f) : dp; }
  /// With `otherwise` where a row does not see the key.
  Numbers seen(const Numbers &x, float otherwise) const {
    using namespace language;
    const auto out =
        when(isCut, [&] { return select(visibility.sees(positions, keys), x, otherwise); }, [&] { return x; });
    // Asked again where some blocks are full: what a partial one's answers are kept in would be live in full ones too.
    if (functions && functions->hasMask() && isPartial)
      return functions->masked(out, *rows, keys, isPartial, otherwise);
    return exists ? select(*exists, out, otherwise) : out;
  }

  Logits logits;
  Visibility visibility;
  language::Scalar<language::i1> isCut;
  Places positions, keys;
  std::optional<PairDropout::Kept> keeps;
  std::optional<PairDropout::Factor> factor;
  std::optional<PairFunctions> functions = {};
  std::optional<Places> rows = {};
  std::optional<language::Scalar<language::i1>> isPartial = {};
  Numbers capped, p;                                       ///< capped, or what a function gave
  std::optional<Numbers> slope = {};                       ///< of the function
  std::optional<language::Tile<language::i1>> exists = {}; ///< by the mask function, if it is asked in all blocks
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_PAIRGRADIENTS_H
