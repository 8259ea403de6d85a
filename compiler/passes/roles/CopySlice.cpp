#include "compiler/passes/roles/CopySlice.h"

#include "compiler/analysis/PointerRoots.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

bool isBlockBarrier(Operation *op) {
  const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op);
  return ordering && ordering->among == tile::MemoryOrdering::Among::Block && !ordering->threads;
}

/// What it loads is the same at every time: the kernel writes nowhere, or its arguments are nobody else's.
bool staysAsItIs(Operation *load) {
  if (analysis::mayBeWritten(load))
    return false;
  auto kernel = load->getParentOfType<func::FuncOp>();
  const analysis::PointerRoots roots(kernel);
  const auto isAlone = [&](Value argument) {
    return kernel.getArgAttr(cast<BlockArgument>(argument).getArgNumber(), tile::noaliasAttr) != nullptr;
  };
  const bool alone = llvm::all_of(tile::accessesOf(load), [&](const tile::MemoryAccess &access) {
    return access.memory && llvm::all_of(roots.of(access.memory).arguments, isAlone);
  });
  return alone || !kernel
                       ->walk([](Operation *op) {
                         return llvm::any_of(tile::accessesOf(op),
                                             [](const tile::MemoryAccess &access) {
                                               return access.in<tile::GlobalMemory>() && access.writes;
                                             })
                                    ? WalkResult::interrupt()
                                    : WalkResult::advance();
                       })
                       .wasInterrupted();
}

/// Warps that copy meet the others before it and after it; some may sleep besides.
bool readsBetweenBarriers(Operation *op) {
  const auto isBarrier = [](Operation *other, auto next) {
    while (isa_and_nonnull<DelayOp>(other))
      other = next(other);
    return isa_and_nonnull<BarrierOp>(other);
  };
  return isa<LocalScalarOp>(op) &&
         isBarrier(op->getPrevNode(), [](Operation *other) { return other->getPrevNode(); }) &&
         isBarrier(op->getNextNode(), [](Operation *other) { return other->getNextNode(); });
}

/// Each thread can do it, whatever the others do and whenever: what it loads nobody writes.
bool isScalar(Operation *op) {
  if (readsBetweenBarriers(op))
    return true;
  const auto isTile = [](Type type) { return isa<ShapedType>(type); };
  if (op->getNumRegions() || llvm::any_of(op->getOperandTypes(), isTile) ||
      llvm::any_of(op->getResultTypes(), isTile) || tile::orderingOf(op))
    return false;
  const tile::MemoryAccesses accesses = tile::accessesOf(op);
  const bool loads = llvm::all_of(accesses, [](const tile::MemoryAccess &access) {
    return access.in<tile::GlobalMemory>() && !access.writes && !access.atomic && !access.inFlight;
  });
  return loads && (accesses.empty() || staysAsItIs(op));
}

} // namespace

CopySlice::CopySlice(func::FuncOp kernel) : kernel(kernel) {
  const WalkResult structured = kernel.walk([&](Region *region) {
    if (region->getBlocks().size() <= 1)
      return WalkResult::advance();
    hindrance = region->getParentOp();
    return WalkResult::interrupt();
  });
  if (structured.wasInterrupted())
    return;
  llvm::SmallVector<DelayOp> delays;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto delay = dyn_cast<DelayOp>(op))
      delays.push_back(delay);
    if (auto one = dyn_cast<ElectedOp>(op)) {
      operations.insert(op);
      needAround(op);
      op->walk([&](Operation *inner) {
        for (Value v : inner->getOperands())
          if (!op->isAncestor(v.getParentRegion()->getParentOp()))
            need(v);
      });
      return WalkResult::skip();
    }
    if (isBlockBarrier(op)) {
      operations.insert(op);
      needAround(op);
    }
    return WalkResult::advance();
  });
  while (!work.empty() && !hindrance) {
    const Value v = work.pop_back_val();
    auto argument = dyn_cast<BlockArgument>(v);
    Operation *op = argument ? argument.getOwner()->getParentOp() : v.getDefiningOp();
    if (op == kernel)
      continue;
    need(op);
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (v == loop.getInductionVar())
        continue;
      const unsigned i = argument ? argument.getArgNumber() - 1 : cast<OpResult>(v).getResultNumber();
      for (const Value all : {Value(loop.getResult(i)), Value(loop.getRegionIterArg(i)), loop.getInitArgs()[i],
                              loop.getYieldedValues()[i]})
        need(all);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      const unsigned i = cast<OpResult>(v).getResultNumber();
      need(branch.thenYield().getOperand(i));
      need(branch.elseYield().getOperand(i));
    }
  }
  for (DelayOp delay : delays) // where the warps that copy come by
    if (Operation *around = delay->getParentOp(); around == kernel || operations.contains(around))
      operations.insert(delay);
}

