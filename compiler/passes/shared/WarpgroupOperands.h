//===- WarpgroupOperands.h - How operands of wgmma lie in shared memory ------===//
//
// Products of warpgroups read both operands from shared memory, by descriptors.  Who puts a tile there (expand-shared
// stores it, pipeline-loops copies it) asks here how it has to lie, so that one buffer serves a tile and its transpose.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_SHARED_WARPGROUPOPERANDS_H
#define KILN_PASSES_SHARED_WARPGROUPOPERANDS_H

#include "compiler/tile_gpu/TileGpu.h"

#include <optional>

namespace kiln {

/// Operand `number` of a product: a tile, its dimensions exchanged or not.
struct WarpgroupOperand {
  tile::DotOp dot;
  unsigned number;
  bool turned;

  /// The tile's dimension along K.
  unsigned k() const { return (number == 0 ? 1 : 0) ^ unsigned(turned); }
};

/// On a tile_gpu.local_load from a pipeline's slot: it is given back after the last look at the sums of the products
/// that the tile goes into, wherever in loops and conditionals these are.
inline constexpr llvm::StringLiteral heldForProducts = "tile_gpu.held_for_products";

/// The uses of a tile as operands of products of warpgroups, past transpositions and conversions; nothing if it has
/// other uses, or none.
std::optional<llvm::SmallVector<WarpgroupOperand>> warpgroupOperands(mlir::Value tile);

/// The buffer whose innermost dimension is `inner`, in the widest swizzle that all of these can read; null if elements
/// of that size cannot lie so.
tile_gpu::BufferType warpgroupBuffer(mlir::RankedTensorType tile, llvm::ArrayRef<WarpgroupOperand> operands,
                                     unsigned inner, llvm::StringRef name = {});

/// The first operation of the product's block that looks at its sums, itself or by what is inside of it; null: none.
mlir::Operation *firstLook(mlir::Operation *product);

/// The last operation of the load's block that makes one of these products or looks at its sums, itself or by what is
/// inside of it; the load, if there is none after it.
mlir::Operation *lastLook(mlir::Operation *load, llvm::ArrayRef<WarpgroupOperand> operands);

/// The product adds to sums that the loop around it carries and at which nothing else in the loop looks: they may stay
/// in flight from round to round.
bool addsToCarriedSums(tile::DotOp dot);

} // namespace kiln

#endif // KILN_PASSES_SHARED_WARPGROUPOPERANDS_H
