// Shared memory: buffers, and the two halves of a conversion through scratch.
#include "compiler/lowering/GlobalAccess.h"
#include "compiler/lowering/SharedMoves.h"

#include "compiler/layout/LocalAccess.h"
#include "compiler/tile_gpu/Exchange.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::applyColumns;
using layout::BitVector;
using layout::InDim;
using layout::SharedTile;
using layout::TileLayout;

struct LowerLocalAlloc : Lowering<tile_gpu::LocalAllocOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::LocalAllocOp op, Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getOffset())
      return tile_gpu::report(op, Status(StatusCode::CompileError, "this buffer has no place in shared memory",
                                         "run kiln-allocate-shared before kiln-lower-tiles"));
    auto module = op->getParentOfType<ModuleOp>();
    if (!module.lookupSymbol(sharedSymbol))
      return tile_gpu::report(op, Status(StatusCode::CompileError,
                                         "the kernel states no size of shared memory but has a buffer in it",
                                         "run kiln-allocate-shared, or set tile_gpu.shared_bytes on the kernel"));
    const Emit e(rewriter, op.getLoc());
    // Before the barrier after which mbarriers are used: bytes that threads wrote until here may be the copy engine's
    // from then on.
    if (isa<tile_gpu::MbarriersType>(op.getType()))
      fenceForHardware(rewriter, op.getLoc(), context);
    rewriter.replaceOp(op, e.gep(context.sharedBase(), e.i(8), static_cast<int64_t>(*op.getOffset())));
    return success();
  }
};

struct LowerLocalSubview : Lowering<tile_gpu::LocalSubviewOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::LocalSubviewOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Result<SharedTile> tile = op.getBuffer().getType().lowered();
    if (!tile)
      return tile_gpu::report(op, tile.status());
    const Emit e(rewriter, op.getLoc());
    // One buffer after the other, each aligned as its layout demands.
    const uint64_t align = tile->alignment(), bytes = (tile->bytes() + align - 1) / align * align;
    const Value at = e.mul(adaptor.getIndex().front(), e.i32(static_cast<int64_t>(bytes)));
    rewriter.replaceOp(op, e.gep(adaptor.getBuffer().front(), e.i(8), at));
    return success();
  }
};

struct LowerLocalTranspose : Lowering<tile_gpu::LocalTransposeOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::LocalTransposeOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getBuffer().front());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// local_store, local_load
//===----------------------------------------------------------------------===//

/// Where registers of a tile lie in a padded buffer, element by element: vectors may not cross the padding.
class PaddedPlaces {
public:
  PaddedPlaces(const LoweringContext &context, const TileLayout &layout, const SharedTile &buffer)
      : layout(layout), buffer(buffer) {
    auto offsets = [&](InDim in) {
      llvm::SmallVector<BitVector> out;
      for (BitVector c : layout.core().columns(in))
        out.push_back(layout::coordsOf(buffer.inverse(), c));
      return out;
    };
    threadPart = context.linear(offsets(InDim::Lane), offsets(InDim::Warp));
  }

  Value address(const Emit &e, Value base, unsigned reg) const {
    const unsigned count = layout.core().size(InDim::Register);
    const auto constant =
        static_cast<int64_t>(layout::coordsOf(buffer.inverse(), layout.core().apply(reg % count, 0, 0, 0)));
    Value o = threadPart ? e.xor_(threadPart, e.i32(constant)) : e.i32(constant);
    const Value core = e.gep(base, e.i(8), static_cast<int64_t>(buffer.repetitionByte(reg / count)));
    return e.gep(core, e.i(8), byteOf(e, buffer.fields(), o, buffer.core().numElements() - 1));
  }

private:
  const TileLayout &layout;
  const SharedTile &buffer;
  Value threadPart;
};

MoveFrame frameOf(const layout::LocalAccessPlan &plan, const SharedTile &buffer) {
  return {plan.storageBytes, buffer.core().totalBits(), false, 0, buffer.fields()};
}

