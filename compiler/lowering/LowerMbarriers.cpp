// mbarriers, what one thread does alone, warps that only copy, and copies by tensor maps (TMA).
#include "compiler/lowering/Emit.h"
#include "compiler/lowering/SharedMoves.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::Coords;
using layout::SharedTile;

Value address(const Emit &e, Value barriers, Value number) {
  const Value byte = e.mul(number, e.i32(tile_gpu::MbarriersType::bytesOfOne));
  return e.gep(barriers, e.i(8), byte);
}

struct LowerElected : Lowering<tile_gpu::ElectedOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::ElectedOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    auto branch = scf::IfOp::create(rewriter, op.getLoc(), context.elected(), /*withElseRegion=*/false);
    rewriter.inlineBlockBefore(&op.getBody().front(), branch.thenYield());
    // Together again before anything that takes the whole warp.
    NVVM::SyncWarpOp::create(rewriter, op.getLoc(), Emit(rewriter, op.getLoc()).i32(-1));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerRoles : Lowering<tile_gpu::RolesOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::RolesOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const Value copies = e.compare(arith::CmpIPredicate::uge, context.warp(), e.i32(context.numWarps()));
    auto branch = scf::IfOp::create(rewriter, op.getLoc(), copies, /*withElseRegion=*/true);
    const auto fill = [&](Region &from, Operation *end, std::optional<uint32_t> registers,
                          NVVM::SetMaxRegisterAction action) {
      if (registers) {
        OpBuilder::InsertionGuard guard(rewriter);
        rewriter.setInsertionPoint(end);
        NVVM::SetMaxRegisterOp::create(rewriter, op.getLoc(), *registers, action);
      }
      rewriter.inlineBlockBefore(&from.front(), end);
    };
    fill(op.getCopies(), branch.thenYield(), op.getCopyRegisters(), NVVM::SetMaxRegisterAction::decrease);
    fill(op.getComputes(), branch.elseYield(), op.getComputeRegisters(), NVVM::SetMaxRegisterAction::increase);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerInit : Lowering<tile_gpu::MbarrierInitOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::MbarrierInitOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const Value arrivals = e.i32(op.getArrivals());
    for (int64_t i = 0; i < op.getBarriers().getType().getCount(); ++i)
      NVVM::MBarrierInitOp::create(rewriter, e.loc, address(e, adaptor.getBarriers().front(), e.i32(i)), arrivals,
                                   Value());
    // The copy engine is to see them, too.
    NVVM::FenceMbarrierInitOp::create(rewriter, e.loc);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerInvalidate : Lowering<tile_gpu::MbarrierInvalidateOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::MbarrierInvalidateOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    for (int64_t i = 0; i < op.getBarriers().getType().getCount(); ++i)
      NVVM::MBarrierInvalOp::create(rewriter, e.loc, address(e, adaptor.getBarriers().front(), e.i32(i)));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerArrive : Lowering<tile_gpu::MbarrierArriveOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::MbarrierArriveOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const Value at = address(e, adaptor.getBarriers().front(), adaptor.getNumber().front());
    const auto arrive = [&](const Emit &one) {
      NVVM::MBarrierArriveOp::create(one.b, one.loc, TypeRange(), at, Value(), NVVM::MemScopeKind::CTA,
                                     /*relaxed=*/false);
    };
    if (op->hasAttr(tile_gpu::readByThreads))
      fenceForHardware(rewriter, e.loc, context);
    if (context.isElected(op)) {
      arrive(e);
    } else {
      NVVM::SyncWarpOp::create(rewriter, e.loc, e.i32(-1));
      e.guarded(context.noneSet(layout::warpSize - 1, 0), [&](Emit &one) { arrive(one); });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerWait : Lowering<tile_gpu::MbarrierWaitOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::MbarrierWaitOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const Value at = address(e, adaptor.getBarriers().front(), adaptor.getNumber().front());
    // A loop, since try_wait gives up after a while.  In assembly, so that LLVM does not look into it, nor moves
    // accesses past it.  One instruction a line, as tools read PTX.
    LLVM::InlineAsmOp::create(
        rewriter, e.loc, Type(),
        ValueRange{LLVM::PtrToIntOp::create(rewriter, e.loc, e.i(32), at).getResult(), adaptor.getPhase().front()},
        "{\n\t.reg .pred p;\nagain:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1;\n\t@!p bra again;\n\t}",
        "r,r,~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(rewriter.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerTensorCopy : Lowering<tile_gpu::TensorCopyOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::TensorCopyOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const tile_gpu::BufferType buffer = op.getBuffer().getType();
    const Result<SharedTile> shared = buffer.lowered();
    if (!shared)
      return tile_gpu::report(op, shared.status());
    if (!op.getBarriers())
      return op.emitOpError("counts to no mbarrier: copies into slots of pipelines get theirs by lower-pipelines");
    const Emit e(rewriter, op.getLoc());
    const Value barrier = address(e, adaptor.getBarriers()[0], adaptor.getNumber()[0]);
    const llvm::ArrayRef<int64_t> shape = buffer.getShape();
    const int64_t bytes = llvm::product_of(shape) * tile::storageBits(buffer.getElementType()) / 8;
    NVVM::MBarrierExpectTxOp::create(rewriter, e.loc, barrier, e.i32(bytes), NVVM::MemScopeKind::CTA);
    const Value to = LLVM::AddrSpaceCastOp::create(rewriter, e.loc, e.ptr(clusterSpace), adaptor.getBuffer().front());
    Coords at;
    at.resize(static_cast<unsigned>(shape.size()), 0);
    eachBox(context.recipe(op), op, shape, 0, at, [&] {
      llvm::SmallVector<Value> coords =
          llvm::map_to_vector(adaptor.getCoords(), [](ValueRange c) { return c.front(); });
      for (const auto [d, of] : llvm::enumerate(op.getDims()))
        if (at[static_cast<unsigned>(d)])
          coords[static_cast<size_t>(of)] = e.add(coords[static_cast<size_t>(of)], e.i32(at[static_cast<unsigned>(d)]));
      NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
          rewriter, e.loc, e.gep(to, e.i(8), static_cast<int64_t>(shared->byteOffset(at))), adaptor.getMap().front(),
          coords, barrier, ValueRange(), Value(), Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
          NVVM::CTAGroupKindAttr(), Value());
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static constexpr unsigned clusterSpace = 7; // shared memory of a cluster's blocks, the own one's among them

  /// Calls `copy` with `at` at the first element of each box.
  static void eachBox(const TensorMapRecipe &form, tile_gpu::TensorCopyOp op, llvm::ArrayRef<int64_t> shape, unsigned d,
                      Coords &at, llvm::function_ref<void()> copy) {
    if (d == shape.size())
      return copy();
    const unsigned box = form.box[static_cast<size_t>(op.getDims()[d])];
    for (at[d] = 0; at[d] < shape[d]; at[d] += box)
      eachBox(form, op, shape, d + 1, at, copy);
    at[d] = 0;
  }
};

} // namespace

void populateMbarrierPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                              const LoweringContext &context) {
  patterns.add<LowerRoles, LowerElected, LowerInit, LowerInvalidate, LowerArrive, LowerWait, LowerTensorCopy>(converter,
                                                                                                              context);
}

} // namespace kiln::lowering
