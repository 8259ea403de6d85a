#include "compiler/passes/pipelines/DelayedSums.h"

#include "compiler/analysis/PointerRoots.h"
#include "compiler/passes/pipelines/PipelinedLoops.h"
#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

class DelayedSums {
public:
  explicit DelayedSums(scf::ForOp loop) : loop(loop), rewriter(loop.getContext()) {}

  bool find() {
    if (tile::numStages(loop) < 2)
      return false;
    for (tile::DotOp dot : loop.getBody()->getOps<tile::DotOp>()) {
      if (!first)
        first = dot;
      else if (goesOut(dot) && othersOnlyRead())
        return second;
      else if (!second)
        second = dot;
    }
    return false;
  }

  void run() {
    const Location loc = product.getLoc();
    const unsigned added = loop.getNumRegionIterArgs();
    rewriter.setInsertionPoint(loop);
    llvm::SmallVector<Value> inits = {zeroOf(left), loop.getLowerBound()};
    for (Value v : scalars)
      inits.push_back(zeroOf(v));
    if (ordered)
      inits.push_back(loop.getLowerBound());
    loop = carryAlso(rewriter, loop, inits);
    Operation *end = loop.getBody()->getTerminator();
    end->setOperand(added, left);
    end->setOperand(added + 1, loop.getInductionVar());
    for (auto [i, v] : llvm::enumerate(scalars))
      end->setOperand(added + 2 + i, v);
    const auto value = [&](unsigned i) { return loop.getRegionIterArg(added + i); };
    if (ordered)
      end->setOperand(added + 2, value(1));

    rewriter.setInsertionPointAfter(first);
    IRMapping map = multiply(ValueRange(loop.getRegionIterArgs()).drop_front(added));
    if (ordered)
      count(value(1), value(2), /*goesOn=*/true);
    rewriter.setInsertionPoint(second);
    const Value before =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, loop.getInductionVar(), loop.getLowerBound());
    addUp(map, before);

    rewriter.setInsertionPointAfter(loop);
    map = multiply(ValueRange(loop.getResults()).drop_front(added));
    const Value any = arith::CmpIOp::create(
        rewriter, loc, loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt,
        loop.getLowerBound(), loop.getUpperBound());
    if (ordered)
      count(loop.getResult(added + 1), loop.getResult(added + 2), /*goesOn=*/false);
    addUp(map, any);
    if (ordered)
      countOf(loop.getResult(added + 1), any, {});

    for (Operation *op : llvm::reverse(late))
      rewriter.eraseOp(op);
    rewriter.eraseOp(product);
    (void)runRegionDCE(rewriter, loop->getParentOp()->getRegions());
  }

