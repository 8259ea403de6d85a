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
  /// What rows of q, of a, and of both k and b are multiplied by; [blocks, 16, K] or broadcast to it.
  struct Factors {
    ChunkTile q, a, kb;
  };
  /// From the chunk's start to q and a, from k and b to its end.
  Factors fromStartToEnd() const { return acrossBlocks(blocks); }
  /// QG, AG, KG, BG, [C, K].
  ChunkRows decayed(const ChunkRows &rows) const;

  /// [q; a] x [k; b]^T decayed, strictly below the diagonal; or gradients of that.
  struct Products {
    ChunkTile qk, qb, ak, ab;
  };
  /// [C, C].
  Products products(const ChunkRows &rows) const;
  /// What the rows of the products get from gradients that are zero where they are to be left out.  The gradients twice:
  /// `whole` [C, C], of which pairs in different blocks are read, and `inside` [blocks, 16, 16].
  ChunkRows gradients(const ChunkRows &rows, const Products &whole, const Products &inside) const;

  int blockCount() const { return blocks; }

private:
  /// Pairs of rows that one reference row serves: their factors, and which pairs of [C, C] or of each [16, 16] they are.
  struct Level {
    Factors factors;
    language::Tile<language::i1> pairs;
    bool inside; ///< of blocks
  };
  /// Rows of the second half of 2 `together` blocks from the end of the first, those of the first to their end.
  Factors acrossBlocks(int together) const;
  Level across(int together) const;
  Level aroundMiddle() const;
  Level ofHalves(int half) const;
  /// Within blocks: around the middle of each, where no gate of the chunk forbids it; by halves.  `f` of the levels.
  template <typename Of> auto insideBlocks(Of f) const;
  language::Shape shapeOf(const Level &level) const;
  Products productsOf(const Level &level, const ChunkRows &rows) const;
  ChunkRows gradientsOf(const Level &level, const ChunkRows &rows, const Products &of) const;

  int size, dim, blocks;
  bool bounded;
  ChunkTile gate;                  ///< [blocks, 16, K]
  ChunkTile lambda, exclusive, mu; ///< [blocks, 16, K]; exclusive: to the row before, 1 at a block's first
  ChunkTile total;                 ///< [blocks, K], sums of g
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DECAY_H