void CopySlice::need(Value v) {
  if (values.insert(v).second)
    work.push_back(v);
}

void CopySlice::need(Operation *op) {
  if (!operations.insert(op).second)
    return;
  needAround(op);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (const Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      need(bound);
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    need(branch.getCondition());
  } else if (!isScalar(op)) {
    hindrance = op;
  } else {
    for (const Value v : op->getOperands())
      need(v);
  }
}

void CopySlice::needAround(Operation *op) {
  if (Operation *parent = op->getParentOp(); parent != kernel)
    need(parent);
}

void CopySlice::cloneTo(OpBuilder &b) const {
  IRMapping map;
  clone(const_cast<func::FuncOp &>(kernel).getBody().front(), b, map);
}

void CopySlice::clone(Block &from, OpBuilder &b, IRMapping &map) const {
  const auto mapped = [&](ValueRange all, auto isKept) {
    llvm::SmallVector<Value> out;
    for (auto [i, v] : llvm::enumerate(all))
      if (isKept(i))
        out.push_back(map.lookupOrDefault(v));
    return out;
  };
  for (Operation &op : from) {
    if (!operations.contains(&op))
      continue;
    const auto isKept = [&](size_t i) { return isNeeded(op.getResult(static_cast<unsigned>(i))); };
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      auto made = scf::ForOp::create(b, loop.getLoc(), map.lookupOrDefault(loop.getLowerBound()),
                                     map.lookupOrDefault(loop.getUpperBound()), map.lookupOrDefault(loop.getStep()),
                                     mapped(loop.getInitArgs(), isKept), nullptr, loop.getUnsignedCmp());
      map.map(loop.getInductionVar(), made.getInductionVar());
      for (unsigned i = 0, k = 0; i < loop.getNumResults(); ++i)
        if (isKept(i)) {
          map.map(loop.getRegionIterArg(i), made.getRegionIterArg(k));
          map.map(loop.getResult(i), made.getResult(k++));
        }
      OpBuilder::InsertionGuard guard(b);
      if (!made.getBody()->empty()) // without values to carry it ends by itself
        made.getBody()->back().erase();
      b.setInsertionPointToEnd(made.getBody());
      clone(*loop.getBody(), b, map);
      scf::YieldOp::create(b, loop.getLoc(), mapped(loop.getYieldedValues(), isKept));
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      llvm::SmallVector<Type> types;
      for (unsigned i = 0; i < branch.getNumResults(); ++i)
        if (isKept(i))
          types.push_back(branch.getResult(i).getType());
      auto made = scf::IfOp::create(b, branch.getLoc(), types, map.lookupOrDefault(branch.getCondition()),
                                    /*addThenBlock=*/true, /*addElseBlock=*/branch.elseBlock() != nullptr);
      for (auto [own, its] : llvm::zip_equal(made->getRegions(), branch->getRegions())) {
        if (its.empty())
          continue;
        OpBuilder::InsertionGuard guard(b);
        if (!own.front().empty())
          own.front().back().erase();
        b.setInsertionPointToEnd(&own.front());
        clone(its.front(), b, map);
        scf::YieldOp::create(b, branch.getLoc(), mapped(its.front().getTerminator()->getOperands(), isKept));
      }
      for (unsigned i = 0, k = 0; i < branch.getNumResults(); ++i)
        if (isKept(i))
          map.map(branch.getResult(i), made.getResult(k++));
    } else {
      b.clone(op, map);
    }
  }
}

} // namespace kiln
