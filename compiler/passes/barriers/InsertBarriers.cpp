#include "compiler/passes/barriers/BarrierSearch.h"
#include "compiler/passes/Pass.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/InsertBarriers.inc"

namespace {

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
    }
  }
};

} // namespace
} // namespace kiln
