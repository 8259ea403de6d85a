// Asynchronous copies from global to shared memory: cp.async.
#include "compiler/lowering/GlobalAccess.h"
#include "compiler/lowering/SharedMoves.h"
#include "compiler/lowering/TileWindow.h"

#include "compiler/layout/StagingBuffer.h"
#include "compiler/tile_gpu/Purpose.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::BitVector;
using layout::InDim;
using layout::SharedTile;
using layout::TileLayout;

/// The bytes that one cp.async moves.
constexpr unsigned leastBytes = 4, mostBytes = 16;

/// What one asynchronous copy is made of: which registers of the layout go together, and where they lie in the buffer.
class CopyPlan {
public:
  static Result<CopyPlan> create(const LoweringContext &context, const TileLayout &layout, SharedTile buffer,
                                 analysis::VectorAccess access) {
    const unsigned bits = std::max(8u, buffer.bits()), run = layout::contiguousRun(buffer, access.dim);
    const unsigned elements = std::min({access.elements, run, mostBytes * 8 / bits});
    const unsigned bytes = elements * bits / 8;
    if (bytes < leastBytes)
      return Status(StatusCode::Unsupported,
                    "an asynchronous copy in runs of " + std::to_string(bytes) + " bytes: cp.async moves 4, 8 or 16 (" +
                        std::to_string(access.elements) + " neighbours are contiguous and aligned in global memory, " +
                        std::to_string(run) + " in the buffer)",
                    "align rows to 4 bytes or more, or use a load and a local_store");
    return CopyPlan(context, layout, std::move(buffer), access.dim, elements, bytes);
  }

  const TileLayout &tile() const { return layout; }
  unsigned elements() const { return perCopy; }
  unsigned dimension() const { return dim; }
  llvm::SmallVector<AccessGroup> groups() const { return groupRegisters(layout, dim, perCopy); }

  /// Begins to copy to the place of register `reg` and its neighbours; `valid` (i32; null: all) of the bytes, zero for
  /// the others.
  void copy(const Emit &e, Value base, unsigned reg, Value from, Value valid) {
    // Past the first-level cache where the instruction can: nobody reads these bytes from there again.
    const auto cache = bytes == mostBytes ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
    auto copy = NVVM::CpAsyncOp::create(e.b, e.loc, place(e, base, reg), from, bytes, cache, valid);
    copy->setAttr(tile_gpu::purposeAttr,
                  e.b.getStringAttr(valid ? tile_gpu::purpose::partialCopy : tile_gpu::purpose::wholeCopy));
  }
  unsigned runBytes() const { return bytes; }
  void leaveBranch() { bases.clear(); }

private:
  CopyPlan(const LoweringContext &context, const TileLayout &layout, SharedTile shared, unsigned dim, unsigned elements,
           unsigned bytes)
      : layout(layout), buffer(std::move(shared)), dim(dim), perCopy(elements), bytes(bytes) {
    const auto offsets = [&](InDim in) {
      llvm::SmallVector<BitVector> out;
      for (BitVector c : layout.core().columns(in))
        out.push_back(layout::coordsOf(buffer.inverse(), c));
      return out;
    };
    const auto lanes = offsets(InDim::Lane), warps = offsets(InDim::Warp);
    for (BitVector o : llvm::concat<const BitVector>(lanes, warps))
      threadBits |= o;
    threadPart = context.linear(lanes, warps);
  }

  Value place(const Emit &e, Value base, unsigned reg) {
    const unsigned count = layout.core().size(InDim::Register);
    const BitVector own = layout::coordsOf(buffer.inverse(), layout.core().apply(reg % count, 0, 0, 0));
    // Bits that the thread may set too are xor-ed, and shared by all registers that agree in them; the rest is an
    // immediate.
    const BitVector exclusive = own & threadBits;
    Value &start = bases[exclusive];
    if (!start) {
      Value o = threadPart;
      if (exclusive)
        o = e.xor_(o, e.i32(static_cast<int64_t>(exclusive)));
      start = o ? e.gep(base, e.i(8), byteOf(e, buffer.fields(), o, threadBits)) : base;
    }
    return e.gep(
        start, e.i(8),
        static_cast<int64_t>(layout::byteOf(buffer.fields(), own & ~threadBits) + buffer.repetitionByte(reg / count)));
  }

  const TileLayout &layout;
  SharedTile buffer;
  unsigned dim, perCopy, bytes;
  BitVector threadBits = 0;
  Value threadPart;
  std::map<BitVector, Value> bases;
};

