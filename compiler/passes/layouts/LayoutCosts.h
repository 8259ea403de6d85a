//===- LayoutCosts.h - What a function costs in the layouts that it has ------===//
//
// Cycles of one SM for one block: the planner's unit (layouts specification, section 3.8), extended to what moves along
// with a conversion.  A conversion costs what its plan costs, an elementwise operation half a cycle a register word and
// warp, an access to memory its instructions and the 32-byte sectors that they touch.  An operation in a loop counts
// once an iteration (8 times if the count is unknown).  A barrier of the block in a loop in which warpgroups could take
// turns (take-turns) costs what the matrix unit could do meanwhile.  Good for ranking only.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_LAYOUTS_LAYOUTCOSTS_H
#define KILN_PASSES_LAYOUTS_LAYOUTCOSTS_H

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/tile_gpu/Layouts.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <tuple>

namespace kiln {

class LayoutCosts {
public:
  /// Of `f` and of clones of it: operations that access memory carry the number of their facts in an attribute until
  /// forget() removes it.
  LayoutCosts(mlir::func::FuncOp f, const Target &target);
  void forget(mlir::func::FuncOp f);

  /// One execution of a conversion of such a tile where `at` stands; `unreachable` if there is no plan.
  double convert(mlir::Operation *at, mlir::Type tile, tile_gpu::LayoutAttr from, tile_gpu::LayoutAttr to);
  /// A conversion with a barrier of the block in a loop with several products of more than one warpgroup.
  bool losesTurns(tile_gpu::ConvertLayoutOp conversion);
  /// One execution of an operation working in a layout: LayoutInference.h's, but for a reduction that of its operands.
  double op(mlir::Operation *op, tile_gpu::LayoutAttr work);
  /// How often the operation runs.
  double weight(mlir::Operation *op) const;
  double total(mlir::func::FuncOp f);

  static constexpr double unreachable = 1e12;

private:
  struct Conversion {
    double cost = unreachable;
    bool joinsBlock = false; ///< all warps wait for each other
  };
  Conversion plan(mlir::Type tile, tile_gpu::LayoutAttr from, tile_gpu::LayoutAttr to);
  /// In a loop with several products of more than one warpgroup.
  bool isAmongTurns(mlir::Operation *op) const;
  double memory(mlir::Operation *op, mlir::Type tile, tile_gpu::LayoutAttr work);
  double memoryNow(mlir::Operation *op, mlir::Type tile, tile_gpu::LayoutAttr work, int64_t number);
  double reduction(mlir::Operation *op, tile_gpu::LayoutAttr work);
  double reductionNow(mlir::Operation *op, mlir::Type tile, tile_gpu::LayoutAttr work, unsigned axis);
  const layout::TileLayout *lowered(mlir::Type tile, tile_gpu::LayoutAttr layout);

  // Each question is asked for every clone of the function again, and every plan is made once.  By attributes and
  // types, which are unique: two layouts, or a layout and a number; and the tile.
  using Key = std::tuple<const void *, std::uintptr_t, const void *>;
  const Target &target;
  double warps;
  std::vector<analysis::AccessFacts> facts;
  llvm::DenseMap<Key, Conversion> plans;
  llvm::DenseMap<Key, double> accesses;
  std::map<std::tuple<Key, const void *>, double> reductions; ///< and the operation's name
  std::map<Key, std::optional<layout::TileLayout>> layouts;
};

/// The layout that op() wants, as it is now; null without tiles.
tile_gpu::LayoutAttr workLayoutOf(mlir::Operation *op);

} // namespace kiln

#endif // KILN_PASSES_LAYOUTS_LAYOUTCOSTS_H
