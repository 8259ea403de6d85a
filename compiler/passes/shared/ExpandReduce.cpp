// Reductions and scans across warps: a step inside each warp, a conversion, a step inside each thread.
#include "compiler/passes/shared/SharedExpansion.h"

#include "compiler/layout/Reduction.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

RankedTensorType tileOf(Value v) {
  return cast<RankedTensorType>(v.getType());
}

/// The same body, ending in this dialect's yield.
template <typename Yield> void copyCombine(Region &from, Region &to) {
  OpBuilder b(to.getContext());
  Block &source = from.front();
  Block *block = b.createBlock(&to, to.end(), source.getArgumentTypes(),
                               llvm::map_to_vector(source.getArguments(), [](Value v) { return v.getLoc(); }));
  IRMapping map;
  map.map(source.getArguments(), block->getArguments());
  for (Operation &op : source.without_terminator())
    b.clone(op, map);
  Operation *yield = source.getTerminator();
  Yield::create(b, yield->getLoc(),
                llvm::map_to_vector(yield->getOperands(), [&](Value v) { return map.lookupOrDefault(v); }));
}

/// The tile type of partial results: the shape without the axis, a last dimension of `numbers`, and that layout.
RankedTensorType partialType(RankedTensorType whole, unsigned axis, int64_t numbers, const layout::LinearLayout &core) {
  llvm::SmallVector<int64_t> shape(whole.getShape());
  shape.erase(shape.begin() + axis);
  shape.push_back(numbers);
  return RankedTensorType::get(shape, whole.getElementType(),
                               LayoutAttr::get(whole.getContext(), layout::asLinear(core)));
}

/// convert_layout unless the layouts map alike.
Value converted(OpBuilder &b, Location loc, Value v, Type type) {
  if (v.getType() == type)
    return v;
  return ConvertLayoutOp::create(b, loc, type, v);
}

/// The results of a reduction of `source` in the layout that follows from its own; scalars as they are.
llvm::SmallVector<Type> reducedTypes(TypeRange wanted, RankedTensorType source, unsigned axis,
                                     const layout::TileLayout &sliced) {
  llvm::SmallVector<Type> out;
  for (Type t : wanted) {
    auto tile = dyn_cast<RankedTensorType>(t);
    if (tile) {
      Result<layout::TileLayout> is = layoutOf(tile);
      if (!is || !(*is == sliced)) {
        // A slice reads better; one of a `linear` without a shape does not lower.
        layout::Encoding how = layout::Slice{axis, layoutAttrOf(source).encoding()};
        Result<layout::TileLayout> slice = layout::TileLayout::create(how, sliced.shape());
        if (!slice || !(*slice == sliced))
          how = layout::asLinear(sliced.core());
        t = withLayout(tile, LayoutAttr::get(t.getContext(), how));
      }
    }
    out.push_back(t);
  }
  return out;
}

/// A reduction whose results have the types that the operands' layout gives, converted to those of `op`, in its place.
void replaceReduce(tile::ReduceOp op, ValueRange sources, unsigned axis, ArrayRef<Type> types) {
  OpBuilder b(op);
  auto reduce = tile::ReduceOp::create(b, op.getLoc(), types, sources, b.getI32IntegerAttr(static_cast<int>(axis)));
  reduce.getCombine().takeBody(op.getCombine());
  for (auto [old, value] : llvm::zip_equal(op.getResults(), reduce.getResults()))
    old.replaceAllUsesWith(converted(b, op.getLoc(), value, old.getType()));
  op.erase();
}

} // namespace

LogicalResult expandReduce(tile::ReduceOp op) {
  const unsigned axis = op.getAxis();
  const RankedTensorType type = tileOf(op.getSources().front());
  Result<layout::TileLayout> tile = layoutOf(type);
  if (!tile)
    return report(op, tile.status());
  Result<const Target *> target = targetOf(op);
  if (!target)
    return report(op, target.status());
  Result<layout::ReductionPlan> plan = layout::planReduction(tile->core(), axis, 32, **target);
  if (!plan)
    return report(op, plan.status());
  Result<layout::TileLayout> sliced = tile->slice(axis);
  if (!sliced)
    return report(op, sliced.status());
  llvm::SmallVector<Type> types = reducedTypes(op.getResultTypes(), type, axis, *sliced);
  if (!plan->exchange) {
    if (TypeRange(types) != TypeRange(op.getResultTypes()))
      replaceReduce(op, op.getSources(), axis, types);
    return success();
  }

  OpBuilder b(op);
  const int64_t numbers = int64_t(1) << plan->exchange->numberBits;
  llvm::SmallVector<Type> partialTypes;
  for (Value source : op.getSources())
    partialTypes.push_back(partialType(tileOf(source), axis, numbers, plan->exchange->source));
  auto partial = ReducePartialOp::create(b, op.getLoc(), partialTypes, op.getSources(), op.getAxisAttr());
  copyCombine<YieldOp>(op.getCombine(), partial.getCombine());
  llvm::SmallVector<Value> parts;
  for (auto [source, part] : llvm::zip_equal(op.getSources(), partial.getResults()))
    parts.push_back(
        converted(b, op.getLoc(), part, partialType(tileOf(source), axis, numbers, plan->exchange->destination)));
  // The last dimension now lies in registers; dropping it leaves the layout that the reduction gives.
  replaceReduce(op, parts, static_cast<unsigned>(type.getRank()) - 1, types);
  return success();
}