Result<CopyPlan> planOf(const LoweringContext &context, Operation *op, Type tile, tile_gpu::BufferType buffer,
                        analysis::VectorAccess access) {
  if (!context.target().has(Capability::CpAsync))
    return Status(StatusCode::Unsupported, std::string(context.target().name) + " has no cp.async",
                  "use a load and a local_store");
  KILN_ASSIGN(SharedTile shared, buffer.lowered());
  return CopyPlan::create(context, context.layout(tile), std::move(shared), access);
}

struct LowerAsyncCopy : Lowering<tile_gpu::AsyncCopyOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::AsyncCopyOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Type pointers = op.getPointer().getType();
    Result<CopyPlan> plan = planOf(context, op, pointers, op.getBuffer().getType(), context.access(op));
    if (!plan)
      return tile_gpu::report(op, plan.status());
    const Emit e(rewriter, op.getLoc());
    e.guarded(context.owns(plan->tile().core()), [&](Emit &at) {
      for (const AccessGroup &group : plan->groups()) {
        const unsigned r = group.front();
        Value valid;
        if (op.getMask())
          valid = at.select(adaptor.getMask()[r], at.i32(plan->runBytes()), at.i32(0));
        plan->copy(at, adaptor.getBuffer().front(), r, adaptor.getPointer()[r], valid);
      }
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerAsyncCopyView : Lowering<tile_gpu::AsyncCopyViewOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::AsyncCopyViewOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const tile::ViewType view = op.getView().getType();
    Result<CopyPlan> plan = planOf(context, op, op.tile(), op.getBuffer().getType(), context.unmaskedAccess(op));
    if (!plan)
      return tile_gpu::report(op, plan.status());
    if (plan->elements() > 1 && !context.beginsAtZero(op))
      return tile_gpu::report(op, Status(StatusCode::Unsupported,
                                         "an asynchronous copy of a view that may begin inside a run of " +
                                             std::to_string(plan->elements()) + " elements",
                                         "take the view from a make_view, narrowed in other dimensions than its unit "
                                         "dimension only, or use a load_view and a local_store"));
    // Whether the bounds, too, are multiples of a copy: then it lies inside or outside as a whole.
    const analysis::VectorAccess masked = context.access(op);
    const bool together =
        plan->elements() == 1 || (masked.dim == plan->dimension() && masked.elements >= plan->elements());
    const Emit e(rewriter, op.getLoc());
    const Value base = adaptor.getBuffer().front();
    const int64_t storage = plan->runBytes() / plan->elements();
    TileWindow window(context, e, plan->tile(), view, adaptor.getView(), adaptor.getCoords());
    const auto copyAll = [&](Emit &at, bool checked) {
      for (const AccessGroup &group : plan->groups()) {
        const unsigned r = group.front();
        Value valid;
        if (checked) {
          valid = together ? at.select(window.inside(at, r), at.i32(plan->runBytes()), at.i32(0))
                           : at.mul(window.validRun(at, r, plan->elements()), at.i32(storage));
        }
        plan->copy(at, base, r, window.address(at, r), valid);
      }
      window.leaveBranch();
      plan->leaveBranch();
    };
    e.guarded(context.owns(plan->tile().core()), [&](Emit &own) {
      auto branch = scf::IfOp::create(own.b, own.loc, window.whole(own), /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(own.b);
      own.b.setInsertionPointToStart(branch.thenBlock());
      copyAll(own, false);
      own.b.setInsertionPointToStart(branch.elseBlock());
      copyAll(own, true);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerAsyncCommit : Lowering<tile_gpu::AsyncCommitOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::AsyncCommitOp op, Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    NVVM::CpAsyncCommitGroupOp::create(rewriter, op.getLoc());
    replace(rewriter, op, {});
    return success();
  }
};

struct LowerAsyncWait : Lowering<tile_gpu::AsyncWaitOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::AsyncWaitOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    // Waiting for everything is always right.
    NVVM::CpAsyncWaitGroupOp::create(rewriter, op.getLoc(), op.getGroups().value_or(0));
    // What cp.async writes is the threads' own, too.
    if (llvm::any_of(op.getReady(), [](Value buffer) {
          return tile_gpu::isReadByHardware(cast<tile_gpu::BufferType>(buffer.getType()));
        }))
      fenceForHardware(rewriter, op.getLoc(), context);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateAsyncPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                           const LoweringContext &context) {
  patterns.add<LowerAsyncCopy, LowerAsyncCopyView, LowerAsyncCommit, LowerAsyncWait>(converter, context);
}

} // namespace kiln::lowering
