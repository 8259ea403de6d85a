// What the copy engine adds to global memory: cp.reduce.async.bulk, by inline PTX, since LLVM has it with tensor maps
// only.
#include "compiler/lowering/Emit.h"
#include "compiler/lowering/SharedMoves.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::BitVector;
using layout::InDim;
using layout::SharedTile;
using layout::TileLayout;

/// The runs of a warp's elements: which thread begins each, and where it lies in the buffer.
class Runs {
public:
  Runs(const LoweringContext &context, const TileLayout &layout, const SharedTile &buffer, unsigned dim, uint32_t run)
      : context(context), layout(layout), buffer(buffer),
        inside(layout::lowMask(static_cast<unsigned>(std::countr_zero(run))) << layout.core().bitPosition(dim)) {
    for (BitVector c : layout.core().columns(InDim::Lane))
      lanesInside.push_back(c & inside);
  }

  /// Registers whose element begins a run, in some lane.
  llvm::SmallVector<unsigned> registers() const {
    const layout::LinearLayout &core = layout.core();
    const layout::Span ofLanes(lanesInside);
    const unsigned count = core.size(InDim::Register);
    llvm::SmallVector<unsigned> out;
    for (unsigned reg = 0; reg < layout.repetitions() * count; ++reg)
      if (!(reg % count & core.freeMask(InDim::Register)) && ofLanes.contains(partInside(reg)))
        out.push_back(reg);
    return out;
  }

  /// This lane's element in that register begins one; null: every lane's does.
  Value begins(const Emit &e, unsigned reg) const {
    const Value own = context.linear(llvm::ArrayRef<BitVector>(lanesInside), llvm::ArrayRef<BitVector>());
    if (!own)
      return {};
    return e.compare(arith::CmpIPredicate::eq, own, e.i32(static_cast<int64_t>(partInside(reg))));
  }

  Value place(const Emit &e, Value base, unsigned reg) const {
    const layout::LinearLayout &core = layout.core();
    const auto offsets = [&](InDim in) {
      llvm::SmallVector<BitVector> out;
      for (BitVector c : core.columns(in))
        out.push_back(layout::coordsOf(buffer.inverse(), c));
      return out;
    };
    const unsigned count = core.size(InDim::Register);
    const BitVector own = layout::coordsOf(buffer.inverse(), core.apply(reg % count, 0, 0, 0));
    Value offset = context.linear(offsets(InDim::Lane), offsets(InDim::Warp));
    offset = offset ? e.xor_(offset, e.i32(static_cast<int64_t>(own))) : e.i32(static_cast<int64_t>(own));
    const Value slab = e.gep(base, e.i(8), static_cast<int64_t>(buffer.repetitionByte(reg / count)));
    return e.gep(slab, e.i(8), byteOf(e, buffer.fields(), offset, buffer.core().numElements() - 1));
  }

private:
  /// Of a register's element: its place inside of a run, but for what the lane adds.
  BitVector partInside(unsigned reg) const {
    const layout::LinearLayout &core = layout.core();
    return core.apply(reg % core.size(InDim::Register), 0, 0, 0) & inside;
  }

  const LoweringContext &context;
  const TileLayout &layout;
  const SharedTile &buffer;
  BitVector inside; ///< the bits of a flat index that count elements of a run
  llvm::SmallVector<BitVector> lanesInside;
};

struct LowerBulkAdd : Lowering<tile_gpu::BulkAddOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::BulkAddOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const TileLayout &layout = context.layout(op.getPointer().getType());
    const Result<SharedTile> buffer = op.getBuffer().getType().lowered();
    if (!buffer)
      return tile_gpu::report(op, buffer.status());
    const uint32_t together = tile_gpu::BulkAddOp::runOf(layout, *buffer, op.runDim());
    const uint32_t run = std::min(together, context.contiguousRun(op)), bytes = run * sizeof(float);
    if (bytes < tile_gpu::BulkAddOp::leastBytes)
      return tile_gpu::report(op, Status(StatusCode::Unsupported,
                                         "the copy engine adds runs of 16 bytes or more, and of " +
                                             std::to_string(together) + " elements that a warp has together only " +
                                             std::to_string(run) +
                                             " lie one after the other in memory for certain, masked alike and at a "
                                             "multiple of 16 bytes",
                                         "align them and add what counts them in 64 bits, or use a tile.atomic_rmw"));
    const Emit e(rewriter, op.getLoc());
    const Runs runs(context, layout, *buffer, op.runDim(), run);
    const Value owner = context.owns(layout.core());
    for (unsigned reg : runs.registers()) {
      Value condition = e.both(owner, runs.begins(e, reg));
      if (op.getMask())
        condition = e.both(condition, adaptor.getMask()[reg]);
      e.guarded(condition, [&](Emit &one) {
        const Value from =
            LLVM::PtrToIntOp::create(one.b, one.loc, one.i(32), runs.place(one, adaptor.getBuffer().front(), reg));
        LLVM::InlineAsmOp::create(one.b, one.loc, Type(), ValueRange{adaptor.getPointer()[reg], from},
                                  "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], " +
                                      std::to_string(bytes) + ";",
                                  "l,r,~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
                                  LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
      });
    }
    NVVM::CpAsyncBulkCommitGroupOp::create(rewriter, op.getLoc());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerBulkWait : Lowering<tile_gpu::BulkWaitOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::BulkWaitOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    NVVM::CpAsyncBulkWaitGroupOp::create(rewriter, op.getLoc(), rewriter.getI32IntegerAttr(0), op.getReadAttr());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateBulkPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                          const LoweringContext &context) {
  patterns.add<LowerBulkAdd, LowerBulkWait>(converter, context);
}

} // namespace kiln::lowering
