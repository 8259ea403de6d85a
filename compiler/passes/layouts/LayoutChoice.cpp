#include "compiler/passes/layouts/LayoutChoice.h"

#include "compiler/layout/MemoryAccess.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {

using tile_gpu::isTile;
using tile_gpu::LayoutAttr;

static bool hasTile(TypeRange types) {
  return llvm::any_of(types, [](Type t) { return isTile(t); });
}

bool isGenerator(Operation *op) {
  return op && (op->hasTrait<OpTrait::ConstantLike>() || isa<tile::SplatOp, tile::RangeOp>(op));
}

LayoutChoice::Shape LayoutChoice::shapeOf(Type tile) {
  return cast<RankedTensorType>(tile).getShape().vec();
}

LayoutAttr LayoutChoice::canonical(Type tile, LayoutAttr layout) {
  auto &known = names[shapeOf(tile)];
  // An operand of a dot may lie as a result of one does, but only the result's name says how to multiply.
  const bool isOperand = std::holds_alternative<layout::DotOperand>(layout.encoding().kind);
  for (LayoutAttr name : known)
    if (tile_gpu::sameLayout(tile, name, layout) &&
        (isOperand || !std::holds_alternative<layout::DotOperand>(name.encoding().kind)))
      return name;
  known.push_back(layout);
  return layout;
}

bool LayoutChoice::choose(Value tile, LayoutAttr layout) {
  if (!isTile(tile) || chosen.contains(tile))
    return false;
  layout = canonical(tile.getType(), layout);
  chosen[tile] = layout;
  // The results of one operation are alike, and what control flow carries is one thing.
  if (Operation *op = tile.getDefiningOp(); op && !carrierOf(tile))
    for (Value v : op->getResults())
      if (isTile(v))
        chosen.try_emplace(v, layout);
  if (auto it = carried.find(carrierOf(tile)); it != carried.end())
    if (const CarriedTile *whole = tileWith(it->second, tile))
      for (Value v : whole->values)
        chosen[v] = layout;
  return true;
}

//===----------------------------------------------------------------------===//
// What is given
//===----------------------------------------------------------------------===//

LogicalResult LayoutChoice::collect() {
  for (Type t : llvm::concat<const Type>(f.getArgumentTypes(), f.getResultTypes()))
    if (isTile(t))
      return f.emitError() << "function '" << f.getName() << "' takes or returns the tile " << t
                           << ": inline it into its kernel first";
  bool good = true;
  const Status spread = tile_gpu::checkWarps(tile_gpu::warpsOf(f).count);
  auto keep = [&](Operation *op, Value v) {
    if (!isTile(v))
      return;
    if (!spread.ok()) {
      good = good && succeeded(tile_gpu::report(op, spread)); // once
      return;
    }
    auto type = cast<RankedTensorType>(v.getType());
    if (const LayoutAttr layout = tile_gpu::layoutAttrOf(type)) {
      choose(v, layout);
    } else if (type.getEncoding()) {
      op->emitError() << "the tile " << type << " has an encoding that is no layout: write #tile_gpu.blocked<..>, or "
                      << "nothing";
      good = false;
    }
  };
  f.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == f)
      return;
    ops.push_back(op);
    for (Value v : op->getResults())
      keep(op, v);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value v : block.getArguments())
          keep(op, v);
    if (auto tiles = carriedTiles(op); !tiles.empty())
      carried[op] = std::move(tiles);
    else if (hasTile(op->getResultTypes()) && op->getNumRegions() > 0 && !isa<tile::ReduceOp, tile::ScanOp>(op)) {
      op->emitError() << "no rule for the layouts of " << op->getName()
                      << ": tiles pass through scf.for, scf.if and scf.while";
      good = false;
    } else if (isa<func::CallOp>(op) && hasTile(op->getOperandTypes())) {
      op->emitError() << "a call with tiles: inline the function first";
      good = false;
    }
  });
  return success(good);
}

namespace {

/// A coalesced layout of one memory operation and what speaks for it.
struct Access {
  Operation *op;
  layout::Blocked layout;
  bool known;            ///< something is known of its addresses
  std::uint64_t traffic; ///< bits of the tile, for each loop around it 8 times as many
};

std::uint64_t trafficOf(Operation *op, Type tile, unsigned bits) {
  std::uint64_t out = static_cast<std::uint64_t>(cast<RankedTensorType>(tile).getNumElements()) * bits;
  unsigned loops = 0;
  for (Operation *p = op->getParentOp(); p && loops < 4; p = p->getParentOp())
    loops += isa<LoopLikeOpInterface>(p);
  return out << (3 * loops);
}

} // namespace

std::map<LayoutChoice::Shape, unsigned> LayoutChoice::scannedDims() const {
  // An axis is told by what lies inside it, the product of the extents after it: a reshape may split or join it.
  llvm::SmallVector<std::pair<Value, std::int64_t>> left;
  llvm::DenseSet<Value> seen;
  const auto elementsOf = [](Type tile) { return cast<RankedTensorType>(tile).getNumElements(); };
  const auto inside = [](ArrayRef<std::int64_t> shape, unsigned axis) {
    std::int64_t out = 1;
    for (const std::int64_t extent : shape.drop_front(axis + 1))
      out *= extent;
    return out;
  };
  for (Operation *op : ops)
    if (auto scan = dyn_cast<tile::ScanOp>(op))
      for (Value source : scan.getSources())
        left.push_back({source, inside(shapeOf(source.getType()), scan.getAxis())});
  std::map<Shape, unsigned> out;
  while (!left.empty()) {
    const auto [tile, within] = left.pop_back_val();
    Operation *op = tile.getDefiningOp();
    if (!op || !seen.insert(tile).second)
      continue;
    if (analysis::accessedTile(op)) {
      const Shape shape = shapeOf(tile.getType());
      for (unsigned d = 0; d < shape.size(); ++d)
        if (shape[d] > 1 && inside(shape, d) == within)
          out.try_emplace(shape, d);
    } else if (op->hasTrait<OpTrait::Elementwise>() || isa<tile::ReshapeOp>(op)) {
      for (Value operand : op->getOperands())
        if (isTile(operand) && elementsOf(operand.getType()) == elementsOf(tile.getType()))
          left.push_back({operand, within});
    }
  }
  return out;
}

/// Whether the tile is nothing but numbers that addresses of larger tiles are made of, such as pages that a
/// table lists.
static bool isOnlyForAddresses(Value tile) {
  llvm::SetVector<Value> made;
  made.insert(tile);
  const std::int64_t own = cast<RankedTensorType>(tile.getType()).getNumElements();
  bool isAddress = false;
  for (size_t i = 0; i < made.size(); ++i)
    for (Operation *user : made[i].getUsers()) {
      if (const Type accessed = analysis::accessedTile(user)) {
        const std::optional<tile::MemoryAccess> access = tile::globalAccessOf(user);
        if (access->memory != made[i] || cast<RankedTensorType>(accessed).getNumElements() <= own)
          return false;
        isAddress = true;
      } else if (isMemoryEffectFree(user) && user->getNumRegions() == 0 && user->getNumResults() == 1 &&
                 (user->hasTrait<OpTrait::Elementwise>() ||
                  isa<tile::AddPtrOp, tile::BroadcastOp, tile::ExpandDimsOp>(user))) {
        made.insert(user->getResult(0));
      } else {
        return false;
      }
    }
  return isAddress;
}

LogicalResult LayoutChoice::demandCoalesced() {
  const unsigned warps = tile_gpu::warpsOf(f).count;
  const std::map<Shape, unsigned> scanned = scannedDims();
  std::map<Shape, llvm::SmallVector<Access>> byShape;
  for (Operation *op : ops) {
    const Type tile = analysis::accessedTile(op);
    if (!tile)
      continue;
    if (const LayoutAttr given = tile_gpu::layoutAttrOf(tile)) {
      demands[op] = canonical(tile, given);
      continue;
    }
    // Each thread reads the numbers of its own addresses, so that none are exchanged.
    if (isa<tile::LoadOp>(op) && isOnlyForAddresses(op->getResult(0)))
      continue;
    const std::optional<analysis::AccessFacts> facts = axes.usualAccess(op);
    Type element = tile::elementTypeOf(tile);
    if (auto pointer = dyn_cast<tile::PtrType>(element))
      element = pointer.getPointee();
    const unsigned bits = tile::storageBits(element);
    const Shape shape = shapeOf(tile);
    std::vector<int64_t> contiguity(shape.size(), 1);
    std::int64_t alignment = 1;
    bool known = false;
    if (facts) {
      unsigned fastest = 0;
      for (unsigned d = 0; d < shape.size(); ++d) {
        contiguity[d] = facts->address.contiguity(d);
        if (contiguity[d] >= contiguity[fastest])
          fastest = d;
      }
      known = contiguity[fastest] > 1;
      // Elements that the mask may split gain nothing by sitting in one thread.
      alignment = std::int64_t(std::min(facts->address.divisibility(fastest), facts->mask.constancy(fastest)));
      if (isa<tile::AtomicRmwOp, tile::AtomicCasOp>(op))
        alignment = 1;
    }
    Result<layout::Blocked> layout =
        layout::coalesce(shape, contiguity, alignment * std::int64_t(bits / 8), bits, warps);
    if (!layout)
      return tile_gpu::report(op, layout.takeStatus());
    // Elements along a scan: what a thread has of them lies side by side, so that it adds them up by itself and one
    // number of each thread is exchanged.  Where a row is a line or more, a warp touches as many lines.
    if (const auto it = scanned.find(shape); it != scanned.end() && layout->order.front() != it->second) {
      const unsigned d = it->second;
      const std::int64_t parts = layout->sizePerThread[d] * layout->threadsPerWarp[d] * layout->warpsPerCTA[d];
      layout->sizePerThread[d] *= std::max<std::int64_t>(1, (shape[d] & -shape[d]) / parts);
    }
    byShape[shape].push_back({op, *layout, known, trafficOf(op, tile, bits)});
  }
  MLIRContext *context = f.getContext();
  for (auto &[shape, accesses] : byShape) {
    // The widest of each order; the order with most traffic is the shape's own.
    std::map<layout::Sizes, std::pair<const Access *, std::uint64_t>> byOrder;
    const bool anyKnown = llvm::any_of(accesses, [](const Access &a) { return a.known; });
    for (const Access &a : accesses) {
      if (anyKnown && !a.known)
        continue;
      auto &[widest, traffic] = byOrder[a.layout.order];
      const auto fastest = static_cast<std::size_t>(a.layout.order.front());
      if (!widest || a.layout.sizePerThread[fastest] > widest->layout.sizePerThread[fastest])
        widest = &a;
      traffic += a.traffic;
    }
    const auto *best = &*byOrder.begin();
    for (const auto &entry : byOrder)
      if (entry.second.second > best->second.second)
        best = &entry;
    for (const Access &a : accesses) {
      const layout::Blocked &shared =
          anyKnown && !a.known ? best->second.first->layout : byOrder[a.layout.order].first->layout;
      demands[a.op] = canonical(analysis::accessedTile(a.op), LayoutAttr::get(context, shared));
    }
    busiest[shape] = LayoutAttr::get(context, best->second.first->layout);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Flow
//===----------------------------------------------------------------------===//

bool LayoutChoice::forward(Operation *op, bool weak) {
  bool changed = false;
  if (auto it = carried.find(op); it != carried.end()) {
    for (const CarriedTile &tile : it->second) {
      LayoutAttr layout;
      for (Value v : tile.values)
        layout = layout ? layout : chosen.lookup(v);
      for (OpOperand *feed : tile.feeds)
        layout = layout ? layout : chosen.lookup(feed->get());
      if (layout)
        changed |= choose(tile.values.front(), layout);
    }
    return changed;
  }
  if (!llvm::any_of(op->getResults(), [&](Value v) { return isTile(v) && !chosen.contains(v); }))
    return false;
  LayoutAttr work = demands.lookup(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (work)
      break;
    const LayoutAttr layout = tile_gpu::isTied(operand) ? chosen.lookup(operand.get()) : LayoutAttr();
    if (layout && (weak || tile_gpu::carriesForward(operand, layout)))
      work = tile_gpu::workLayout(operand, layout).value_or(LayoutAttr());
  }
  // A tile of extent 1 does not tell how a large one should lie.
  if (work && isa<tile::BroadcastOp>(op) && isWasteful(op->getResult(0).getType(), work))
    return false;
  if (work)
    for (Value v : op->getResults())
      changed |= choose(v, work);
  return changed;
}

bool LayoutChoice::isWasteful(Type tile, LayoutAttr layout) {
  const Result<layout::TileLayout> lowered = tile_gpu::layoutOf(tile_gpu::withLayout(tile, layout));
  if (!lowered)
    return true;
  const std::int64_t threads = std::int64_t(layout::warpSize) * tile_gpu::warpsOf(f).count;
  const std::int64_t elements = cast<RankedTensorType>(tile).getNumElements();
  return lowered->registers() * threads > 2 * std::max(elements, threads);
}

bool LayoutChoice::producible(Value tile, LayoutAttr layout) {
  Operation *op = tile.getDefiningOp();
  if (!op || isGenerator(op))
    return true;
  for (OpOperand &operand : op->getOpOperands())
    if (tile_gpu::isTied(operand) && !tile_gpu::operandLayout(operand, layout))
      return false;
  return true;
}

bool LayoutChoice::backward(Operation *op) {
  bool changed = false;
  auto want = [&](Value v, LayoutAttr layout) {
    if (isTile(v) && !chosen.contains(v) && producible(v, layout))
      changed |= choose(v, layout);
  };
  if (auto it = carried.find(op); it != carried.end()) {
    for (const CarriedTile &tile : it->second)
      if (const LayoutAttr layout = chosen.lookup(tile.values.front()))
        for (OpOperand *feed : tile.feeds)
          want(feed->get(), layout);
    return changed;
  }
  LayoutAttr work = demands.lookup(op);
  for (Value v : op->getResults())
    work = work ? work : chosen.lookup(v);
  // What stores a tile, or takes several, may have no result: one operand decides for the others.
  if (!work && op->getNumResults() == 0)
    for (OpOperand &operand : op->getOpOperands())
      if (!work && tile_gpu::isTied(operand))
        work = chosen.lookup(operand.get());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!work || !tile_gpu::isTied(operand) || chosen.contains(operand.get()))
      continue;
    if (std::optional<LayoutAttr> layout = tile_gpu::operandLayout(operand, work))
      want(operand.get(), *layout);
  }
  return changed;
}

