// One program for the warps that copy and one for those that compute, of a kernel that was written and proved as one.
//
// Both are parts of it in its order.  So nobody waits in vain: the order of the whole is one in which each wait comes
// after the arrivals that it is for, and each program goes through its part of it.
#include "compiler/passes/roles/CopySlice.h"

#include "compiler/passes/Pass.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/SplitRoles.inc"

using namespace tile_gpu;

namespace {

LogicalResult split(func::FuncOp kernel) {
  const Result<const Target *> target = targetOf(kernel);
  if (!target)
    return report(kernel, target.status());
  const CopySlice slice(kernel);
  if (Operation *op = slice.obstacle())
    return op->emitError("decides what the warps that copy do, and takes warps that compute: leave out ")
           << tile::copyWarpsAttr;
  Block &body = kernel.getBody().front();
  Operation *end = body.getTerminator();
  OpBuilder b(end);
  auto roles = RolesOp::create(b, kernel.getLoc(), IntegerAttr(), IntegerAttr());
  if (const auto registers = registersOfRoles(kernel, **target)) {
    roles.setCopyRegisters(registers->copies);
    roles.setComputeRegisters(registers->computes);
  }
  b.createBlock(&roles.getCopies());
  slice.cloneTo(b);
  Block *computes = b.createBlock(&roles.getComputes());
  computes->getOperations().splice(computes->end(), body.getOperations(), body.begin(), roles->getIterator());
  computes->walk([](ElectedOp op) { op.erase(); });
  return success();
}

struct SplitRoles : impl::SplitRolesBase<SplitRoles> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!tile::isKernel(kernel) || kernel.isExternal() || !tile::numCopyWarps(kernel) ||
          !kernel.getBody().getOps<RolesOp>().empty())
        continue;
      if (failed(split(kernel)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace kiln