namespace {

/// A layout in which a scan along the axis is cheap: lanes along the axis first, warps along the others first.
LayoutAttr scanLayout(RankedTensorType type, unsigned axis, const layout::TileLayout &tile) {
  const unsigned rank = tile.dims();
  layout::Sizes one(rank, 1), threads(rank, 1), warps(rank, 1), order{axis};
  int64_t lanes = layout::warpSize, left = tile.core().size(layout::InDim::Warp);
  for (unsigned d = rank; d-- > 0;)
    if (d != axis)
      order.push_back(d);
  for (int64_t d : order) {
    threads[d] = std::min<int64_t>(lanes, tile.core().shape(static_cast<unsigned>(d)));
    lanes /= threads[d];
  }
  threads[axis] *= lanes; // a tile of fewer elements than lanes: copies
  for (size_t i = 1; i < order.size(); ++i) {
    const int64_t d = order[i];
    warps[d] = std::min<int64_t>(left, tile.core().shape(static_cast<unsigned>(d)) / threads[d]);
    left /= warps[d];
  }
  warps[order.back()] *= left;
  return LayoutAttr::get(type.getContext(), layout::Blocked{one, threads, warps, order});
}

} // namespace

LogicalResult expandScan(tile::ScanOp op) {
  const unsigned axis = op.getAxis();
  const RankedTensorType type = tileOf(op.getSources().front());
  Result<layout::TileLayout> tile = layoutOf(type);
  if (!tile)
    return report(op, tile.status());
  Result<const Target *> target = targetOf(op);
  if (!target)
    return report(op, target.status());
  Result<std::optional<layout::ScanPlan>> plan = layout::planScan(tile->core(), axis, 32, **target);
  if (!plan)
    return report(op, plan.status());
  OpBuilder b(op);
  if (!*plan) {
    const LayoutAttr other = scanLayout(type, axis, *tile);
    llvm::SmallVector<Value> sources;
    for (Value v : op.getSources())
      sources.push_back(ConvertLayoutOp::create(b, op.getLoc(), withLayout(v.getType(), other), v));
    auto scan = tile::ScanOp::create(b, op.getLoc(), ValueRange(sources).getTypes(), sources, op.getAxisAttr(),
                                     op.getReverseAttr());
    scan.getCombine().takeBody(op.getCombine());
    for (auto [old, value] : llvm::zip_equal(op.getResults(), scan.getResults()))
      old.replaceAllUsesWith(ConvertLayoutOp::create(b, op.getLoc(), old.getType(), value).getResult());
    op.erase();
    return expandScan(scan);
  }
  if (!(*plan)->totals)
    return success();
  const layout::PartialExchange &totals = *(*plan)->totals;
  const int64_t numbers = int64_t(tile->tile().counts[axis]) << totals.numberBits;
  llvm::SmallVector<Type> types(op.getOperandTypes());
  for (Value v : op.getSources())
    types.push_back(partialType(tileOf(v), axis, numbers, totals.source));
  auto partial = ScanPartialOp::create(b, op.getLoc(), types, op.getSources(), op.getAxisAttr(), op.getReverseAttr());
  copyCombine<YieldOp>(op.getCombine(), partial.getCombine());
  // The totals in another layout, one tile for each operand.
  const auto moved = [&](ValueRange tiles, const layout::LinearLayout &core) {
    llvm::SmallVector<Value> out;
    for (auto [source, tile] : llvm::zip_equal(op.getSources(), tiles))
      out.push_back(converted(b, op.getLoc(), tile, partialType(tileOf(source), axis, numbers, core)));
    return out;
  };
  llvm::SmallVector<Value> operands(partial.getResults().take_front(op.getNumOperands()));
  const ValueRange sums = partial.getResults().drop_front(op.getNumOperands());
  if (const std::optional<layout::TotalsTrip> &trip = (*plan)->trip) {
    const llvm::SmallVector<Value> there = moved(sums, trip->scanning);
    auto before = ScanBeforeOp::create(b, op.getLoc(), ValueRange(there).getTypes(), there, op.getReverseAttr());
    copyCombine<YieldOp>(op.getCombine(), before.getCombine());
    operands.append(moved(before.getResults(), totals.source));
  } else {
    operands.append(moved(sums, totals.destination));
  }
  auto apply = ScanApplyOp::create(b, op.getLoc(), op.getResultTypes(), operands, op.getAxisAttr(), op.getReverseAttr(),
                                   (*plan)->trip ? b.getUnitAttr() : UnitAttr());
  copyCombine<YieldOp>(op.getCombine(), apply.getCombine());
  op.replaceAllUsesWith(apply.getResults());
  op.erase();
  return success();
}

} // namespace kiln
