#include "compiler/passes/pipelines/PeeledLoads.h"

#include "compiler/passes/pipelines/PipelinedLoops.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace kiln {
namespace {

bool fits(tile::LoadViewOp load, const Stage &stage) {
  auto own = dyn_cast<tile::LoadViewOp>(stage.staged.load);
  if (!own || load.getType() != own.getType() || load.getCache() != own.getCache())
    return false;
  const auto operands = warpgroupOperands(load.getResult());
  if (!stage.inPlace)
    return !operands;
  return operands && warpgroupBuffer(cast<RankedTensorType>(load.getType()), *operands, stage.staged.copy.run.dim,
                                     stage.type.getName()) == stage.type;
}

/// `outside` is what `inside`, a value of the loop's body, would be in the round after the last.
bool continues(scf::ForOp loop, Value inside, Value outside) {
  if (auto argument = dyn_cast<BlockArgument>(inside); argument && argument.getOwner() == loop.getBody())
    return argument != loop.getInductionVar() && loop.getTiedLoopResult(argument) == outside;
  Operation *in = inside.getDefiningOp(), *out = outside.getDefiningOp();
  if (!in || !loop->isProperAncestor(in))
    return inside == outside;
  if (!out || in->getBlock() != loop.getBody() || in->getNumRegions() || !isMemoryEffectFree(in))
    return false;
  return OperationEquivalence::isEquivalentTo(
             in, out, [&](Value a, Value b) { return success(continues(loop, a, b)); }, nullptr,
             OperationEquivalence::IgnoreLocations) &&
         cast<OpResult>(inside).getResultNumber() == cast<OpResult>(outside).getResultNumber();
}

/// Nothing after the loop reads the tile, nor looks at sums of a product that does.
bool isReadBefore(tile::LoadViewOp load, scf::ForOp loop) {
  const auto isBefore = [&](Operation *op) {
    Operation *at = load->getBlock()->findAncestorOpInBlock(*op);
    return at && (at == loop || at->isBeforeInBlock(loop));
  };
  const auto operands = warpgroupOperands(load.getResult());
  return llvm::all_of(load->getUsers(), isBefore) &&
         (!operands || llvm::all_of(*operands, [&](const WarpgroupOperand &operand) {
           Operation *dot = operand.dot;
           return isBefore(dot) && llvm::all_of(dot->getUsers(), isBefore);
         }));
}

} // namespace

tile::LoadViewOp loadBefore(scf::ForOp loop, const Stage &stage) {
  for (Operation *op = loop->getPrevNode(); op && onlyReads(op); op = op->getPrevNode())
    if (auto load = dyn_cast<tile::LoadViewOp>(op);
        load && load.getView() == stage.staged.load->getOperand(0) && fits(load, stage) && isReadBefore(load, loop))
      return load;
  return {};
}

tile::LoadViewOp loadAfter(scf::ForOp loop, const Stage &stage) {
  auto own = dyn_cast<tile::LoadViewOp>(stage.staged.load);
  for (Operation *op = loop->getNextNode(); own && op && onlyReads(op); op = op->getNextNode())
    if (auto load = dyn_cast<tile::LoadViewOp>(op);
        load && fits(load, stage) && continues(loop, own.getView(), load.getView()) &&
        llvm::all_of(llvm::zip_equal(own.getCoords(), load.getCoords()),
                     [&](const auto &pair) { return continues(loop, std::get<0>(pair), std::get<1>(pair)); }))
      return load;
  return {};
}

} // namespace kiln
