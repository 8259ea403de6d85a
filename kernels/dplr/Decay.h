//===- Decay.h - Gates of a chunk as factors, none above 1 -------------------===//
//
// G is the running sum of the log decays g inside a chunk.  A chunk's products need e^{G_i - G_j} for i >= j as a factor
// of row i times one of row j, and either alone may overflow or vanish.  Rows are taken in blocks of 16:
//
//   lambda_i = e^{G_i - G before its block}     mu_j = e^{G at the end of its block - G_j}
//
// and between blocks e^{sums of whole blocks}: all of them, and all products of them, are at most 1 for any g <= 0, and
// few exponentials make them (specification S4, "subchunk").  Inside a block either a reference row in its middle, if no
// block's sum is below -80 (no factor is beyond e^{+-80} then), or halves of halves down to single rows, each against
// the half before it with the last row of that half as the reference.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DECAY_H
#define KILN_KERNELS_DPLR_DECAY_H

#include "compiler/language/Language.h"

namespace kiln::kernels {

using ChunkTile = language::Tile<language::f32>;

/// Rows of a block.
inline constexpr int blockRows = 16;
/// The lowest log decay that is told from minus infinity: e^-104 is below the smallest float32.
inline constexpr float lowestGate = -104;
/// A block's sum of log decays from which on e^{-sum} is no finite factor any more, with room for what it scales.
inline constexpr float lowestSum = -80;

/// The four tensors of a chunk, [C, K] each, not decayed.  q holds the scale.
struct ChunkRows {
  ChunkTile q, a, k, b;
};

class Decay {
public:
  /// g: [C, K], of any value; `bounded`: none below -5, so that no chunk needs to be looked at.
  Decay(const ChunkTile &g, bool bounded);

  /// e^L: [K].
  ChunkTile ofChunk() const;
  /// QG, AG (from the chunk's start), KG, BG (to its end).
  ChunkRows fromStartToEnd(const ChunkRows &rows) const { return acrossBlocks(rows, blocks); }

  /// [q; a] x [k; b]^T decayed, strictly below the diagonal, [C, C].
  struct Products {
    ChunkTile qk, qb, ak, ab;
  };
  Products products(const ChunkRows &rows) const;

private:
  /// Rows of the second half of 2 `together` blocks from the end of the first, those of the first to their end.
  ChunkRows acrossBlocks(const ChunkRows &rows, int together) const;
  Products squares(const ChunkRows &rows) const;
  /// Within blocks, [blocks, 16, 16]: around the middle of each, where no gate of the chunk forbids it; by halves.
  Products insideBlocks(const ChunkRows &rows) const;
  Products aroundMiddle(const ChunkRows &rows) const;
  Products byHalves(const ChunkRows &rows) const;
  ChunkRows halves(const ChunkRows &rows, int half) const;

  int size, dim, blocks;
  bool bounded;
  ChunkTile gate;                  ///< [blocks, 16, K]
  ChunkTile lambda, exclusive, mu; ///< [blocks, 16, K]; exclusive: to the row before, 1 at a block's first
  ChunkTile total;                 ///< [blocks, K], sums of g
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DECAY_H
