//===- LayoutInference.h - How an operation ties the layouts of its tiles ----===//
//
// One table for everyone: verify-stage, assign-layouts, optimize-layouts.  An operation *works in* a layout: that of
// its results, or of its operands if it has none.  operandLayout() says which layout an operand must have then,
// workLayout() goes the other way.
//
//   elementwise, addptr, load, store, atomics, scan   one layout for all tiles
//   expand_dims, reduce    the side of lower rank has the slice of the other's layout
//   broadcast              one layout (shape-bound ones: the slice of what the result maps)
//   transpose              dimensions renamed
//   reshape, join, split   the same places, other coordinates
//   gather                 indices and result alike; the tile that is picked from may have any layout
//   dot                    the operands have the dot layouts of the accumulator's and the result's one
//   convert_layout         at stage tile: a side without a layout takes the other's
//   splat, range, constants, load_view, print, ..     nothing is tied
//
// Where an encoding says it best (blocked, slice, transposed) the answer is one, else it is `linear`.  Two answers are
// compared by what they map (sameLayout), never by kind.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_LAYOUTINFERENCE_H
#define KILN_TILE_GPU_LAYOUTINFERENCE_H

#include "compiler/target/MatrixUnits.h"
#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/Layouts.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace kiln::tile_gpu {

/// The value is a tile: a ranked tensor.
bool isTile(mlir::Type type);
inline bool isTile(mlir::Value value) {
  return isTile(value.getType());
}

/// All tiles of the operation, operands and results, have one layout.
bool hasOneLayout(mlir::Operation *op);

/// The unit whose results lie so: of mma layouts, by their version; nothing for other layouts.
std::optional<MatrixUnit> matrixUnitOf(LayoutAttr layout);
/// What operands of the type are to a matrix unit, in a product of that precision; nothing if none takes them.
std::optional<MatrixElements> matrixElementsOf(mlir::Type element, tile::Precision precision);
inline std::optional<MatrixElements> matrixElementsOf(tile::DotOp dot) {
  return matrixElementsOf(dot.getLhs().getType().getElementType(), dot.getPrecision());
}
/// The layout of wgmma's results.
inline bool isOfWarpgroups(LayoutAttr layout) {
  return matrixUnitOf(layout) == MatrixUnit::Wgmma;
}
/// A product whose result has such a layout: it reads its operands from shared memory, whatever layouts they have.
bool readsShared(tile::DotOp dot);
/// A product of warpgroups with a result in that layout can read this lhs from registers.
bool fitsRegisters(mlir::RankedTensorType lhs, LayoutAttr result);
/// One of these whose lhs stays in registers: it has the layout of an operand of such a result.
bool readsRegisters(tile::DotOp dot);
/// The tile that an operand of a product of rank 2 is a view of, past transpositions and conversions; true: with its
/// dimensions exchanged.
std::pair<mlir::Value, bool> viewedTile(mlir::Value operand);

/// The layouts of this tile operand and of the operation's results (or other operands) depend on each other.
bool isTied(mlir::OpOperand &operand);

/// Of operand `number` of a product whose result has layout `accumulator`, in registers; nothing if there is none.
std::optional<LayoutAttr> dotOperandLayout(LayoutAttr accumulator, unsigned number, mlir::Type operand);

/// The layout that a tied operand needs for the operation to work in `work`; nothing if there is none.
std::optional<LayoutAttr> operandLayout(mlir::OpOperand &operand, LayoutAttr work);

/// The layout that the operation works in if a tied operand has `layout`; nothing if there is none.
std::optional<LayoutAttr> workLayout(mlir::OpOperand &operand, LayoutAttr layout);

/// workLayout() is the natural choice, not only a possible one: it does not make every thread hold a whole new
/// dimension, as expanding a layout that is no slice does.
bool carriesForward(mlir::OpOperand &operand, LayoutAttr layout);

/// Both layouts, on a tile of this shape, map the same elements to the same places.
bool sameLayout(mlir::Type tile, LayoutAttr a, LayoutAttr b);

/// The layout lowers on this tile (the element type and encoding of `tile` are ignored).
bool fits(mlir::Type tile, LayoutAttr layout);

/// 32-bit registers of a thread that one tile may take.
constexpr unsigned maxThreadWords = 1u << 9;

/// 32-bit registers of a thread that a value takes, a tile or pending sums; 0 for what is no tile with a layout.
std::uint64_t threadWords(mlir::Type type);

/// The type of one of `count` equal parts of a tile along `dim`, if the tile's layout gives every thread its part of
/// each; null if there is none.
mlir::RankedTensorType partOf(mlir::RankedTensorType tile, int64_t dim, int64_t count);

/// The tile's layout suits a block of so many warps: it is made for them (L05) and takes at most 2^9 words a thread
/// (L18).
Status checkPlaces(mlir::Type tile, unsigned warps);
/// Tiles can be spread over so many warps: a power of two.
Status checkWarps(unsigned warps);

} // namespace kiln::tile_gpu

#endif // KILN_TILE_GPU_LAYOUTINFERENCE_H
