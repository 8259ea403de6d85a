#include "tests/barriers/BarrierMutants.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kiln::test {

using namespace mlir;

/// Accesses, copies to shared memory, and waits for them.
static bool touchesShared(Operation *op) {
  return BarrierHarness::isAccess(op) ||
         isa<tile_gpu::AsyncCopyOp, tile_gpu::AsyncCopyViewOp, tile_gpu::AsyncWaitOp>(op);
}

void forEachBarrierMutant(ModuleOp module, const Condition &condition,
                          const std::function<void(BarrierMutant &)> &use) {
  const auto mutate = [&](std::size_t index, const char *what, bool mustHarm,
                          const std::function<bool(Operation *)> &change) {
    BarrierMutant mutant{index, what, mustHarm, OwningOpRef<ModuleOp>(module.clone())};
    if (change(BarrierHarness::barriers(*mutant.module)[index]))
      use(mutant);
  };
  const std::size_t count = BarrierHarness::barriers(module).size();
  for (std::size_t i = 0; i < count; ++i) {
    mutate(i, "deleted", true, [](Operation *op) { return op->erase(), true; });
    mutate(i, "moved into one arm", true, [&](Operation *op) {
      OpBuilder b(op);
      Value taken = condition(b, op->getParentOfType<func::FuncOp>());
      auto branch = scf::IfOp::create(b, op->getLoc(), taken, /*withElseRegion=*/false);
      op->moveBefore(branch.thenBlock()->getTerminator());
      return true;
    });
    mutate(i, "weakened", false, [](Operation *op) {
      if (!isa<tile_gpu::BarrierOp>(op))
        return false;
      OpBuilder b(op);
      tile_gpu::WarpBarrierOp::create(b, op->getLoc());
      return op->erase(), true;
    });
    mutate(i, "moved past the next access", false, [](Operation *op) {
      Operation *next = op->getNextNode();
      while (next && !touchesShared(next))
        next = next->getNextNode();
      return next && (op->moveAfter(next), true);
    });
    for (const bool waits : {false, true})
      mutate(i, waits ? "moved before the last wait" : "moved before the last access", false, [waits](Operation *op) {
        Operation *last = op->getPrevNode();
        while (last && !touchesShared(last))
          last = last->getPrevNode();
        return last && isa<tile_gpu::AsyncWaitOp>(last) == waits && (op->moveBefore(last), true);
      });
    mutate(i, "doubled", false, [](Operation *op) {
      OpBuilder b(op);
      b.clone(*op);
      return true;
    });
    for (bool after : {false, true})
      mutate(i, "moved over what touches no shared memory", false, [after](Operation *op) {
        Operation *other = after ? op->getNextNode() : op->getPrevNode();
        if (!other || touchesShared(other) || other->getNumRegions() > 0 || other->hasTrait<OpTrait::IsTerminator>())
          return false;
        after ? op->moveAfter(other) : op->moveBefore(other);
        return true;
      });
    for (bool after : {false, true})
      mutate(i, after ? "moved after its loop" : "moved before its loop", false, [after](Operation *op) {
        Operation *loop = op->getParentOp();
        while (loop && !isa<scf::ForOp, scf::WhileOp>(loop))
          loop = loop->getParentOp();
        if (!loop)
          return false;
        after ? op->moveAfter(loop) : op->moveBefore(loop);
        return true;
      });
  }
}

} // namespace kiln::test
