#include "compiler/passes/layouts/LayoutMoves.h"

#include "compiler/passes/layouts/LayoutChoice.h"
#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

#include <map>

using namespace mlir;

namespace kiln {

using tile_gpu::ConvertLayoutOp;
using tile_gpu::isTile;
using tile_gpu::LayoutAttr;

namespace {

LayoutAttr layoutOf(Value v) {
  return tile_gpu::layoutAttrOf(v.getType());
}

void setLayout(Value v, LayoutAttr layout) {
  v.setType(tile_gpu::withLayout(v.getType(), layout));
}

bool isPlainLoad(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return load.getCache() != tile::Cache::Volatile;
  if (auto load = dyn_cast<tile::LoadViewOp>(op))
    return load.getCache() != tile::Cache::Volatile;
  return false;
}

} // namespace

/// In the loop and the branch that its conversion would stand in.
static Operation *placeOf(Value v) {
  Operation *op = v.getDefiningOp();
  return op ? op : &cast<BlockArgument>(v).getOwner()->front();
}

double LayoutMoves::weightAt(Value v) const {
  return costs.weight(placeOf(v));
}

//===----------------------------------------------------------------------===//
// Upward
//===----------------------------------------------------------------------===//

bool LayoutMoves::canComputeAgain(Value v) const {
  Operation *op = v.getDefiningOp();
  if (!op || op->getNumResults() != 1 || op->getNumRegions() != 0)
    return false;
  if (isGenerator(op))
    return true;
  if (isPlainLoad(op))
    return v.hasOneUse();
  return (op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op)) ||
         isa<tile::ExpandDimsOp, tile::BroadcastOp, tile::TransposeOp, tile::ReshapeOp, tile::JoinOp>(op);
}

LayoutMoves::Way LayoutMoves::wayTo(Value v, LayoutAttr layout, unsigned depth) {
  const LayoutAttr now = layoutOf(v);
  if (now == layout)
    return {How::Have, 0};
  auto it = ways.find({v, layout});
  if (it != ways.end())
    return it->second;
  Way best{How::Convert, costs.convert(placeOf(v), v.getType(), now, layout) * weightAt(v)};
  Operation *op = v.getDefiningOp();
  if (depth > 0 && op) {
    if (auto conversion = dyn_cast<ConvertLayoutOp>(op)) {
      const Way through = wayTo(conversion.getSource(), layout, depth - 1);
      if (through.cost <= best.cost)
        best = {How::Through, through.cost};
    } else if (canComputeAgain(v)) {
      const double weight = costs.weight(op);
      double cost = costs.op(op, layout) * weight;
      if (v.hasOneUse()) // the present one goes away
        cost -= costs.op(op, now) * weight;
      for (OpOperand &operand : op->getOpOperands()) {
        if (!tile_gpu::isTied(operand))
          continue;
        const std::optional<LayoutAttr> need = tile_gpu::operandLayout(operand, layout);
        cost += need ? wayTo(operand.get(), *need, depth - 1).cost : LayoutCosts::unreachable;
      }
      if (cost < best.cost || (isGenerator(op) && cost < LayoutCosts::unreachable))
        best = {How::Again, cost};
    }
  }
  ways[{v, layout}] = best;
  return best;
}

Value LayoutMoves::bring(Value v, LayoutAttr layout) {
  const Way way = wayTo(v, layout);
  if (way.how == How::Have)
    return v;
  auto it = brought.find({v, layout});
  if (it != brought.end() && layoutOf(it->second) == layout) // it may have been given another layout since
    return it->second;
  OpBuilder b(f.getContext());
  b.setInsertionPointAfterValue(v);
  Value out;
  Operation *op = v.getDefiningOp();
  if (way.how == How::Through) {
    out = bring(cast<ConvertLayoutOp>(op).getSource(), layout);
  } else if (way.how == How::Again) {
    IRMapping operands;
    for (OpOperand &operand : op->getOpOperands())
      if (tile_gpu::isTied(operand))
        operands.map(operand.get(), bring(operand.get(), *tile_gpu::operandLayout(operand, layout)));
    Operation *clone = b.clone(*op, operands);
    out = clone->getResult(0);
    setLayout(out, layout);
    if (auto constant = dyn_cast<arith::ConstantOp>(clone))
      if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
        constant.setValueAttr(cast<TypedAttr>(elements.reshape(cast<ShapedType>(out.getType()))));
  } else {
    out = ConvertLayoutOp::create(b, v.getLoc(), tile_gpu::withLayout(v.getType(), layout), v);
  }
  brought[{v, layout}] = out;
  return out;
}

