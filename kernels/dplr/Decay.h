//===- Decay.h - Gates of a chunk as factors of rows ------------------------===//
//
// G is the running sum of the log decays g inside a chunk.  A chunk's products need e^{G_i - G_j} for i >= j as a factor
// of row i times one of row j, each against a reference row.  Two ways, chosen for each chunk:
//
//   around the middle    one reference, the last row of the first half.  Factors reach e^{-sum of a half}: no finite
//                        number for strong decays, so only where the halves' sums are at least -80.
//   by halves            for blocks of 2 s rows, s = C / 2 .. 1, rows of the second half against those of the first, from
//                        the first half's last row: all factors are at most 1, for any g <= 0 (specification S4,
//                        "subchunk", down to single rows).  The slow way.
//
// What a program takes depends on its data alone: the same bits in every run.  Masks select, they do not multiply:
// pairs above the diagonal may be infinite.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DECAY_H
#define KILN_KERNELS_DPLR_DECAY_H

#include "compiler/language/Language.h"

#include <bit>
#include <functional>

namespace kiln::kernels {

using ChunkTile = language::Tile<language::f32>;

/// The lowest log decay that is told from minus infinity: e^-104 is below the smallest float32.
inline constexpr float lowestGate = -104;
/// Half a chunk's sum of log decays up to which e^{-sum} is a factor, with room for what it scales.
inline constexpr float lowestSum = -80;

/// The four tensors of a chunk, [C, K] each, not decayed.  q holds the scale.
struct ChunkRows {
  ChunkTile q, a, k, b;
};

/// How a chunk's rows and gates [C, K] are read.  The slow way reads them again in every round: what it would keep would
/// cost the fast way its registers.
struct ChunkSource {
  std::function<ChunkRows()> rows;
  std::function<ChunkTile()> gates;
};

/// [q; a] x [k; b]^T decayed, [C, C]: those of q with their diagonals, those of a below.  As products take them: T is the
/// activations' type, the inverse has operands of 11 bits (ChunkMatrices.h).
template <language::Element T> struct ChunkProducts {
  language::Tile<T> qk, qb, ak;
  language::Tile<language::f16> ab;
};

/// Gradients by those products, [C, C], made where they are used.  Pairs that are to be left out are zero; the diagonal
/// and what is above are not read.
struct ProductGradients {
  std::function<ChunkTile()> qk, qb, ak, ab;
};

class Decay {
public:
  /// Gates of any value; `bounded`: no half's sum is below `lowestSum`, so that no chunk needs to be looked at.
  Decay(ChunkSource source, bool bounded);

  /// The source's rows.
  ChunkRows read() const { return source.rows(); }
  /// e^L: [K].
  ChunkTile ofChunk() const;
  /// What rows of q, of a, and of both k and b are multiplied by, [C, K].
  struct Factors {
    ChunkTile q, a, kb;
  };
  /// From the chunk's start to q and a, from k and b to its end: QG, AG, KG, BG.
  Factors fromStartToEnd() const;

  /// `rows`: the source's.
  template <language::Element T> ChunkProducts<T> products(const ChunkRows &rows) const;
  /// What the rows get from gradients by their products.
  ChunkRows gradients(const ChunkRows &rows, const ProductGradients &of) const;

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
  int levels() const { return std::countr_zero(static_cast<unsigned>(size)); }

  int size, dim;
  bool bounded;
  ChunkSource source;
  ChunkTile gate;   ///< [C, K]
  ChunkTile within; ///< [2, C / 2, K]: running sums of each half
  ChunkTile half;   ///< [2, K]: its sum
};

ChunkRows operator*(const ChunkRows &rows, const Decay::Factors &by);
ChunkRows operator+(const ChunkRows &x, const ChunkRows &y);

template <language::Element T> ChunkProducts<T> Decay::products(const ChunkRows &rows) const {
  using namespace language;
  const auto i = expandDims(range(0, size), 1), j = expandDims(range(0, size), 0);
  // Operands of 11 bits and float32's range, as the specification asks of these (S4).
  const auto product = [](const ChunkTile &x, const ChunkTile &y) {
    return dot(x, transpose(y), Precision::Tf32);
  };
  const auto middle = [&] {
    const ChunkRows x = rows * aroundMiddle();
    const auto below = [&](const Tile<i1> &pairs, const ChunkTile &p) { return select(pairs, p, 0.0f); };
    return std::tuple{below(j <= i, product(x.q, x.k)), below(j <= i, product(x.q, x.b)),
                      below(j < i, product(x.a, x.k)), below(j < i, product(x.a, x.b))};
  };
  // Two matrices at a time: four are more than registers hold.
  const auto twoByHalves = [&](const ChunkTile ChunkRows::*left, const ChunkTile Factors::*factor, const ChunkTile &k,
                               const ChunkTile &b) {
    return loop(over(0, levels()), k, b, [&](auto log, auto byK, auto byB) {
      const Level level = ofHalves(log);
      const ChunkRows x = source.rows();
      const auto row = x.*left * level.factors.*factor;
      const auto put = [&](const ChunkTile &p, const ChunkTile &to) { return select(level.pairs, p, to); };
      return std::tuple{put(product(row, x.k * level.factors.kb), byK), put(product(row, x.b * level.factors.kb), byB)};
    });
  };
  const auto halves = [&] {
    // Nothing decays between a token and itself.
    const auto diagonal = [&](const ChunkTile &x, const ChunkTile &y) {
      return select(i == j, expandDims(sum(x * y, along(1)), 1), 0.0f);
    };
    const ChunkRows own = source.rows();
    const auto none = zeros<f32>({size, size});
    return std::tuple_cat(
        twoByHalves(&ChunkRows::q, &Factors::q, diagonal(own.q, own.k), diagonal(own.q, own.b)),
        twoByHalves(&ChunkRows::a, &Factors::a, none, none));
  };
  const auto [qk, qb, ak, ab] = choose(middle, halves);
  return {cast<T>(qk), cast<T>(qb), cast<T>(ak), cast<f16>(ab)};
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DECAY_H
