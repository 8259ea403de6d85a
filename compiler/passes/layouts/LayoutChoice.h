//===- LayoutChoice.h - One layout for every tile of a function -------------===//
//
// The decisions of assign-layouts, without a change to the IR:
//
//   1. what the author wrote stays;
//   2. memory operations get coalesced layouts (layout::coalesce, from the axis analysis).  Those of one shape that
//      agree on the order of dimensions share the widest; those about which nothing is known take the shape's busiest.
//      Tiles of a shape that is scanned lie with a thread's elements side by side along the scan: it adds those up by
//      itself, and exchanges one number;
//   3. layouts flow forward from loads, then backward into what has none (index arithmetic), then forward again;
//   4. what is left gets its shape's busiest layout, or a plain blocked one.
//
// A layout that maps the same as one that the shape already has is replaced by that one: equal layouts are equal
// attributes.  Constants, splats and ranges have no preference; every use gets one of its own.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_LAYOUTS_LAYOUTCHOICE_H
#define KILN_PASSES_LAYOUTS_LAYOUTCHOICE_H

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/passes/layouts/CarriedTiles.h"
#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

namespace kiln {

/// A tile that is as cheap to make again in another layout: a constant, splat or range.
bool isGenerator(mlir::Operation *op);

class LayoutChoice {
public:
  explicit LayoutChoice(mlir::func::FuncOp f) : f(f), axes(f) {}

  const analysis::AxisAnalysis &axisFacts() const { return axes; }

  /// Fails with a diagnostic at the operation whose tile can have no layout.
  mlir::LogicalResult run();

  /// The layout of a tile of the function; never null after run().
  tile_gpu::LayoutAttr of(mlir::Value tile) const { return chosen.lookup(tile); }
  /// The layout in which a memory operation works; null for others.
  tile_gpu::LayoutAttr demand(mlir::Operation *op) const { return demands.lookup(op); }
  /// The attribute by which the function calls this layout of such tiles.
  tile_gpu::LayoutAttr canonical(mlir::Type tile, tile_gpu::LayoutAttr layout);

private:
  mlir::LogicalResult collect();
  mlir::LogicalResult demandCoalesced();
  bool forward(mlir::Operation *op, bool weak);
  bool backward(mlir::Operation *op);
  bool choose(mlir::Value tile, tile_gpu::LayoutAttr layout);
  /// Most of its places hold copies.
  bool isWasteful(mlir::Type tile, tile_gpu::LayoutAttr layout);
  bool producible(mlir::Value tile, tile_gpu::LayoutAttr layout);
  void flow(bool weak);
  mlir::LogicalResult chooseRest();
  mlir::LogicalResult plain(mlir::Operation *op, mlir::Type tile, tile_gpu::LayoutAttr &out);
  mlir::LogicalResult check();

  using Shape = std::vector<int64_t>;
  static Shape shapeOf(mlir::Type tile);
  /// Of shapes of tiles that are loaded, and scanned after element by element operations: the dimension.
  std::map<Shape, unsigned> scannedDims() const;

  mlir::func::FuncOp f;
  analysis::AxisAnalysis axes;
  llvm::SmallVector<mlir::Operation *> ops; ///< in program order, an operation before its regions
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<CarriedTile>> carried;
  llvm::DenseMap<mlir::Value, tile_gpu::LayoutAttr> chosen;
  llvm::DenseMap<mlir::Operation *, tile_gpu::LayoutAttr> demands;
  std::map<Shape, tile_gpu::LayoutAttr> busiest;
  std::map<Shape, llvm::SmallVector<tile_gpu::LayoutAttr, 2>> names;
};

} // namespace kiln

#endif // KILN_PASSES_LAYOUTS_LAYOUTCHOICE_H
