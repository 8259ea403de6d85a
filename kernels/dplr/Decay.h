//===- Decay.h - Gates of a chunk as factors of rows ------------------------===//
//
// G is the running sum of the log decays g inside a chunk.  A chunk's products need e^{G_i - G_j} for i >= j as a
// factor of row i times one of row j, each against a reference row.  Two ways, chosen for each chunk:
//
//   around the middle    one reference, the last row of the first half.  Factors reach e^{-sum of a half}: no finite
//                        number for strong decays, so only where the halves' sums are at least -60.
//   by halves            for blocks of 2 s rows, s = C / 2 .. 1, rows of the second half against those of the first,
//   from
//                        the first half's last row: all factors are at most 1, for any g <= 0 (specification S4,
//                        "subchunk", down to single rows).  The slow way.
//
// A gate of a whole head is a column, [C, 1], and so are its factors; without gates there are none.
//
// What a program takes depends on its data alone: the same bits in every run.  Masks select, they do not multiply:
// pairs above the diagonal may be infinite.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DECAY_H
#define KILN_KERNELS_DPLR_DECAY_H

#include "compiler/language/Language.h"
#include "kernels/dplr/Rule.h"

#include <bit>
#include <functional>
#include <optional>

namespace kiln::kernels {

using ChunkTile = language::Tile<language::f32>;

/// The lowest log decay that is told from minus infinity: e^-104 is below the smallest float32.
inline constexpr float lowestGate = -104;
/// Half a chunk's sum of log decays up to which e^{-sum} is a factor: 1e26, twelve powers of ten below float32's end
/// are left to what it scales, gradients times 2^16 among them.
inline constexpr float lowestSum = -60;

/// The rows of a chunk, [C, columns] each, not decayed.  q holds the scale.  A rule without a of its own has none, of a
/// rule without b of its own b is k (Rule.h).
struct ChunkRows {
  ChunkTile q, a, k, b;
};

/// How a chunk's rows, [C, columns], and gates, [C, columns] or [C, 1], are read.  They are read again rather than
/// kept: registers are what chunks are short of.
struct ChunkSource {
  ChunkRule rule;
  int rows, columns;
  /// All at once: every load is in flight before anything waits for one.
  std::function<ChunkRows(language::Cache)> read;
  std::function<ChunkTile()> q, a, k, b;
  std::function<ChunkTile()> gates; ///< none: nothing decays
};

/// [q; a] x [k; b]^T decayed, [C, C]: those of q with their diagonals, those of a below.  As products take them: T is
/// the activations' type, the inverse has operands of 11 bits (ChunkMatrices.h).  Where b is k, those of b are those of
/// k; without a there are none of a.
template <language::Element T> struct ChunkProducts {
  language::Tile<T> qk, qb, ak;
  language::Tile<language::f16> ab;
};

/// Gradients by those products, [C, C], made where they are used.  Of those of q the diagonal and what is above are not
/// read; those of a are zero there, and wherever pairs are to be left out.
struct ProductGradients {
  std::function<ChunkTile()> qk, qb, ak, ab;
};

/// Gradients by rows, each recorded when it is asked for, once: so that one is done with before the next is begun.
struct RowGradients {
  std::function<ChunkTile()> q, a, k, b;
};

/// What rows are multiplied by: [C, columns], [C, 1], or nothing.
struct Factor {
  std::optional<ChunkTile> tile;
  friend ChunkTile operator*(const ChunkTile &x, const Factor &f) { return f.tile ? x * *f.tile : x; }
};

class Decay {
public:
  /// Gates of any value; `bounded`: no half's sum is below `lowestSum`, so that no chunk needs to be looked at.
  Decay(ChunkSource source, bool bounded);

  /// e^L: [1, columns] or [1, 1].
  Factor ofChunk() const;
  /// The factors of rows of q, of a, and of both k and b.
  struct Factors {
    Factor q, a, kb;
  };
  /// From the chunk's start to q and a, from k and b to its end: QG, AG, KG, BG.
  Factors fromStartToEnd() const;
  /// The same where those around the middle are at hand anyway, as in gradients: each a column's number away from one
  /// of them.  Of chunks that may have taken the slow way they are made anew.
  Factors fromMiddleToEnds() const;
  ChunkRows scaled(const ChunkRows &rows, const Factors &by) const;

