#include "compiler/passes/Pass.h"
#include "compiler/passes/shared/SharedExpansion.h"

#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/ExpandShared.inc"

namespace {

/// All operations of that kind, collected before any is rewritten.
template <typename Op> LogicalResult each(ModuleOp module, llvm::function_ref<LogicalResult(Op)> rewrite) {
  llvm::SmallVector<Op> ops;
  module.walk([&](Op op) { ops.push_back(op); });
  for (Op op : ops)
    if (failed(rewrite(op)))
      return failure();
  return success();
}

struct ExpandShared : impl::ExpandSharedBase<ExpandShared> {
  using impl::ExpandSharedBase<ExpandShared>::ExpandSharedBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const int64_t budget = scratchBytes;
    if (budget < 1024 || budget > (1 << 20)) {
      module.emitError("scratch-bytes is ") << budget << ": 1024 to 1048576";
      return signalPassFailure();
    }
    // Conversions last: the others make some.
    auto convert = [&](tile_gpu::ConvertLayoutOp op) { return expandConversion(op, static_cast<uint64_t>(budget)); };
    GatherBuffers buffers;
    auto gather = [&](tile::GatherOp op) { return expandGather(op, buffers); };
    if (failed(each<tile::AtomicRmwOp>(module, expandOrder)) || failed(each<tile::AtomicRmwOp>(module, expandAtomic)) ||
        failed(each<tile::AtomicCasOp>(module, expandAtomic)) || failed(each<tile::ScanOp>(module, expandScan)) ||
        failed(each<tile::ReduceOp>(module, expandReduce)) || failed(each<tile::GatherOp>(module, gather)) ||
        failed(each<func::FuncOp>(module, expandWarpgroupDots)) ||
        failed(each<tile_gpu::ConvertLayoutOp>(module, convert)))
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln
