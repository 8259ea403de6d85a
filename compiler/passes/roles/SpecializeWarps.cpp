// Warps that only copy, where it pays.
//
// One of the warps that compute, waiting until a slot is empty, waits for the slowest of the others each round.  A warp
// that does nothing else waits for them alone, and theirs may be apart by as many rounds as there are slots.  It pays
// where rounds compute while products are in flight (an H100, attention forward of D = 128: 3 to 4 % in the fastest
// batches, twice that under a causal mask), and in a loop over programs, where the next one's copies begin while the
// others store; not in rounds that only multiply.
//
// A warpgroup of them, so that it can give its registers away: fewer warps take as many, since the assembler shares
// registers out to whole warpgroups.
#include "compiler/passes/roles/CopySlice.h"

#include "compiler/passes/Pass.h"
#include "compiler/passes/pipelines/PipelinedLoops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/SpecializeWarps.inc"

using namespace tile_gpu;

namespace {

/// Rounds have products in flight while they compute from others.
bool computesDuringProducts(scf::ForOp loop) {
  const auto body = loop.getBody();
  return llvm::any_of(body->getOps<WarpgroupDotOp>(), [](WarpgroupDotOp product) { return product.goesOn(); }) &&
         llvm::any_of(*body, [](Operation &op) {
           return op.getNumResults() == 1 && isa<RankedTensorType>(op.getResult(0).getType()) &&
                  op.hasTrait<OpTrait::Elementwise>();
         });
}

bool wouldPay(func::FuncOp kernel) {
  const unsigned warps = warpsOf(kernel).count;
  if (warps < 2 * warpsOfGroup || warps % warpsOfGroup || kernel->hasAttr(tile::maxRegistersAttr))
    return false;
  return kernel
      ->walk([](TensorCopyOp op) {
        for (auto loop = op->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>())
          if (isOverPrograms(loop) || computesDuringProducts(loop))
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

struct SpecializeWarps : impl::SpecializeWarpsBase<SpecializeWarps> {
  using impl::SpecializeWarpsBase<SpecializeWarps>::SpecializeWarpsBase;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (kernel->hasAttr(chosenCopyWarps) && CopySlice(kernel).obstacle()) { // a barrier came since
        kernel->removeAttr(chosenCopyWarps);
        kernel->removeAttr(tile::copyWarpsAttr);
        continue;
      }
      if (again || !tile::isKernel(kernel) || kernel.isExternal() || kernel->hasAttr(tile::copyWarpsAttr) ||
          !wouldPay(kernel))
        continue;
      const Result<const Target *> target = targetOf(kernel);
      if (!target || !(*target)->has(Capability::Setmaxnreg) ||
          threadsOf(kernel) + threadsOfGroup > (*target)->threadsPerBlock)
        continue;
      if (Operation *op = CopySlice(kernel).obstacle()) {
        op->emitRemark("no warps of their own copy: this decides what is copied, and takes the warps that compute");
        continue;
      }
      kernel->setAttr(tile::copyWarpsAttr, Builder(&getContext()).getI32IntegerAttr(warpsOfGroup));
      kernel->setAttr(chosenCopyWarps, UnitAttr::get(&getContext()));
    }
  }
};

} // namespace
} // namespace kiln
