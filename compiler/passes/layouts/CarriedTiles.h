//===- CarriedTiles.h - Tiles that control flow carries ----------------------===//
//
// A tile that scf.for, scf.if or scf.while passes along is several SSA values, which must have one type, fed by
// operands of the operation and of its terminators.  Passes that change layouts treat it as one thing.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_LAYOUTS_CARRIEDTILES_H
#define KILN_PASSES_LAYOUTS_CARRIEDTILES_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

namespace kiln {

struct CarriedTile {
  llvm::SmallVector<mlir::Value, 2> values;      ///< block arguments and results
  llvm::SmallVector<mlir::OpOperand *, 2> feeds; ///< what they get their value from
};

/// The tiles that `op` carries; none for other operations than scf.for, scf.if and scf.while.
llvm::SmallVector<CarriedTile> carriedTiles(mlir::Operation *op);

/// The operation whose control flow carries this value (a block argument or a result), or that this terminator ends;
/// null if there is none.
mlir::Operation *carrierOf(mlir::Value value);
mlir::Operation *carrierOf(mlir::Operation *terminator);

/// The tile of `tiles` that holds the value, or is fed by the operand; null if none does.
const CarriedTile *tileWith(llvm::ArrayRef<CarriedTile> tiles, mlir::Value value);
const CarriedTile *tileFedBy(llvm::ArrayRef<CarriedTile> tiles, mlir::OpOperand &feed);

} // namespace kiln

#endif // KILN_PASSES_LAYOUTS_CARRIEDTILES_H