void LayoutChoice::flow(bool weak) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (Operation *op : ops)
      changed |= forward(op, weak);
    if (changed)
      continue;
    for (Operation *op : llvm::reverse(ops))
      changed |= backward(op);
  }
}

LogicalResult LayoutChoice::plain(Operation *op, Type tile, LayoutAttr &out) {
  const Shape shape = shapeOf(tile);
  LayoutAttr &known = busiest[shape];
  if (!known) {
    const std::vector<int64_t> contiguity(shape.size(), 1);
    Result<layout::Blocked> layout = layout::coalesce(shape, contiguity, 1, 8, tile_gpu::warpsOf(f).count);
    if (!layout)
      return tile_gpu::report(op, layout.takeStatus());
    known = LayoutAttr::get(f.getContext(), *layout);
  }
  out = known;
  return success();
}

LogicalResult LayoutChoice::chooseRest() {
  flow(false);
  flow(true);
  // Values that nothing reaches: one at a time, each may decide for others.
  for (const bool generators : {false, true})
    for (Operation *op : ops) {
      if (isGenerator(op) != generators)
        continue;
      llvm::SmallVector<Value> open;
      for (Value v : op->getResults())
        if (isTile(v) && !chosen.contains(v))
          open.push_back(v);
      if (auto it = carried.find(op); it != carried.end())
        for (const CarriedTile &tile : it->second)
          if (!chosen.contains(tile.values.front()))
            open.push_back(tile.values.front());
      for (Value v : open) {
        LayoutAttr layout;
        if (failed(plain(op, v.getType(), layout)))
          return failure();
        if (choose(v, layout))
          flow(true);
      }
    }
  return success();
}

LogicalResult LayoutChoice::check() {
  for (Operation *op : ops)
    for (Value v : op->getResults()) {
      if (!isTile(v))
        continue;
      const Status status =
          tile_gpu::checkPlaces(tile_gpu::withLayout(v.getType(), chosen[v]), tile_gpu::warpsOf(f).count);
      if (!status.ok())
        return tile_gpu::report(op, status);
    }
  return success();
}

LogicalResult LayoutChoice::run() {
  if (failed(collect()) || failed(demandCoalesced()) || failed(chooseRest()))
    return failure();
  return check();
}

} // namespace kiln
