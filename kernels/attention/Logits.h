//===- Logits.h - From products of queries and keys to logits ------------------===//
//
// A row's logits are scale x, or cap tanh(scale x / cap), or a function's of scale x, less slope |p - j| with ALiBi,
// plus a bias.  In tiles they stand in one of three units:
//
//   plain    the products x themselves, neither capped, scored nor with slopes.  They are compared as they are, which
//            saves a multiplication each: both factors below are above 0 (the operation refuses others)
//   natural  with a bias, of which the lowest float is a usual entry: to base 2 it would be minus infinity
//   scaled   to base 2, all others
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_LOGITS_H
#define KILN_KERNELS_ATTENTION_LOGITS_H

#include "compiler/language/Language.h"

#include <limits>
#include <optional>

namespace kiln::kernels {

inline constexpr float log2e = 1.4426950408889634f, ln2 = 0.6931471805599453f;

struct Logits {
  using Number = language::Scalar<language::f32>;

  bool plain, scaled, hasCap;
  Number scale, cap;
  Number factor, toBase2; ///< natural ones of products or tanh; logits times it are to base 2, unless they are scaled
  std::optional<Number> slope; ///< in the logits' unit; there before `of` is called, with ALiBi

  /// `isScored`: a function scores the scaled products, in place of `capped`.
  Logits(bool hasCap, bool hasSlopes, bool hasBias, const Number &scale, const Number &cap, bool isScored = false)
      : plain(!hasCap && !hasSlopes && !hasBias && !isScored), scaled(!plain && !hasBias), hasCap(hasCap), scale(scale),
        cap(cap), factor(isScored ? language::constant<language::f32>(1)
                         : hasCap ? cap
                                  : scale),
        toBase2(hasBias ? language::constant<language::f32>(log2e) : factor * log2e) {}

  void setSlope(const Number &natural) { slope = scaled ? toBase2Of(natural) : natural; }

  /// A slope, or a tile of them, to base 2.
  template <typename Numbers> static Numbers toBase2Of(const Numbers &natural) {
    constexpr float largest = std::numeric_limits<float>::max();
    // A finite one stays finite: 0 times infinity is no number.
    return select(abs(natural) <= largest, max(min(natural * log2e, largest), -largest), natural);
  }

  /// Logits in their unit as natural ones, unless they are scaled.
  language::Tile<language::f32> natural(const language::Tile<language::f32> &logits) const {
    return plain ? logits * factor : logits;
  }

  /// Products, or tanh of them.  A division that rounds is a call where nvJitLink assembles, and next to a call it does
  /// products of warpgroups one after the other.
  language::Tile<language::f32> capped(const language::Tile<language::f32> &products) const {
    return hasCap ? tanh(products * div(scale, cap)) : products;
  }
  /// In their unit, of what is capped or scored: of rows at `positions`, [M, 1], and `keys`, [1, N]; `bias`: with one,
  /// natural.
  language::Tile<language::f32> of(const language::Tile<language::f32> &capped,
                                   const language::Tile<language::i32> &positions,
                                   const language::Tile<language::i32> &keys,
                                   const std::optional<language::Tile<language::f32>> &bias = {}) const {
    using namespace language;
    if (plain)
      return capped;
    const auto z = bias ? capped * factor + *bias : capped * toBase2;
    return slope ? z - *slope * cast<f32>(abs(positions - keys)) : z;
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_LOGITS_H
