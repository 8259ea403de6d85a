#include "compiler/passes/BarrierSearch.h"
#include "compiler/passes/Passes.h"

using namespace mlir;

namespace kiln {
#define GEN_PASS_DEF_INSERTBARRIERS
#include "compiler/passes/Passes.h.inc"

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
