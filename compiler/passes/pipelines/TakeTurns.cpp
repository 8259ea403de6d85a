// Ping-pong: while one warpgroup computes, the matrix unit is the next one's.  Left alone, warpgroups that wait for the
// same tiles begin their products at the same time, and compute at the same time.
//
//   turns_begin
//   for ..:
//     .. wait for tiles ..
//     turn_take; products begin; turn_pass
//     .. compute; wait for the products ..
//   turns_end
//
// It pays where products take most of a round (an H100, attention forward: head dims 192 and 256 gain a sixth, 128
// nothing at 8k and a tenth at 1k, 64 loses a twelfth).
#include "compiler/passes/Pass.h"
#include "compiler/passes/pipelines/PipelinedLoops.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/TakeTurns.inc"

using namespace tile_gpu;

namespace {

bool joinsBlock(scf::ForOp loop) {
  const unsigned threads = warpsOf(loop).count * layout::warpSize;
  return loop
      ->walk([&](Operation *op) {
        const auto ordering = tile::orderingOf(op);
        return ordering && ordering->joinsBlock(threads) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The first and the last of the products that a round has in flight together; null if there are not two.
std::pair<WarpgroupDotOp, WarpgroupDotOp> together(scf::ForOp loop) {
  WarpgroupDotOp first, last;
  for (WarpgroupDotOp product : loop.getBody()->getOps<WarpgroupDotOp>()) {
    if (!product.goesOn())
      return {};
    first = first ? first : product;
    last = product;
  }
  if (first == last)
    return {};
  for (Operation *op = first; op != last; op = op->getNextNode()) {
    const auto ordering = tile::orderingOf(op);
    if (op->getNumRegions() || (ordering && ordering->awaits))
      return {};
  }
  return {first, last};
}

/// Cycles of a multiprocessor that the matrix unit takes for a product of the block.
double cyclesOf(WarpgroupDotOp product) {
  constexpr double ofSixteenBits = 4096; // FLOP in a cycle
  const auto shape = product.tile().getShape();
  const double flop = 2.0 * static_cast<double>(shape[0] * shape[1] * product.getRhs().getType().getShape()[0]);
  return flop / ofSixteenBits * product.elementType().getIntOrFloatBitWidth() / 16;
}

/// Cycles of the special function unit for what every round computes: powers, mostly.
double specialCycles(scf::ForOp loop) {
  constexpr double inOneCycle = 16;
  double out = 0;
  for (Operation &op : *loop.getBody())
    if (isa<math::MathDialect>(op.getDialect()) && op.getNumResults() == 1)
      if (auto tile = dyn_cast<RankedTensorType>(op.getResult(0).getType()))
        out += static_cast<double>(tile.getNumElements()) / inOneCycle;
  return out;
}

bool pays(scf::ForOp loop) {
  double products = 0;
  for (WarpgroupDotOp product : loop.getBody()->getOps<WarpgroupDotOp>())
    products += cyclesOf(product);
  return products >= 2 * specialCycles(loop);
}

struct TakeTurns : impl::TakeTurnsBase<TakeTurns> {
  void runOnOperation() override {
    const auto hasStages = [](scf::ForOp loop) {
      return tile::numStages(loop) > 1 && !loop->getParentOfType<scf::ForOp>();
    };
    const auto all = [](llvm::ArrayRef<scf::ForOp> loops, const Target &) {
      for (scf::ForOp loop : loops) {
        const auto [first, last] = together(loop);
        if (!first || warpsOf(loop).count < 2 * warpsOfGroup || joinsBlock(loop) || !pays(loop))
          continue;
        OpBuilder b(loop);
        TurnsBeginOp::create(b, loop.getLoc());
        b.setInsertionPoint(first);
        TurnTakeOp::create(b, first->getLoc());
        b.setInsertionPointAfter(last);
        TurnPassOp::create(b, last->getLoc());
        b.setInsertionPointAfter(loop);
        TurnsEndOp::create(b, loop.getLoc());
      }
    };
    if (failed(forEachLoops(getOperation(), hasStages, all)))
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln
