#include "compiler/passes/barriers/BarrierSearch.h"
#include "compiler/passes/Pass.h"
#include "compiler/tile_gpu/TileGpu.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/InsertBarriers.inc"

using namespace tile_gpu;

namespace {

/// What threads store for the hardware is fenced where they store it: a fence in between serves their reads, too.
void dropFences(func::FuncOp f) {
  f.walk([](MbarrierArriveOp arrive) {
    for (Operation *op = arrive->getPrevNode(); op && arrive->hasAttr(readByThreads); op = op->getPrevNode()) {
      if (op->hasAttr(readByThreads) || op->getNumRegions())
        return;
      if (auto store = dyn_cast<LocalStoreOp>(op); store && isReadByHardware(store.getBuffer().getType()))
        arrive->removeAttr(readByThreads);
    }
  });
}

struct InsertBarriers : impl::InsertBarriersBase<InsertBarriers> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      BarrierSearch search(function);
      if (failed(search.prepare()))
        return signalPassFailure();
      if (!search.empty())
        search.insert();
      dropFences(function);
    }
  }
};

} // namespace
} // namespace kiln
