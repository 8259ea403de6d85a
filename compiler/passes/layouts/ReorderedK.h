//===- ReorderedK.h - K of 8-bit products in the order of accumulators --------===//
//
// A thread holds columns 1 and 8 apart of an accumulator's row, its neighbours those 2 and 4 apart.  As an operand of
// 16 bits these are just the columns that it needs; of 8 bits it needs four neighbours.  The order of K is free, as
// long as both operands have the same one: with bits 1 and 2 of the column's number after bit 3, nothing moves.
//
//   K = .. 16 | 8 | 4 2 | 1   =>   .. 16 | 4 2 | 8 | 1
//
// The right operand takes that order on its way to where the product reads it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_LAYOUTS_REORDEREDK_H
#define KILN_PASSES_LAYOUTS_REORDEREDK_H

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {

/// A product of rank 2 of 8-bit floats whose left operand is computed from sums of another product, element by element,
/// and whose right one does not have K along its rows.
bool wantsReorderedK(tile::DotOp dot);

/// Exchanges the elements of K in both operands.
void reorderK(tile::DotOp dot);

/// How threads hold a right operand, K x N of 8 bits with K in that order, between memory with N along the rows and
/// shared memory with K along them: what ldmatrix brings, transposed in pairs, and stmatrix takes.  Nothing if the tile
/// is too small.
std::optional<tile_gpu::LayoutAttr> turningLayout(mlir::RankedTensorType operand, int64_t warps);

} // namespace kiln

#endif // KILN_PASSES_LAYOUTS_REORDEREDK_H
