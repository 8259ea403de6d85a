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

  /// [q; a] x [k; b]^T decayed, [C, C]: those of q with their diagonals, those of a below; or gradients of them.
  struct Products {
    ChunkTile qk, qb, ak, ab;
  };
  Products products(const ChunkRows &rows) const; ///< the source's rows
  /// What the rows get from gradients of their products.  Pairs that are to be left out are zero in `of`; the diagonal
  /// and what is above are not read.
  ChunkRows gradients(const ChunkRows &rows, const Products &of) const;

private:
  Factors aroundMiddle() const;
  /// Of blocks of 2 s rows, s = 2^log.
  struct Level {
    Factors factors;
    language::Tile<language::i1> pairs; ///< [C, C]
  };
  Level ofHalves(const language::Scalar<language::i32> &log) const;
  template <typename Middle, typename Halves> auto choose(Middle middle, Halves halves) const;
  ChunkTile gates() const;
  int levels() const;

  int size, dim;
  bool bounded;
  ChunkSource source;
  ChunkTile gate;   ///< [C, K]
  ChunkTile within; ///< [2, C / 2, K]: running sums of each half
  ChunkTile half;   ///< [2, K]: its sum
};

ChunkRows operator*(const ChunkRows &rows, const Decay::Factors &by);
ChunkRows operator+(const ChunkRows &x, const ChunkRows &y);

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DECAY_H
