#include "compiler/passes/pipelines/PipelinedLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace kiln {

LogicalResult forEachLoops(ModuleOp module, llvm::function_ref<bool(scf::ForOp)> wanted,
                           llvm::function_ref<void(llvm::ArrayRef<scf::ForOp>, const Target &)> visit) {
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    llvm::SmallVector<scf::ForOp> loops;
    function.walk([&](scf::ForOp loop) {
      if (wanted(loop))
        loops.push_back(loop);
    });
    if (loops.empty())
      continue;
    Result<const Target *> target = tile_gpu::targetOf(function);
    if (!target)
      return tile_gpu::report(function, target.takeStatus());
    visit(loops, **target);
  }
  return success();
}

bool waitsForSlots(scf::ForOp loop) {
  return !loop.getBody()->getOps<tile_gpu::WaitOp>().empty();
}

bool isOverPrograms(scf::ForOp loop) {
  const auto plain = [](Value v) {
    while (isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(v.getDefiningOp()))
      v = v.getDefiningOp()->getOperand(0);
    return v;
  };
  auto first = plain(loop.getLowerBound()).getDefiningOp<tile::ProgramIdOp>();
  auto step = plain(loop.getStep()).getDefiningOp<tile::NumProgramsOp>();
  return first && step && first.getAxis() == step.getAxis();
}

bool onlyReads(Operation *op) {
  return !op->walk([](Operation *inner) {
              if (inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(inner) ||
                  hasSingleEffect<MemoryEffects::Read>(inner))
                return WalkResult::advance();
              return WalkResult::interrupt();
            }).wasInterrupted();
}

scf::ForOp carryAlso(RewriterBase &rewriter, scf::ForOp loop, ValueRange inits) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop);
  auto keep = [](OpBuilder &, Location, llvm::ArrayRef<BlockArgument> arguments) {
    return llvm::SmallVector<Value>(arguments.begin(), arguments.end());
  };
  const DictionaryAttr attributes = loop->getDiscardableAttrDictionary();
  auto wider = cast<scf::ForOp>(**loop.replaceWithAdditionalYields(rewriter, inits, false, keep));
  wider->setDiscardableAttrs(attributes);
  return wider;
}

Value roundExists(OpBuilder &b, scf::ForOp loop, Value from, int64_t distance) {
  const Location loc = loop.getLoc();
  const Value left = arith::SubIOp::create(b, loc, loop.getUpperBound(), from);
  const Value reach = arith::ConstantOp::create(b, loc, b.getIntegerAttr(from.getType(), distance));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, left, reach);
}

} // namespace kiln
