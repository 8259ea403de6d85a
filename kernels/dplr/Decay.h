//===- Decay.h - Gates of a chunk as factors of rows ------------------------===//
//
// G is the running sum of the log decays g inside a chunk.  A chunk's products need e^{G_i - G_j} for i >= j as a
// factor of row i times one of row j, each against a reference row.  Two ways, chosen for each chunk:
//
//   around the middle    one reference, the last row of the first half.  Factors reach e^{-sum of a half}: no finite
//                        number for strong decays, so only where the halves' sums are at least -60.
//   by halves            for blocks of 2 s rows, s = C / 2 .. 1, rows of the second half against those of the first;
//                        the reference is the first half's last row.  All factors are at most 1, for any g <= 0
//                        (specification S4, "subchunk", down to single rows).
//                        This is the slow way.
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
#include <utility>
#include <vector>

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
  /// To be added to what rows times these gradients give the log decays; none: nothing.
  std::function<ChunkTile()> ofGates = {};
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
  /// The same for gradients, which have the factors around the middle anyway: each is one of those times a number of
  /// its column.  For chunks that may have taken the slow way they are computed anew.
  Factors fromMiddleToEnds() const;
  ChunkRows scaled(const ChunkRows &rows, const Factors &by) const;

  /// The products of the rows, the source's, which are added to those of other columns: those that the rule has, of qk,
  /// qb, ak, ab in this order.
  std::vector<ChunkTile> products(const ChunkRows &rows) const;
  /// What the rows, the source's, get from gradients by their products.
  ///
  /// The log decays' own gradients are sums of rows times these: a pair's share is added at its later row and taken
  /// away at its earlier one, and so is nothing for gates before or after both.  Rows were rounded to 11 bits for the
  /// products, by their own numbers each, so a share's two sides differ by as much.  Where a gate leaves little of a
  /// state, that is all that is found there; it may only do so by halves.  `withGates`: `ofGates` is the difference to
  /// the sums of the rounded rows, of which both sides are the same.  For rules without b of their own.
  RowGradients gradients(const ChunkRows &rows, const ProductGradients &of, bool withGates) const;

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

/// From `Decay::products` of all columns.
template <language::Element T> ChunkProducts<T> chunkProducts(ChunkRule rule, const std::vector<ChunkTile> &products) {
  using namespace language;
  const bool withA = reads(rule), withB = hasOwnB(rule);
  const ChunkTile qk = products.front(), qb = withB ? products[1] : qk, ak = withA ? products[withB ? 2 : 1] : qk,
                  ab = withB ? products[3] : ak;
  return {cast<T>(qk), cast<T>(qb), cast<T>(ak), cast<f16>(ab)};
}

/// A loop over so many rounds whose carried values are a list, of one to four tiles.
template <typename Body>
std::vector<ChunkTile> loopOfTiles(int rounds, const std::vector<ChunkTile> &first, const Body &body) {
  using namespace language;
  const auto run = [&]<std::size_t... I>(std::index_sequence<I...>) -> std::vector<ChunkTile> {
    const auto last = loop(over(0, rounds), first[I]..., [&](auto i, auto... carried) {
      const std::vector<ChunkTile> next = body(i, std::vector<ChunkTile>{carried...});
      if constexpr (sizeof...(I) == 1)
        return next[0];
      else
        return std::tuple{next[I]...};
    });
    if constexpr (sizeof...(I) == 1)
      return {last};
    else
      return {std::get<I>(last)...};
  };
  switch (first.size()) {
  case 1:
    return run(std::make_index_sequence<1>());
  case 2:
    return run(std::make_index_sequence<2>());
  case 3:
    return run(std::make_index_sequence<3>());
  default:
    return run(std::make_index_sequence<4>());
  }
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DECAY_H