bool LayoutMoves::canHoist(ConvertLayoutOp conversion) {
  const Value source = conversion.getSource();
  return wayTo(source, layoutOf(conversion.getResult())).how != How::Convert ||
         weightAt(source) != costs.weight(conversion);
}

bool LayoutMoves::hoist(ConvertLayoutOp conversion) {
  if (!canHoist(conversion))
    return false;
  const Value out = bring(conversion.getSource(), layoutOf(conversion.getResult()));
  conversion.getResult().replaceAllUsesWith(out);
  conversion.erase();
  return true;
}

bool LayoutMoves::everyWarp(ConvertLayoutOp conversion) {
  const Value source = conversion.getSource();
  const auto *blocked = std::get_if<layout::Blocked>(&layoutOf(source).encoding().kind);
  const llvm::ArrayRef<int64_t> shape = cast<RankedTensorType>(source.getType()).getShape();
  const auto *one = llvm::find(shape, 1);
  if (!blocked || one == shape.end())
    return false;
  layout::Blocked every = *blocked;
  int64_t warps = 1;
  for (auto &n : every.warpsPerCTA)
    warps *= std::exchange(n, 1);
  every.warpsPerCTA[static_cast<size_t>(one - shape.begin())] = warps;
  const auto layout = LayoutAttr::get(f.getContext(), every);
  if (layout == layoutOf(source) || !tile_gpu::fits(source.getType(), layout) ||
      wayTo(source, layout).how == How::Convert)
    return false;
  conversion.getSourceMutable().set(bring(source, layout));
  return true;
}

//===----------------------------------------------------------------------===//
// Downward
//===----------------------------------------------------------------------===//

using Changed = std::pair<Value, LayoutAttr>;

/// Lets `user` work in what follows from its changed operands.  False, and nothing done, if it cannot.
bool LayoutMoves::rework(Operation *user, llvm::ArrayRef<OpOperand *> changed,
                         llvm::SmallVectorImpl<Changed> &results) {
  if (isa<ConvertLayoutOp, tile::PrintOp, tile::AssertOp>(user))
    return true; // takes any layout
  if (isa<tile::DotOp, tile::GatherOp>(user) &&
      llvm::none_of(changed, [](OpOperand *o) { return tile_gpu::isTied(*o); }))
    return true; // read from shared memory
  if (isa<tile::DotOp>(user))
    return false; // the instruction was chosen with its layouts
  OpOperand *first = nullptr;
  for (OpOperand *operand : changed)
    if (tile_gpu::isTied(*operand))
      first = first ? first : operand;
  if (!first)
    return false;
  const LayoutAttr source = layoutOf(first->get());
  LayoutAttr work = source;
  if (user->getNumResults() == 0 || isTile(user->getResult(0))) { // else a reduction to a scalar
    const std::optional<LayoutAttr> answer = tile_gpu::workLayout(*first, source);
    if (!answer)
      return false;
    work = *answer;
  }
  llvm::SmallVector<std::pair<OpOperand *, LayoutAttr>> needs;
  for (OpOperand &operand : user->getOpOperands()) {
    if (!tile_gpu::isTied(operand) || operand.get() == first->get())
      continue;
    // The sources of a reduction, and the halves that are joined, are of one type.
    const std::optional<LayoutAttr> need =
        isa<tile::ReduceOp, tile::JoinOp>(user) ? std::optional(source) : tile_gpu::operandLayout(operand, work);
    if (!need)
      return false;
    needs.push_back({&operand, *need});
  }
  for (auto [operand, need] : needs)
    operand->set(bring(operand->get(), need));
  for (Value v : user->getResults())
    if (isTile(v) && layoutOf(v) != work) {
      results.push_back({v, layoutOf(v)});
      setLayout(v, work);
    }
  return true;
}

