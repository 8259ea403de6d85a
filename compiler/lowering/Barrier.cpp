// Threads wait for each other.  Not by nvvm.barrier: its text takes a location behind it for its reduction's attribute,
// so that a module printed with locations would not parse again (MLIR 22).
#include "compiler/lowering/Emit.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

struct LowerBarrier : Lowering<tile_gpu::BarrierOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::BarrierOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    NVVM::Barrier0Op::create(rewriter, op.getLoc());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerWarpBarrier : Lowering<tile_gpu::WarpBarrierOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::WarpBarrierOp op, Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    NVVM::SyncWarpOp::create(rewriter, op.getLoc(), Emit(rewriter, op.getLoc()).i32(-1));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerNamedBarrier : Lowering<tile_gpu::NamedBarrierOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::NamedBarrierOp op, Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    LLVM::CallIntrinsicOp::create(rewriter, op.getLoc(),
                                  rewriter.getStringAttr("llvm.nvvm.barrier.cta.sync.aligned.count"),
                                  ValueRange{e.i32(op.getId()), e.i32(op.getThreads())});
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerNamedArrive : Lowering<tile_gpu::NamedArriveOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::NamedArriveOp op, Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    NVVM::BarrierArriveOp::create(rewriter, op.getLoc(), e.i32(op.getId()), e.i32(op.getThreads()));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateBarrierPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                             const LoweringContext &context) {
  patterns.add<LowerBarrier, LowerWarpBarrier, LowerNamedBarrier, LowerNamedArrive>(converter, context);
}

} // namespace kiln::lowering