  /// `rows`: the source's.
  template <language::Element T> ChunkProducts<T> products(const ChunkRows &rows) const;
  /// What the rows, the source's, get from gradients by their products.
  RowGradients gradients(const ChunkRows &rows, const ProductGradients &of) const;

private:
  Factors aroundMiddle() const;
  /// Of blocks of 2 s rows, s = 2^log.
  struct Level {
    Factors factors;
    language::Tile<language::i1> pairs; ///< [C, C]
  };
  Level ofHalves(const language::Scalar<language::i32> &log) const;
  template <typename Middle, typename Halves> auto choose(Middle middle, Halves halves) const {
    return bounded ? middle() : language::when(language::min(half) >= lowestSum, middle, halves);
  }
  ChunkTile gates() const;
  bool decays() const { return source.gates != nullptr; }
  int levels() const { return std::countr_zero(static_cast<unsigned>(source.rows)); }

  ChunkSource source;
  bool bounded;
  int width = 0;    ///< of the gates: the source's columns or 1
  ChunkTile gate;   ///< [C, width]
  ChunkTile within; ///< [2, C / 2, width]: running sums of each half
  ChunkTile half;   ///< [2, width]: its sum
};

template <language::Element T> ChunkProducts<T> Decay::products(const ChunkRows &rows) const {
  using namespace language;
  const int size = source.rows;
  const bool withA = reads(source.rule), withB = hasOwnB(source.rule);
  const auto i = expandDims(range(0, size), 1), j = expandDims(range(0, size), 0);
  // Operands of 11 bits and float32's range, as the specification asks of these (S4).
  const auto product = [](const ChunkTile &x, const ChunkTile &y) { return dot(x, transpose(y), Precision::Tf32); };
  // Matrices that the rule has not stand for others', and are not used.
  const auto middle = [&] {
    const ChunkRows x = scaled(rows, aroundMiddle());
    const auto qk = select(j <= i, product(x.q, x.k), 0.0f);
    const auto qb = withB ? select(j <= i, product(x.q, x.b), 0.0f) : qk;
    const auto ak = withA ? select(j < i, product(x.a, x.k), 0.0f) : qk;
    const auto ab = withB ? select(j < i, product(x.a, x.b), 0.0f) : ak;
    return std::tuple{qk, qb, ak, ab};
  };
  // Two matrices at a time: four are more than registers hold.
  const auto twoByHalves = [&](const ChunkTile ChunkRows::*left, const Factor Factors::*factor, const ChunkTile &k,
                               const ChunkTile &b) {
    return loop(over(0, levels()), k, b, [&](auto log, auto byK, auto byB) {
      const Level level = ofHalves(log);
      const ChunkRows x = source.read(Cache::Default);
      const auto row = x.*left * level.factors.*factor;
      const auto put = [&](const ChunkTile &p, const ChunkTile &to) { return select(level.pairs, p, to); };
      const auto nextK = put(product(row, x.k * level.factors.kb), byK);
      return std::tuple{nextK, withB ? put(product(row, x.b * level.factors.kb), byB) : byB};
    });
  };
  const auto halves = [&] {
    // Nothing decays between a token and itself.
    const auto diagonal = [&](const ChunkTile &x, const ChunkTile &y) {
      return select(i == j, expandDims(sum(x * y, along(1)), 1), 0.0f);
    };
    const ChunkRows own = source.read(Cache::Default);
    const auto none = zeros<f32>({size, size});
    const auto ofQ =
        twoByHalves(&ChunkRows::q, &Factors::q, diagonal(own.q, own.k), withB ? diagonal(own.q, own.b) : none);
    const auto ofA = withA ? twoByHalves(&ChunkRows::a, &Factors::a, none, none) : std::tuple{none, none};
    return std::tuple_cat(ofQ, ofA);
  };
  const auto [qk, qb, ak, ab] = choose(middle, halves);
  const auto own = [&](const ChunkTile &ofB, const ChunkTile &ofK) { return withB ? ofB : ofK; };
  return {cast<T>(qk), cast<T>(own(qb, qk)), cast<T>(withA ? ak : qk), cast<f16>(withA ? own(ab, ak) : qk)};
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DECAY_H