void LayoutMoves::flow(llvm::ArrayRef<Changed> start, Reach reach) {
  // Users in program order, so that an operation sees all its operands changed at once.
  llvm::DenseMap<Operation *, unsigned> order;
  llvm::SmallVector<Operation *> ops;
  f.walk<WalkOrder::PreOrder>([&](Operation *op) {
    order[op] = static_cast<unsigned>(ops.size());
    ops.push_back(op);
  });
  std::map<unsigned, llvm::SmallVector<std::pair<OpOperand *, LayoutAttr>>> waiting;
  auto changed = [&](llvm::ArrayRef<Changed> values) {
    for (auto [v, old] : values)
      for (OpOperand &use : v.getUses())
        if (auto it = order.find(use.getOwner()); it != order.end())
          waiting[it->second].push_back({&use, old});
  };
  auto back = [&](OpOperand &use, LayoutAttr expected) {
    if (layoutOf(use.get()) != expected)
      use.set(bring(use.get(), expected));
  };
  changed(start);
  unsigned steps = 0;
  while (!waiting.empty()) {
    auto [number, uses] = *waiting.begin();
    waiting.erase(waiting.begin());
    Operation *user = ops[number];
    llvm::SmallVector<Changed> results;
    llvm::SmallVector<OpOperand *> operands;
    for (auto [use, old] : uses)
      operands.push_back(use);
    const bool free = isa<ConvertLayoutOp>(user);
    const bool may = free || reach == Reach::AsFarAsPossible || (reach == Reach::OneOperation && steps == 0);
    Operation *carrier = isa<scf::ForOp, scf::WhileOp>(user) ? user : carrierOf(user);
    if (!carrier && may && rework(user, operands, results)) {
      steps += !free;
      changed(results);
      continue;
    }
    cutShort |= !carrier && !may;
    const llvm::SmallVector<CarriedTile> carried = carrier ? carriedTiles(carrier) : llvm::SmallVector<CarriedTile>();
    for (auto [use, old] : uses) {
      const CarriedTile *tile = tileFedBy(carried, *use);
      back(*use, tile ? layoutOf(tile->values.front()) : old);
    }
  }
}

bool LayoutMoves::sink(ConvertLayoutOp conversion, Reach reach) {
  const Value source = conversion.getSource();
  const LayoutAttr old = layoutOf(conversion.getResult());
  // The users see the operand under the result's name: a value of its own keeps the operand's other users out.
  OpBuilder b(conversion);
  auto same = ConvertLayoutOp::create(b, conversion.getLoc(), source.getType(), source);
  conversion.getResult().replaceAllUsesWith(same.getResult());
  conversion.erase();
  flow({{same.getResult(), old}}, reach);
  return true;
}

bool LayoutMoves::carry(const CarriedTile &tile, LayoutAttr layout, Reach reach) {
  const LayoutAttr old = layoutOf(tile.values.front());
  if (old == layout || !tile_gpu::fits(tile.values.front().getType(), layout))
    return false;
  llvm::SmallVector<Changed> changed;
  for (Value v : tile.values) {
    setLayout(v, layout);
    changed.push_back({v, old});
  }
  flow(changed, reach);
  for (OpOperand *feed : tile.feeds)
    feed->set(bring(feed->get(), layout));
  return true;
}

LayoutAttr LayoutMoves::layoutApart(ConvertLayoutOp conversion) {
  const Value tile = conversion.getResult();
  const auto *blocked = std::get_if<layout::Blocked>(&layoutOf(tile).encoding().kind);
  if (!blocked || !tile.hasOneUse() || !isa<tile::StoreViewOp>(*tile.user_begin()))
    return {};
  layout::Blocked apart = *blocked;
  const llvm::ArrayRef<int64_t> shape = cast<RankedTensorType>(tile.getType()).getShape();
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t once = apart.sizePerThread[d] * apart.threadsPerWarp[d] * apart.warpsPerCTA[d];
    const int64_t core = shape[d] & -shape[d]; // the power of two that registers, lanes and warps share
    if (apart.warpsPerCTA[d] > 1 && static_cast<int64_t>(d) != apart.order.front() && core > once)
      apart.sizePerThread[d] *= core / once;
  }
  const auto layout = LayoutAttr::get(tile.getContext(), apart);
  return layout == layoutOf(tile) || !tile_gpu::fits(tile.getType(), layout) ? LayoutAttr() : layout;
}

bool LayoutMoves::storeApart(ConvertLayoutOp conversion) {
  const LayoutAttr layout = layoutApart(conversion);
  if (layout)
    setLayout(conversion.getResult(), layout);
  return static_cast<bool>(layout);
}

//===----------------------------------------------------------------------===//
// Clean
//===----------------------------------------------------------------------===//

void LayoutMoves::clean() {
  f.walk([&](ConvertLayoutOp conversion) {
    while (auto inner = conversion.getSource().getDefiningOp<ConvertLayoutOp>())
      conversion.getSourceMutable().set(inner.getSource());
    if (conversion.getSource().getType() == conversion.getType()) {
      conversion.getResult().replaceAllUsesWith(conversion.getSource());
      conversion.erase();
    }
  });
  llvm::SmallVector<Operation *> ops;
  f.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != f)
      ops.push_back(op);
  });
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
  IRRewriter rewriter(f.getContext());
  DominanceInfo dominance(f);
  eliminateCommonSubExpressions(rewriter, dominance, f);
}

} // namespace kiln
