//===- Logits.h - From products of queries and keys to logits ------------------===//
//
// A row's logits are scale x, or cap tanh(scale x / cap), less slope |p - j| with ALiBi.  In tiles they stand in one of
// two units:
//
//   plain    the products x themselves, neither capped nor with slopes.  They are compared as they are, which saves a
//            multiplication each: both factors below are above 0 (the operation refuses others)
//   scaled   to base 2
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

  bool plain, hasCap;
  Number scale, cap;
  Number factor, toBase2;      ///< plain logits times these are natural ones, and to base 2
  std::optional<Number> slope; ///< to base 2; there before `of` is called, with ALiBi

  Logits(bool hasCap, bool hasSlopes, const Number &scale, const Number &cap)
      : plain(!hasCap && !hasSlopes), hasCap(hasCap), scale(scale), cap(cap), factor(hasCap ? cap : scale),
        toBase2(factor * log2e) {}

  void setSlope(const Number &natural) { slope = toBase2Of(natural); }

  /// A slope, or a tile of them, to base 2.
  template <typename Numbers> static Numbers toBase2Of(const Numbers &natural) {
    constexpr float largest = std::numeric_limits<float>::max();
    // A finite one stays finite: 0 times infinity is no number.
    return select(abs(natural) <= largest, max(min(natural * log2e, largest), -largest), natural);
  }

  /// Products, or tanh of them.  A division that rounds is a call where nvJitLink assembles, and next to a call it does
  /// products of warpgroups one after the other.
  language::Tile<language::f32> capped(const language::Tile<language::f32> &products) const {
    return hasCap ? tanh(products * div(scale, cap)) : products;
  }
  /// In their unit: of rows at `positions`, [M, 1], and `keys`, [1, N].
  language::Tile<language::f32> of(const language::Tile<language::f32> &capped,
                                   const language::Tile<language::i32> &positions,
                                   const language::Tile<language::i32> &keys) const {
    using namespace language;
    if (plain)
      return capped;
    const auto z = capped * toBase2;
    return slope ? z - *slope * cast<f32>(abs(positions - keys)) : z;
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_LOGITS_H
