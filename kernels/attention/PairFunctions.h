//===- PairFunctions.h - The caller's functions, of a block of pairs -------------===//
//
// Calls AttentionFunctions for the pairs of one sequence and query head.  Rows i and keys j come as tiles that
// broadcast to the block, [rows, 1] and [1, keys] or turned.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_PAIRFUNCTIONS_H
#define KILN_KERNELS_ATTENTION_PAIRFUNCTIONS_H

#include "kernels/attention/AttentionFunctions.h"

namespace kiln::kernels {

class PairFunctions {
  using Numbers = language::Tile<language::f32>;
  using Places = language::Tile<language::i32>;
  using Number = language::Scalar<language::i32>;

public:
  PairFunctions(const AttentionHooks &hooks, const Number &batch, const Number &head, const Number &queries,
                const Number &keys)
      : functions(hooks.functions), batch(batch), head(head), queries(queries), keys(keys), isChecked(hooks.isChecked) {
  }

  bool given() const { return functions.given(); }
  bool hasScore() const { return functions.hasScore(); }
  bool hasMask() const { return functions.hasMask(); }

  /// Of scaled scores.
  Numbers score(const Numbers &x, const Places &i, const Places &j) const {
    return shaped(functions.definition().score.value(x, pairs(i, j)), x.shape(), "the score function");
  }

  /// The score, and its derivative.
  struct Scored {
    Numbers score, slope;
  };
  Scored scored(const Numbers &x, const Places &i, const Places &j) const {
    const AttentionFunctionsDefinition &f = functions.definition();
    const AttentionPairs at = pairs(i, j);
    if (f.scoreGradient)
      return {score(x, i, j), shaped(f.scoreGradient(x, at), x.shape(), "the score's gradient")};
    const auto out = f.score.dual(language::variable(x), at);
    return {shaped(out.value, x.shape(), "the score function"),
            shaped(slopeOf(out), x.shape(), "the score's gradient")};
  }

  /// The pairs that there are, of the shape of a block.
  language::Tile<language::i1> mask(const Places &i, const Places &j, const language::Shape &block) const {
    return shaped(functions.definition().mask.value(pairs(i, j)), block, "the mask function");
  }

  /// x, with `otherwise` where the mask hides the pair; `isPartial`: only there it is asked.
  Numbers masked(const Numbers &x, const Places &i, const Places &j,
                 const std::optional<language::Scalar<language::i1>> &isPartial, float otherwise) const {
    using namespace language;
    const auto choose = [&] { return select(mask(i, j, x.shape()), x, otherwise); };
    return isPartial ? when(*isPartial, choose, [&] { return x; }) : choose();
  }

private:
  AttentionPairs pairs(const Places &i, const Places &j) const { return {batch, head, i, j, queries, keys, isChecked}; }
  template <language::Element T>
  static language::Tile<T> shaped(const language::Tile<T> &x, const language::Shape &block, const char *what) {
    using namespace language;
    const Shape given = x.shape();
    bool fits = given.rank() == 2;
    for (unsigned d = 0; fits && d < 2; ++d)
      fits = given[d] == block[d] || given[d] == 1;
    if (!fits)
      language::detail::refuse(what, "it gives a tile of " + given.toString() + " for pairs of " + block.toString(),
                               "give what the pairs' `query` and `key` broadcast to", Location::current());
    return fits ? broadcastTo(x, block) : x;
  }

  AttentionFunctions functions;
  Number batch, head, queries, keys;
  bool isChecked;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_PAIRFUNCTIONS_H
