#include "compiler/passes/layouts/CarriedTiles.h"

#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {

llvm::SmallVector<CarriedTile> carriedTiles(Operation *op) {
  llvm::SmallVector<CarriedTile> out;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i)
      if (tile_gpu::isTile(loop.getRegionIterArg(i)))
        out.push_back({{loop.getRegionIterArg(i), loop.getResult(i)},
                       {&loop.getInitArgsMutable()[i], &loop.getBody()->getTerminator()->getOpOperand(i)}});
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (unsigned i = 0; i < branch.getNumResults(); ++i)
      if (tile_gpu::isTile(branch.getResult(i)))
        out.push_back({{branch.getResult(i)},
                       {&branch.thenBlock()->getTerminator()->getOpOperand(i),
                        &branch.elseBlock()->getTerminator()->getOpOperand(i)}});
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    Operation *yield = loop.getAfterBody()->getTerminator();
    for (BlockArgument argument : loop.getBeforeArguments())
      if (tile_gpu::isTile(argument))
        out.push_back({{argument},
                       {&loop->getOpOperand(argument.getArgNumber()), &yield->getOpOperand(argument.getArgNumber())}});
    // scf.condition's first operand is the condition.
    for (BlockArgument argument : loop.getAfterArguments())
      if (tile_gpu::isTile(argument))
        out.push_back({{argument, loop.getResult(argument.getArgNumber())},
                       {&loop.getConditionOp()->getOpOperand(argument.getArgNumber() + 1)}});
  }
  return out;
}

Operation *carrierOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto argument = dyn_cast<BlockArgument>(value))
    op = argument.getOwner()->getParentOp();
  return isa_and_nonnull<scf::ForOp, scf::IfOp, scf::WhileOp>(op) ? op : nullptr;
}

Operation *carrierOf(Operation *terminator) {
  if (!isa<scf::YieldOp, scf::ConditionOp>(terminator))
    return nullptr;
  Operation *op = terminator->getParentOp();
  return isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op) ? op : nullptr;
}

const CarriedTile *tileWith(llvm::ArrayRef<CarriedTile> tiles, Value value) {
  for (const CarriedTile &tile : tiles)
    if (llvm::is_contained(tile.values, value))
      return &tile;
  return nullptr;
}

const CarriedTile *tileFedBy(llvm::ArrayRef<CarriedTile> tiles, OpOperand &feed) {
  for (const CarriedTile &tile : tiles)
    if (llvm::is_contained(tile.feeds, &feed))
      return &tile;
  return nullptr;
}

} // namespace kiln