private:
  bool isInside(Operation *op) { return op && op->getBlock() == loop.getBody(); }

  bool comesFromOutside(Value v) { return !loop->isAncestor(v.getParentRegion()->getParentOp()); }

  /// Memory gets the product and what is made of it, and nobody else.
  bool goesOut(tile::DotOp dot) {
    if (!readsShared(dot) || readsRegisters(dot) || !comesFromOutside(viewedTile(dot.getRhs()).first) ||
        !comesFromOutside(dot.getAccumulator()))
      return false;
    product = dot;
    left = viewedTile(dot.getLhs()).first;
    ordered = {}, late.clear(), atomics.clear(), again.clear(), scalars.clear();
    if (!isInside(left.getDefiningOp()))
      return false;
    llvm::DenseSet<Operation *> users(dot->user_begin(), dot->user_end());
    for (Operation *op = dot->getNextNode(); op; op = op->getNextNode()) {
      if (!users.contains(op))
        continue;
      users.erase(op);
      if (auto atomic = dyn_cast<tile::AtomicRmwOp>(op)) {
        if (atomic.getOrder() != tile::Order::Relaxed || !atomic.getResult().use_empty())
          return false;
        atomics.push_back(atomic);
        if (atomic.getCounter())
          ordered = atomic;
      } else if (op->hasTrait<OpTrait::IsTerminator>() || op->getNumRegions() || isa<tile::DotOp>(op) ||
                 !isMemoryEffectFree(op)) {
        return false;
      }
      users.insert(op->user_begin(), op->user_end());
      late.push_back(op);
    }
    if (!users.empty() || atomics.empty()) // used in a region
      return false;
    for (Value operand : {dot.getLhs(), dot.getRhs()})
      if (!computeAgain(operand))
        return false;
    for (Operation *op : late)
      for (Value operand : op->getOperands())
        if (!computeAgain(operand))
          return false;
    // What is counted two rounds later, and waited for in the round itself, follows from the counter alone.
    return !ordered || (atomics.size() == 1 && scalars.empty());
  }

  /// What it follows from is computed again a round later, or, if it is a scalar that is not computed, carried.
  bool computeAgain(Value v) {
    if (v == left || v == product.getResult() || v == loop.getInductionVar() || comesFromOutside(v))
      return true;
    Operation *def = v.getDefiningOp();
    if (isInside(def) && (again.contains(def) || llvm::is_contained(late, def)))
      return true;
    const bool isComputed = isInside(def) && !def->getNumRegions() && !isa<tile::DotOp>(def) && isMemoryEffectFree(def);
    if (isComputed && llvm::all_of(def->getOperands(), [&](Value operand) { return computeAgain(operand); })) {
      again.insert(def); // after what it follows from
      return true;
    }
    return v.getType().isIntOrIndexOrFloat() && scalars.insert(v);
  }

  /// Nothing else in the loop touches what the sums go to, nor orders anything.
  bool othersOnlyRead() {
    const analysis::PointerRoots roots(loop->getParentOfType<func::FuncOp>());
    analysis::Roots written;
    for (tile::AtomicRmwOp atomic : atomics)
      written.add(roots.of(atomic.getPointer()));
    return !loop->walk([&](Operation *op) {
                  if (auto atomic = dyn_cast<tile::AtomicRmwOp>(op); atomic && llvm::is_contained(atomics, atomic))
                    return WalkResult::advance();
                  if (!onlyReads(op))
                    return op->getNumRegions() ? WalkResult::advance() : WalkResult::interrupt();
                  for (const tile::MemoryAccess &access : tile::accessesOf(op))
                    if (!access.memory || analysis::mayOverlap(roots.of(access.memory), written))
                      return WalkResult::interrupt();
                  return WalkResult::advance();
                })
                .wasInterrupted();
  }

  Value zeroOf(Value v) { return arith::ConstantOp::create(rewriter, v.getLoc(), rewriter.getZeroAttr(v.getType())); }

  /// The product of the round that gave these: the left tile, the counter and the scalars.
  IRMapping multiply(ValueRange round) {
    IRMapping map;
    map.map(left, round[0]);
    map.map(loop.getInductionVar(), round[1]);
    map.map(ValueRange(scalars.getArrayRef()), round.drop_front(2));
    for (Value operand : {product.getLhs(), product.getRhs()})
      repeat(operand, map);
    rewriter.clone(*product, map);
    return map;
  }

  void addUp(IRMapping &map, Value exists) {
    for (Operation *op : late) {
      for (Value operand : op->getOperands())
        repeat(operand, map);
      Operation *copy = rewriter.clone(*op, map);
      auto atomic = dyn_cast<tile::AtomicRmwOp>(copy);
      if (!atomic)
        continue;
      rewriter.setInsertionPoint(copy);
      Value mask = exists;
      if (const auto pointers = dyn_cast<RankedTensorType>(atomic.getPointer().getType()))
        mask = tile::SplatOp::create(
            rewriter, op->getLoc(),
            RankedTensorType::get(pointers.getShape(), rewriter.getI1Type(), pointers.getEncoding()), exists);
      if (atomic.getMask())
        mask = arith::AndIOp::create(rewriter, op->getLoc(), atomic.getMask(), mask);
      atomic.getMaskMutable().assign(mask);
      atomic.getCounterMutable().clear();
      atomic.getBeforeMutable().clear();
      rewriter.setInsertionPointAfter(copy);
    }
  }

  /// In the round after `last`, or after the loop: what was added in that one, the sums of the round before it,
  /// `counted`, is counted; there is none if it was the first.  This round's sums are waited for, whose time comes in
  /// the next one: by then all threads have met, since that one counts, too.
  void count(Value last, Value counted, bool goesOn) {
    const Location loc = product.getLoc();
    const Value is = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, last, loop.getLowerBound());
    IRMapping now;
    if (goesOn)
      for (Value operand : {Value(ordered.getBefore()), Value(ordered.getCounter())})
        repeat(operand, now);
    countOf(counted, is, goesOn ? std::optional(std::move(now)) : std::nullopt);
  }

  /// The sums of the round `of`, if `is`; and waits for those whose values `next` maps.
  void countOf(Value of, Value is, const std::optional<IRMapping> &next) {
    IRMapping map;
    map.map(loop.getInductionVar(), of);
    for (Value operand : {Value(ordered.getCounter()), Value(ordered.getPointer())})
      repeat(operand, map);
    CountOp::create(rewriter, product.getLoc(), map.lookupOrDefault(ordered.getCounter()), is,
                    next ? next->lookupOrDefault(ordered.getBefore()) : Value(),
                    next ? next->lookupOrDefault(ordered.getCounter()) : Value(),
                    map.lookupOrDefault(ordered.getPointer()));
  }

  void repeat(Value v, IRMapping &map) {
    Operation *def = v.getDefiningOp();
    if (map.contains(v) || !again.contains(def))
      return;
    for (Value operand : def->getOperands())
      repeat(operand, map);
    rewriter.clone(*def, map);
  }

  scf::ForOp loop;
  IRRewriter rewriter;
  tile::DotOp first, second; ///< before the second one memory gets the sums: their registers are its
  tile::DotOp product;
  Value left;                                   ///< that the product reads, past views
  llvm::SmallVector<Operation *> late;          ///< what follows from the product, in program order
  llvm::SmallVector<tile::AtomicRmwOp> atomics; ///< of these
  tile::AtomicRmwOp ordered;                    ///< of these: after other programs
  llvm::SetVector<Operation *> again;           ///< computed a round later, too
  llvm::SetVector<Value> scalars;               ///< carried
};

} // namespace

bool delaySums(scf::ForOp loop) {
  DelayedSums sums(loop);
  if (!sums.find())
    return false;
  sums.run();
  return true;
}

} // namespace kiln