/// Threads meet at it, or arrive where others wait, or the hardware reads: there itself, or inside of it.
bool showsStores(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(inner);
        const bool tells = (ordering && (ordering->meets() || ordering->arrives)) || isa<NVVM::Barrier0Op>(inner);
        return tells || llvm::any_of(tile::accessesOf(inner),
                                     [](const tile::MemoryAccess &access) {
                                       return access.agent != tile::Agent::Threads && access.reads &&
                                              access.in<tile_gpu::SharedMemory>();
                                     })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Before which operation a store to what the hardware reads is fenced: the last one before anybody hears of it, so
/// that the fence has little left to wait for.  Null: another such store comes first, whose fence is this one's too.
Operation *fencedBefore(tile_gpu::LocalStoreOp store) {
  Operation *op = store->getNextNode();
  for (; !op->hasTrait<OpTrait::IsTerminator>() && !showsStores(op); op = op->getNextNode())
    if (auto next = dyn_cast<tile_gpu::LocalStoreOp>(op);
        next && tile_gpu::isReadByHardware(next.getBuffer().getType()))
      return nullptr;
  return op;
}

struct LowerLocalStore : Lowering<tile_gpu::LocalStoreOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::LocalStoreOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const TileLayout &layout = context.layout(op.getValue().getType());
    Result<SharedTile> buffer = op.getBuffer().getType().lowered();
    if (!buffer)
      return tile_gpu::report(op, buffer.status());
    const Emit e(rewriter, op.getLoc());
    const Value base = adaptor.getBuffer().front();
    const Scalars values(adaptor.getValue());
    if (std::holds_alternative<layout::Padded>(buffer->encoding().kind)) {
      const PaddedPlaces places(context, layout, *buffer);
      e.guarded(context.owns(layout.core()), [&](Emit &owner) {
        for (const AccessGroup &group : groupRegisters(layout, 0, 1)) {
          const unsigned r = group.front();
          LLVM::StoreOp::create(owner.b, owner.loc, owner.toBits(values[r]), places.address(owner, base, r));
        }
      });
      rewriter.eraseOp(op);
      return success();
    }
    Result<layout::LocalAccessPlan> plan = layout::planLocalAccess(
        layout.core(), buffer->core(), tile_gpu::planBits(op.getValue().getType()), context.target(), true);
    if (!plan)
      return tile_gpu::report(op, plan.status());
    const unsigned registers = layout.core().size(InDim::Register);
    for (unsigned rep = 0; rep < layout.repetitions(); ++rep) {
      const Value core = e.gep(base, e.i(8), static_cast<int64_t>(buffer->repetitionByte(rep)));
      SharedMove(context, e, plan->access, frameOf(*plan, *buffer), core)
          .store(ArrayRef<Value>(values).slice(rep * registers, registers));
    }
    if (Operation *before = tile_gpu::isReadByHardware(op.getBuffer().getType()) ? fencedBefore(op) : nullptr) {
      rewriter.setInsertionPoint(before);
      fenceForHardware(rewriter, op.getLoc(), context);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerLocalScalar : Lowering<tile_gpu::LocalScalarOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::LocalScalarOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const Type type = op.getType();
    const Value bits =
        LLVM::LoadOp::create(rewriter, op.getLoc(), e.i(type.getIntOrFloatBitWidth()), adaptor.getBuffer().front());
    rewriter.replaceOp(op, isa<FloatType>(type) ? e.fromBits(bits, type) : bits);
    return success();
  }
};

struct LowerLocalLoad : Lowering<tile_gpu::LocalLoadOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::LocalLoadOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const TileLayout &layout = context.layout(op.getType());
    const Type type = scalarType(tile::elementTypeOf(op.getType()));
    Result<SharedTile> buffer = op.getBuffer().getType().lowered();
    if (!buffer)
      return tile_gpu::report(op, buffer.status());
    const Emit e(rewriter, op.getLoc());
    const Value base = adaptor.getBuffer().front();
    Scalars out(layout.registers());
    if (std::holds_alternative<layout::Padded>(buffer->encoding().kind)) {
      const PaddedPlaces places(context, layout, *buffer);
      for (const AccessGroup &group : groupRegisters(layout, 0, 1)) {
        const Value at = places.address(e, base, group.front());
        const Value v = LLVM::LoadOp::create(rewriter, op.getLoc(), e.i(std::max(8u, buffer->bits())), at);
        out[group.front()] = e.fromBits(v, type);
      }
      for (auto [r, from] : llvm::enumerate(representatives(layout)))
        out[r] = out[from];
      replace(rewriter, op, std::move(out));
      return success();
    }
    Result<layout::LocalAccessPlan> plan = layout::planLocalAccess(
        layout.core(), buffer->core(), tile_gpu::planBits(op.getType()), context.target(), false);
    if (!plan)
      return tile_gpu::report(op, plan.status());
    const unsigned registers = layout.core().size(InDim::Register);
    for (unsigned rep = 0; rep < layout.repetitions(); ++rep) {
      const Value core = e.gep(base, e.i(8), static_cast<int64_t>(buffer->repetitionByte(rep)));
      Scalars loaded(registers);
      SharedMove(context, e, plan->access, frameOf(*plan, *buffer), core).load(loaded, type);
      for (unsigned r = 0; r < registers; ++r)
        out[rep * registers + r] = loaded[applyColumns(plan->registerCopy, r)];
    }
    replace(rewriter, op, std::move(out));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// exchange_store, exchange_load
