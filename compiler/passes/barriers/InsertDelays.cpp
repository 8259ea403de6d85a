#include "compiler/passes/Pass.h"

#include "compiler/tile_gpu/TileGpu.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/InsertDelays.inc"

using namespace tile_gpu;

namespace {

struct InsertDelays : impl::InsertDelaysBase<InsertDelays> {
  using InsertDelaysBase::InsertDelaysBase;

  void runOnOperation() override {
    const bool one = warp >= 0 || handOff >= 0;
    if (one == (seed >= 0) || (one && (warp < 0 || handOff < 0))) {
      getOperation().emitError("kiln-insert-delays takes either a seed, or a warp and a hand-off, all 0 or more");
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        insert(function);
  }

  /// Threads meet there, or one hands on to others.  Of what one thread does alone, all of it together: no delay stands
  /// in between.
  static bool isHandOff(Operation *op) {
    const auto orders = [](Operation *inner) {
      const auto ordering = tile::orderingOf(inner);
      return ordering && (ordering->meets() || ordering->handoff);
    };
    if (auto one = dyn_cast<ElectedOp>(op))
      return llvm::any_of(one.getBody().front(), [&](Operation &inner) { return orders(&inner); });
    return orders(op) && !isElected(op);
  }

  void insert(func::FuncOp function) {
    llvm::SmallVector<Operation *> handOffs;
    function.walk([&](Operation *op) {
      if (isHandOff(op))
        handOffs.push_back(op);
    });
    OpBuilder b(function.getContext());
    if (warp >= 0) {
      // One setting is for all kernels of a program: those without that warp or hand-off stay as they are.
      if (handOff >= static_cast<int64_t>(handOffs.size()) || warp * layout::warpSize >= threadsOf(function))
        return;
      Operation *const at = handOffs[static_cast<size_t>(handOff)];
      b.setInsertionPoint(at);
      DelayOp::create(b, at->getLoc(), static_cast<uint32_t>(handOff), IntegerAttr(), b.getI32IntegerAttr(warp));
      return;
    }
    for (auto [i, at] : llvm::enumerate(handOffs)) {
      const auto point = static_cast<uint32_t>(2 * i);
      b.setInsertionPoint(at);
      DelayOp::create(b, at->getLoc(), point, b.getI64IntegerAttr(seed), IntegerAttr());
      b.setInsertionPointAfter(at);
      DelayOp::create(b, at->getLoc(), point + 1, b.getI64IntegerAttr(seed), IntegerAttr());
    }
  }
};

} // namespace
} // namespace kiln
