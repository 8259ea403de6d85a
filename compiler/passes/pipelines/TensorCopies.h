//===- TensorCopies.h - Tiles that the copy engine can fetch ----------------===//
//
// A *host view* is made of arguments of the kernel alone, so that the launcher can make a tensor map of it: its pointer
// is an argument, its extents and strides are sums and products of arguments and constants.  Slices of such a view, at
// any coordinate, are tiles of the same map.  Narrowed views are not: the map knows the tensor's bounds only.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_PIPELINES_TENSORCOPIES_H
#define KILN_PASSES_PIPELINES_TENSORCOPIES_H

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/IR/IRMapping.h"

namespace kiln {

/// How a tile.load_view is copied by a tensor map.
struct TensorCopy {
  tile_gpu::TensorMapRecipeAttr recipe;
  llvm::SmallVector<mlir::Value, 5> fixed; ///< coordinate along each dimension of the tensor that slices chose, or null
  llvm::SmallVector<int32_t, 2> dims;      ///< of the tensor, that the tile's are

  /// The copy into `buffer`, its operands as `map` has them.  It counts to number `number` of `barriers`, if given.
  void create(mlir::OpBuilder &b, tile::LoadViewOp load, mlir::Value buffer, const mlir::IRMapping &map,
              mlir::Value barriers = {}, mlir::Value number = {}) const;
};

/// The load as copies into such a buffer; or why not, as a message for a remark.
Result<TensorCopy> tensorCopyOf(mlir::Operation *load, tile_gpu::BufferType buffer, const analysis::AxisAnalysis &facts,
                                const Target &target);

} // namespace kiln

#endif // KILN_PASSES_PIPELINES_TENSORCOPIES_H