//===----------------------------------------------------------------------===//

/// One side of one pass of a conversion; slab(j) moves repetition first + j.
class ExchangeSide {
public:
  ExchangeSide(const LoweringContext &context, const Emit &e, const layout::TileConversionPlan &plan, unsigned pass,
               Value scratch)
      : context(context), e(e), plan(plan), pass(tile_gpu::exchangePass(plan, pass)), region(scratch) {
    const layout::SharedPlan &shared = plan.core.shared;
    frame = {plan.core.storageBytes,
             shared.regionBits - shared.passBits,
             shared.predicatedPasses,
             this->pass.corePass,
             {{0, shared.regionBits, plan.core.storageBytes}}};
    if (shared.scope == layout::Scope::Warp)
      region = e.gep(scratch, e.i(8), e.mul(context.warp(), e.i32(static_cast<int64_t>(shared.regionBytes))));
  }
  unsigned first() const { return pass.first; }
  unsigned repetitions() const { return pass.repetitions; }
  SharedMove slab(const layout::Access &access, unsigned j) const {
    return SharedMove(context, e, access, frame,
                      e.gep(region, e.i(8), static_cast<int64_t>(j * plan.core.scratchBytes)));
  }

private:
  const LoweringContext &context;
  const Emit &e;
  const layout::TileConversionPlan &plan;
  const tile_gpu::ExchangePass pass;
  Value region;
  MoveFrame frame;
};

LogicalResult checkPass(Operation *op, const layout::TileConversionPlan &plan, unsigned pass) {
  if (pass < tile_gpu::exchangePasses(plan))
    return success();
  return op->emitOpError() << "is pass " << pass << " of a plan of " << tile_gpu::exchangePasses(plan) << " passes";
}

struct LowerExchangeStore : Lowering<tile_gpu::ExchangeStoreOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::ExchangeStoreOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const TileLayout &layout = context.layout(op.getValue().getType());
    Result<layout::TileConversionPlan> plan = tile_gpu::exchangePlan(op);
    if (!plan)
      return tile_gpu::report(op, plan.status());
    if (failed(checkPass(op, *plan, op.getPass())))
      return failure();
    const Emit e(rewriter, op.getLoc());
    const Scalars values(adaptor.getValue());
    const unsigned registers = layout.core().size(InDim::Register);
    const ExchangeSide side(context, e, *plan, op.getPass(), adaptor.getScratch().front());
    for (unsigned j = 0; j < side.repetitions(); ++j)
      side.slab(plan->core.shared.store, j)
          .store(ArrayRef<Value>(values).slice((side.first() + j) * registers, registers));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerExchangeLoad : Lowering<tile_gpu::ExchangeLoadOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::ExchangeLoadOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const TileLayout &layout = context.layout(op.getType());
    Result<layout::TileConversionPlan> plan = tile_gpu::exchangePlan(op);
    if (!plan)
      return tile_gpu::report(op, plan.status());
    if (failed(checkPass(op, *plan, op.getPass())))
      return failure();
    const Emit e(rewriter, op.getLoc());
    Scalars out(adaptor.getPrevious());
    const Type type = out.front().getType();
    const unsigned registers = layout.core().size(InDim::Register);
    const ExchangeSide side(context, e, *plan, op.getPass(), adaptor.getScratch().front());
    for (unsigned j = 0; j < side.repetitions(); ++j) {
      auto own = llvm::MutableArrayRef<Value>(out).slice((side.first() + j) * registers, registers);
      side.slab(plan->core.shared.load, j).load(own, type);
      // Registers that are copies take the one that was loaded.
      const Scalars loaded(own.begin(), own.end());
      for (unsigned r = 0; r < registers; ++r)
        own[r] = loaded[applyColumns(plan->core.shared.registerCopy, r)];
    }
    replace(rewriter, op, std::move(out));
    return success();
  }
};

} // namespace

void populateLocalPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                           const LoweringContext &context) {
  patterns.add<LowerLocalAlloc, LowerLocalSubview, LowerLocalTranspose, LowerLocalStore, LowerLocalLoad,
               LowerLocalScalar, LowerExchangeStore, LowerExchangeLoad>(converter, context);
}

} // namespace kiln::lowering
