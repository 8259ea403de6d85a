// Gathers and atomic results through a buffer.
#include "compiler/passes/shared/SharedExpansion.h"

#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

/// A buffer for such tiles, row after row.
BufferType plainBuffer(RankedTensorType tile) {
  const layout::Swizzled rows{1, 1, 1, {}};
  return BufferType::get(tile.getContext(), 1, tile.getShape(), tile.getElementType(),
                         SharedLayoutAttr::get(tile.getContext(), rows));
}

Value storedTo(OpBuilder &b, Location loc, Value tile) {
  Value buffer = LocalAllocOp::create(b, loc, plainBuffer(cast<RankedTensorType>(tile.getType())), IntegerAttr());
  LocalStoreOp::create(b, loc, tile, buffer);
  return buffer;
}

/// The value in every thread, given that the owners of its elements have it.
Value ownersToAll(OpBuilder &b, Location loc, Value tile) {
  return LocalLoadOp::create(b, loc, tile.getType(), storedTo(b, loc, tile));
}

} // namespace

/// Before the outermost loop around `op` that only reads its source; null if there is none, or no room.
static Operation *storeBefore(tile::GatherOp op, GatherBuffers &buffers) {
  Operation *at = nullptr;
  for (auto loop = dyn_cast<LoopLikeOpInterface>(op->getParentOp());
       loop && loop.isDefinedOutsideOfLoop(op.getSource()); loop = dyn_cast<LoopLikeOpInterface>(loop->getParentOp()))
    at = loop;
  if (!at || buffers.of.contains({op.getSource(), at}))
    return at;
  auto kernel = op->getParentOfType<func::FuncOp>();
  const Result<const Target *> target = targetOf(kernel);
  if (!target)
    return nullptr;
  const auto bytesOf = [](BufferType type) {
    const Result<uint64_t> bytes = type.bytes();
    return bytes ? *bytes : 0;
  };
  auto [bytes, fresh] = buffers.bytes.try_emplace(kernel, 0);
  if (fresh)
    kernel.walk([&, sum = &bytes->second](LocalAllocOp alloc) {
      if (auto type = dyn_cast<BufferType>(alloc.getType()))
        *sum += bytesOf(type);
    });
  // The rest is for what is alive for a short time.
  const uint64_t its = bytesOf(plainBuffer(cast<RankedTensorType>(op.getSource().getType())));
  if (bytes->second + its > (*target)->sharedOptIn / 2)
    return nullptr;
  bytes->second += its;
  return at;
}

LogicalResult expandGather(tile::GatherOp op, GatherBuffers &buffers) {
  if (!layoutAttrOf(op.getType()) || layoutAttrOf(op.getType()) != layoutAttrOf(op.getIndices().getType()))
    return op.emitError("a gather's result has the layout of its indices; here they are ")
           << op.getType() << " and " << op.getIndices().getType();
  OpBuilder b(op);
  Value buffer;
  if (Operation *at = storeBefore(op, buffers)) {
    Value &once = buffers.of[{op.getSource(), at}];
    if (!once) {
      OpBuilder before(at);
      once = storedTo(before, op.getLoc(), op.getSource());
    }
    buffer = once;
  } else {
    buffer = storedTo(b, op.getLoc(), op.getSource());
  }
  Value result = GatherSharedOp::create(b, op.getLoc(), op.getType(), buffer, op.getIndices(), op.getAxisAttr());
  op.replaceAllUsesWith(result);
  op.erase();
  return success();
}

LogicalResult expandAtomic(Operation *op) {
  Value result = op->getResult(0);
  if (result.use_empty())
    return success();
  OpBuilder b(op);
  b.setInsertionPointAfter(op);
  const Location loc = op->getLoc();
  if (isa<RankedTensorType>(result.getType())) {
    Result<layout::TileLayout> tile = layoutOf(result.getType());
    if (!tile)
      return report(op, tile.status());
    if (tile->core().freeMask(layout::InDim::Warp) == 0)
      return success();
    Value all = ownersToAll(b, loc, result);
    result.replaceUsesWithIf(all, [&](OpOperand &use) { return !isa<LocalStoreOp>(use.getOwner()); });
    return success();
  }
  // A scalar: thread 0 acts.  As a tile of one element it is owned by thread 0.
  if (const Status status = checkWarps(warpsOf(op).count); !status.ok())
    return report(op, status);
  const layout::Blocked one{{1}, {layout::warpSize}, {static_cast<int64_t>(warpsOf(op).count)}, {0}};
  auto type = RankedTensorType::get({1}, result.getType(), LayoutAttr::get(op->getContext(), one));
  auto splat = tile::SplatOp::create(b, loc, type, result);
  if (isa<func::FuncOp>(op->getParentOp())) { // all warps come by, those that only copy too
    Value buffer = storedTo(b, loc, splat);
    BarrierOp::create(b, loc);
    Value all = LocalScalarOp::create(b, loc, result.getType(), buffer);
    BarrierOp::create(b, loc);
    result.replaceAllUsesExcept(all, splat);
    return success();
  }
  Value all = ownersToAll(b, loc, splat);
  auto reduce = tile::ReduceOp::create(b, loc, TypeRange{result.getType()}, ValueRange{all}, b.getI32IntegerAttr(0));
  Block *body = b.createBlock(&reduce.getCombine(), {}, {result.getType(), result.getType()}, {loc, loc});
  tile::YieldOp::create(b, loc, ValueRange{body->getArgument(0)});
  result.replaceAllUsesExcept(reduce.getResult(0), splat);
  return success();
}

} // namespace kiln
