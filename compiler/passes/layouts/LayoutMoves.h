//===- LayoutMoves.h - The ways to move a layout conversion ------------------===//
//
//   hoist   up to where it is cheapest: through what is cheap to compute again, above what is narrower, out of loops;
//           a load that nothing else reads moves along
//   every   the operand is worked out by every warp, so that no warp waits for another's part of it
//   sink    down into its users, which then work in the layout of its operand
//   carry   a tile that a loop or a branch carries changes layout
//
// Each keeps the function valid and its meaning; whether it pays is measured afterwards (LayoutCosts::total), on a
// clone. What is computed again is pure, or a load without another use: memory is never read twice.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_LAYOUTS_LAYOUTMOVES_H
#define KILN_PASSES_LAYOUTS_LAYOUTMOVES_H

#include "compiler/passes/layouts/CarriedTiles.h"
#include "compiler/passes/layouts/LayoutCosts.h"
#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {

/// Moves of one function; make a new one for each move.
class LayoutMoves {
public:
  LayoutMoves(mlir::func::FuncOp f, LayoutCosts &costs) : f(f), costs(costs) {}

  /// How far layouts flow down before they are converted back.
  enum class Reach : unsigned char { None, OneOperation, AsFarAsPossible };

  /// False if it stays where it is.
  bool canHoist(tile_gpu::ConvertLayoutOp conversion);
  bool hoist(tile_gpu::ConvertLayoutOp conversion);
  /// Of an operand that has a dimension of extent 1 for the warps to lie along.
  bool everyWarp(tile_gpu::ConvertLayoutOp conversion);
  bool sink(tile_gpu::ConvertLayoutOp conversion, Reach reach);
  /// Whether the last move would have gone on with a longer reach.
  bool couldReachFurther() const { return cutShort; }
  bool carry(const CarriedTile &tile, tile_gpu::LayoutAttr layout, Reach reach);
  /// Of what is only stored: each warp stores rows side by side, which may be those that it has; null: no other layout.
  static tile_gpu::LayoutAttr layoutApart(tile_gpu::ConvertLayoutOp conversion);
  bool storeApart(tile_gpu::ConvertLayoutOp conversion);

  /// Removes conversions to the same layout, of conversions, and doubles; and what is dead.
  void clean();

private:
  enum class How : unsigned char { Have, Convert, Again, Through };
  struct Way {
    How how = How::Convert;
    double cost = 0;
  };
  using Wanted = std::pair<mlir::Value, tile_gpu::LayoutAttr>;

  /// The cheapest way to have a value in a layout.
  Way wayTo(mlir::Value v, tile_gpu::LayoutAttr layout, unsigned depth = 24);
  mlir::Value bring(mlir::Value v, tile_gpu::LayoutAttr layout);
  bool canComputeAgain(mlir::Value v) const;

  /// The values' type changed; `old` is the layout that their users expect.
  void flow(llvm::ArrayRef<std::pair<mlir::Value, tile_gpu::LayoutAttr>> changed, Reach reach);
  bool rework(mlir::Operation *user, llvm::ArrayRef<mlir::OpOperand *> changed,
              llvm::SmallVectorImpl<std::pair<mlir::Value, tile_gpu::LayoutAttr>> &results);
  double weightAt(mlir::Value v) const;

  mlir::func::FuncOp f;
  LayoutCosts &costs;
  llvm::DenseMap<Wanted, Way> ways;
  llvm::DenseMap<Wanted, mlir::Value> brought;
  bool cutShort = false;
};

} // namespace kiln

#endif // KILN_PASSES_LAYOUTS_LAYOUTMOVES_H
