// Threads wait for each other.  Not by nvvm.barrier: its text takes a location after it for its reduction's attribute,
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

/// Warpgroups wait for their turns at a barrier each, number 1 and up: at it the warpgroup before arrives.
class Turns {
public:
  Turns(const LoweringContext &context, const Emit &e) : e(e), groups(context.numWarps() / 4), warp(context.warp()) {}

  Value own() const { return e.shr(warp, 2); }
  Value next() const {
    const Value one = e.add(own(), e.i32(1));
    return e.select(e.compare(arith::CmpIPredicate::eq, one, e.i32(groups)), e.i32(0), one);
  }
  Value isFirst() const { return e.compare(arith::CmpIPredicate::eq, own(), e.i32(0)); }
  Value isLast() const { return e.compare(arith::CmpIPredicate::eq, own(), e.i32(groups - 1)); }
  static void wait(const Emit &at, Value group) {
    LLVM::CallIntrinsicOp::create(at.b, at.loc, at.b.getStringAttr("llvm.nvvm.barrier.cta.sync.aligned.count"),
                                  ValueRange{at.add(group, at.i32(1)), at.i32(threads)});
  }
  static void arrive(const Emit &at, Value group) {
    NVVM::BarrierArriveOp::create(at.b, at.loc, at.add(group, at.i32(1)), at.i32(threads));
  }

private:
  static constexpr int64_t threads = 2 * tile_gpu::threadsOfGroup;
  const Emit &e;
  const int64_t groups;
  const Value warp;
};

template <typename Op> struct LowerTurn : Lowering<Op> {
  using Lowering<Op>::Lowering;
  LogicalResult matchAndRewrite(Op op, typename Lowering<Op>::Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const Turns turns(this->context, e);
    if constexpr (std::is_same_v<Op, tile_gpu::TurnTakeOp>)
      Turns::wait(e, turns.own());
    else if constexpr (std::is_same_v<Op, tile_gpu::TurnPassOp>)
      Turns::arrive(e, turns.next());
    else if constexpr (std::is_same_v<Op, tile_gpu::TurnsBeginOp>)
      e.guarded(turns.isLast(), [](Emit &one) { Turns::arrive(one, one.i32(0)); });
    else // what the last one passed on is taken, so that the barriers are as they were
      e.guarded(turns.isFirst(), [](Emit &one) { Turns::wait(one, one.i32(0)); });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Longest sleeps, in nanoseconds: of one warp of many, and of the only one that is late.
constexpr int64_t randomDelay = 4096, oneDelay = 200'000;

/// A word in which every bit depends on every bit of `x` (Murmur3's finalizer).
Value mixed(const Emit &e, Value x) {
  x = e.xor_(x, e.shr(x, 16));
  x = e.mul(x, e.i32(0x85EBCA6B));
  x = e.xor_(x, e.shr(x, 13));
  x = e.mul(x, e.i32(static_cast<int32_t>(0xC2B2AE35)));
  return e.xor_(x, e.shr(x, 16));
}

struct LowerDelay : Lowering<tile_gpu::DelayOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::DelayOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    Value duration;
    if (const std::optional<uint32_t> late = op.getWarp()) {
      Value isLate = e.compare(arith::CmpIPredicate::eq, context.warp(), e.i32(*late));
      duration = e.select(isLate, e.i32(oneDelay), e.i32(0));
    } else {
      const uint64_t seed = *op.getSeed();
      Value x = NVVM::BlockIdXOp::create(rewriter, op.getLoc(), e.i(32));
      x = mixed(e, e.xor_(x, e.i32(static_cast<int32_t>(seed))));
      x = mixed(e, e.xor_(x, e.i32(static_cast<int32_t>(seed >> 32) ^ static_cast<int32_t>(op.getPoint() << 8))));
      x = mixed(e, e.xor_(x, context.warp()));
      // Half of the warps do not sleep at all: those race ahead.
      duration =
          e.select(e.compare(arith::CmpIPredicate::slt, x, e.i32(0)), e.and_(x, e.i32(randomDelay - 1)), e.i32(0));
    }
    NVVM::NanosleepOp::create(rewriter, op.getLoc(), duration);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateBarrierPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                             const LoweringContext &context) {
  patterns.add<LowerTurn<tile_gpu::TurnsBeginOp>, LowerTurn<tile_gpu::TurnTakeOp>, LowerTurn<tile_gpu::TurnPassOp>,
               LowerTurn<tile_gpu::TurnsEndOp>>(converter, context);
  patterns.add<LowerBarrier, LowerWarpBarrier, LowerNamedBarrier, LowerNamedArrive, LowerDelay>(converter, context);
}

} // namespace kiln::lowering
