// Products of warpgroups read both operands from shared memory: where they lie there, and when they get there.
#include "compiler/passes/pipelines/PipelinedLoops.h"
#include "compiler/passes/pipelines/TensorCopies.h"
#include "compiler/passes/shared/SharedBuffers.h"
#include "compiler/passes/shared/SharedExpansion.h"
#include "compiler/passes/shared/WarpgroupOperands.h"

#include "compiler/layout/LocalAccess.h"
#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

/// Products of one block that read one tile from one buffer.
struct Shared {
  Value tile;
  llvm::SmallVector<WarpgroupOperand> uses;
};

int64_t bytesOf(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getElementTypeBitWidth() / 8;
}

/// What storing the tile costs; nothing if it cannot be stored so.
std::optional<double> costOf(Value tile, BufferType buffer, const Target &target) {
  const Result<layout::SharedTile> lowered = buffer.lowered();
  const Result<layout::TileLayout> distributed = layoutOf(tile.getType());
  if (!lowered || !distributed)
    return std::nullopt;
  const Result<layout::LocalAccessPlan> plan =
      layout::planLocalAccess(distributed->core(), lowered->core(), planBits(tile.getType()), target, true);
  return plan ? std::optional(plan->cost) : std::nullopt;
}

/// A load, or what is computed element by element from one load alone: storing it at once would wait for the memory.
bool isLoaded(Value tile) {
  for (Operation *op = tile.getDefiningOp(); op; op = op->getOperand(0).getDefiningOp()) {
    if (isa<tile::LoadOp, tile::LoadViewOp>(op))
      return true;
    if (op->getNumOperands() != 1 || !isMemoryEffectFree(op))
      return false;
  }
  return false;
}

/// They are slots of one pipeline, by numbers that differ, or of different buffers.
bool areApart(Value a, Value b) {
  auto one = a.getDefiningOp<LocalSubviewOp>(), other = b.getDefiningOp<LocalSubviewOp>();
  if (one && other && one.getBuffer() == other.getBuffer())
    return one.getIndex() != other.getIndex();
  const auto alloc = [](Value v, LocalSubviewOp view) {
    return (view ? view.getBuffer() : v).getDefiningOp<LocalAllocOp>();
  };
  const LocalAllocOp first = alloc(a, one), second = alloc(b, other);
  return first && second && first != second;
}

/// Nothing may write to the buffer between the read and these products: copies of a pipeline go to other slots, and
/// its waits come before the read.
bool isKeptUntil(LocalLoadOp load, llvm::ArrayRef<WarpgroupOperand> operands) {
  const auto mayWrite = [&](Operation *op) {
    if (const auto ordering = tile::orderingOf(op); ordering && (ordering->meets() || ordering->awaits))
      return true;
    return llvm::any_of(tile::accessesOf(op), [&](const tile::MemoryAccess &access) {
      return access.in<SharedMemory>() && access.writes &&
             !(access.memory && areApart(access.memory, load.getBuffer()));
    });
  };
  for (const WarpgroupOperand &operand : operands) {
    Operation *product = operand.dot;
    if (product->getBlock() != load->getBlock())
      return false;
    for (Operation *op = load->getNextNode(); op != product; op = op->getNextNode()) {
      if (!op)
        return false;
      const WalkResult walked =
          op->walk([&](Operation *inner) { return mayWrite(inner) ? WalkResult::interrupt() : WalkResult::advance(); });
      if (walked.wasInterrupted())
        return false;
    }
  }
  return true;
}

/// The buffer that the tile was read from, if products can read it there: pipeline-loops chose it for them.
Value bufferInPlace(Shared &shared) {
  auto load = shared.tile.getDefiningOp<LocalLoadOp>();
  // Threads that read the slot, too, give it back when they have.
  if (!load || load->hasAttr(readByThreads) || !warpgroupOperands(load.getResult()))
    return {};
  const BufferType is = load.getBuffer().getType();
  const auto *tma = std::get_if<layout::Tma>(&cast<SharedLayoutAttr>(is.getLayout()).encoding().kind);
  if (!tma || tma->order.empty())
    return {};
  const BufferType wanted = warpgroupBuffer(cast<RankedTensorType>(shared.tile.getType()), shared.uses,
                                            static_cast<unsigned>(tma->order[0]), is.getName());
  const bool kept = load->hasAttr(heldForProducts) || isKeptUntil(load, shared.uses);
  return wanted == is && kept ? load.getBuffer() : Value();
}

bool isZero(Value tile) {
  if (auto splat = tile.getDefiningOp<tile::SplatOp>())
    tile = splat.getSource();
  return matchPattern(tile, m_AnyZeroFloat());
}

/// When operands go to shared memory; the later, the fewer bytes are alive at once.
enum class Storing {
  InTurn, ///< as Early; those that rounds of a loop with stages compute in one of two buffers in turn, so that warps
          ///< write the next one while others read
  Early,  ///< when they are computed: their registers are free at once
  Late,   ///< before the first product that reads them
  Each,   ///< before each product, on its own
};

class Expander {
public:
  Expander(func::FuncOp f, const Target &target, Storing storing) : target(target), storing(storing) {
    f.walk([&](tile::DotOp dot) {
      if (readsShared(dot))
        dots.push_back(dot);
    });
  }

  LogicalResult run() {
    const auto isInRegisters = [](tile::DotOp dot, unsigned number) { return number == 0 && readsRegisters(dot); };
    for (tile::DotOp dot : dots)
      for (const unsigned number : {0u, 1u})
        if (!isInRegisters(dot, number))
          carryInBuffers(dot, number);
    for (tile::DotOp dot : dots)
      for (const unsigned number : {0u, 1u}) {
        if (operands.contains({dot, number}))
          continue;
        if (isInRegisters(dot, number)) {
          operands[{dot, number}] = dot.getLhs();
          continue;
        }
        const auto [tile, turned] = viewedTile(dot->getOperand(number));
        const WarpgroupOperand use{dot, number, turned};
        const unsigned inner = onlyInner(tile, use);
        const void *where =
            storing == Storing::Each ? static_cast<const void *>(dot) : beforeLoops(tile, dot)->getBlock();
        Shared &shared = groups[{tile, {where, inner}}];
        shared.tile = tile;
        shared.uses.push_back(use);
      }
    for (auto &[key, shared] : groups)
      if (failed(store(shared, key.second.second)))
        return failure();
    for (tile::DotOp dot : dots) {
      OpBuilder b(dot);
      const bool overtaken = dot->hasAttr(overlappedProduct) && addsToCarriedSums(dot) && inPlace.contains({dot, 0}) &&
                             inPlace.contains({dot, 1});
      auto product = WarpgroupDotOp::create(b, dot.getLoc(), dot.getType(), operands[{dot, 0}], operands[{dot, 1}],
                                            dot.getAccumulator(), isZero(dot.getAccumulator()));
      dot.replaceAllUsesWith(product.getResult());
      dot.erase();
      if (overtaken)
        overlap(cast<scf::ForOp>(product->getParentOp()), product);
      else
        products.push_back(product);
    }
    for (WarpgroupDotOp product : llvm::reverse(products)) // later ones are in flight or not by then
      waitLate(product);
    for (Operation *load : read)
      erase(load);
    return success();
  }

private:
  /// The dimension that lies innermost; 2: either, since elements of 16 bits may lie with K apart.
  static unsigned onlyInner(Value tile, const WarpgroupOperand &use) { return bytesOf(tile) == 2 ? 2 : use.k(); }

  BufferType cheapestBuffer(Value tile, llvm::ArrayRef<WarpgroupOperand> uses, unsigned inner) const {
    BufferType type;
    double best = 0;
    for (const unsigned i : {1u, 0u})
      if (inner == 2 || inner == i) {
        const BufferType candidate = warpgroupBuffer(cast<RankedTensorType>(tile.getType()), uses, i);
        const std::optional<double> cost = candidate ? costOf(tile, candidate, target) : std::nullopt;
        if (cost && (!type || *cost < best))
          type = candidate, best = *cost;
      }
    return type;
  }

  LogicalResult store(Shared &shared, unsigned inner) {
    if (const Value buffer = bufferInPlace(shared)) {
      Operation *load = shared.tile.getDefiningOp();
      OpBuilder b(load);
      b.setInsertionPointAfter(load);
      readFrom(shared, buffer, b);
      for (const WarpgroupOperand &use : shared.uses)
        inPlace.insert({use.dot, use.number});
      read.insert(load);
      return success();
    }
    const BufferType type = cheapestBuffer(shared.tile, shared.uses, inner);
    Operation *first = shared.uses.front().dot;
    if (!type)
      return first->emitError() << "no buffer of shared memory for the operand " << shared.tile.getType()
                                << " of a product of warpgroups";
    OpBuilder b(beforeLoops(shared.tile, first));
    if (fetch(shared, inner, b))
      return success();
    Operation *def = shared.tile.getDefiningOp();
    const bool isEarly = storing == Storing::InTurn || storing == Storing::Early;
    const bool isComputed = def && def->getBlock() == first->getBlock() && !isLoaded(shared.tile);
    if (isEarly && isComputed)
      b.setInsertionPointAfter(def);
    auto loop = dyn_cast<scf::ForOp>(first->getParentOp());
    const bool inTurn = storing == Storing::InTurn && isComputed && loop && tile::numStages(loop) > 1;
    Value buffer;
    if (inTurn) {
      const auto [both, which] = twoInTurn(loop, type);
      b.setInsertionPointAfter(def); // the loop is another one now
      buffer = LocalSubviewOp::create(b, first->getLoc(), type, both, which);
    } else {
      buffer = LocalAllocOp::create(b, first->getLoc(), type, IntegerAttr());
    }
    LocalStoreOp::create(b, first->getLoc(), shared.tile, buffer);
    readFrom(shared, buffer, b);
    return success();
  }

  static Value number(OpBuilder &b, Location loc, int64_t v) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(v)));
  }
  /// The number of the other of two buffers.
  static Value otherOf(OpBuilder &b, Location loc, Value which) {
    const Value up = arith::AddIOp::create(b, loc, which, number(b, loc, 1));
    const Value isPast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, up, number(b, loc, 2));
    return arith::SelectOp::create(b, loc, isPast, number(b, loc, 0), up);
  }

  /// Two buffers that the loop's rounds take in turn, and in a round the number of its own.
  std::pair<Value, Value> twoInTurn(scf::ForOp loop, BufferType type) {
    IRRewriter rewriter(loop);
    const Location loc = loop.getLoc();
    const Value both = LocalAllocOp::create(rewriter, loc, type.withCount(2), IntegerAttr());
    const unsigned added = loop.getNumRegionIterArgs();
    loop = carryAlso(rewriter, loop, {number(rewriter, loc, 0)});
    const Value which = loop.getRegionIterArg(added);
    Operation *end = loop.getBody()->getTerminator();
    rewriter.setInsertionPoint(end);
    end->setOperand(added, otherOf(rewriter, loc, which));
    return {both, which};
  }

  /// A tile that the loop around the product carries, for it and for products after the loop: rounds make it in one of
  /// two buffers in turn, while the product reads the other.
  void carryInBuffers(tile::DotOp dot, unsigned operand) {
    const auto carried = dyn_cast<BlockArgument>(viewedTile(dot->getOperand(operand)).first);
    auto loop = carried ? dyn_cast<scf::ForOp>(carried.getOwner()->getParentOp()) : scf::ForOp();
    if (!loop || dot->getBlock() != loop.getBody() || carried == loop.getInductionVar())
      return;
    const unsigned place = carried.getArgNumber() - loop.getNumInductionVars();
    Value made = loop.getYieldedValues()[place], result = loop.getResult(place);
    const auto inLoop = warpgroupOperands(carried), after = warpgroupOperands(result);
    if (!inLoop || inLoop->size() != 1 || (!after && !result.use_empty()) || made.getParentBlock() != loop.getBody() ||
        isa<BlockArgument>(made))
      return;
    llvm::SmallVector<WarpgroupOperand> uses = *inLoop;
    if (after)
      uses.append(*after);
    // The two buffers serve all of them.
    const BufferType type = cheapestBuffer(made, uses, onlyInner(made, uses.front()));
    if (!type)
      return;
    IRRewriter rewriter(loop);
    const Location loc = loop.getLoc();
    const auto view = [&](Value all, Value which) -> Value {
      return LocalSubviewOp::create(rewriter, loc, type, all, which);
    };
    const Value both = LocalAllocOp::create(rewriter, loc, type.withCount(2), IntegerAttr()),
                first = number(rewriter, loc, 0);
    LocalStoreOp::create(rewriter, loc, loop.getInitArgs()[place], view(both, first));
    const unsigned added = loop.getNumRegionIterArgs();
    loop = carryAlso(rewriter, loop, {first});
    const Value which = loop.getRegionIterArg(added);
    rewriter.setInsertionPoint(dot);
    readFrom({loop.getRegionIterArg(place), *inLoop}, view(both, which), rewriter);
    rewriter.setInsertionPointAfter(made.getDefiningOp());
    const Value other = otherOf(rewriter, loc, which);
    LocalStoreOp::create(rewriter, loc, made, view(both, other));
    Operation *end = loop.getBody()->getTerminator();
    end->setOperand(place, loop.getRegionIterArg(place)); // nobody looks at it any more
    end->setOperand(added, other);
    if (after) {
      rewriter.setInsertionPointAfter(loop);
      readFrom({loop.getResult(place), *after}, view(both, loop.getResult(added)), rewriter);
    }
  }

  /// A tile that is loaded once, for these products alone, is copied to its buffer by the copy engine, if that can:
  /// from the load on, until `b`.
  bool fetch(Shared &shared, unsigned inner, OpBuilder &b) {
    auto load = shared.tile.getDefiningOp<tile::LoadViewOp>();
    const auto all = load && storing != Storing::Each ? warpgroupOperands(shared.tile) : std::nullopt;
    if (!all || all->size() != shared.uses.size() || load->getParentOfType<LoopLikeOpInterface>() ||
        load.getCache() == tile::Cache::Volatile || !target.has(Capability::Tma) || !hasStagedLoop(load))
      return false;
    if (!facts)
      facts.emplace(load->getParentOfType<func::FuncOp>());
    const auto own = load.getView().getType().getUnit();
    if (own == tile::ViewType::noUnit || (inner != 2 && own != inner))
      return false;
    const BufferType type =
        warpgroupBuffer(cast<RankedTensorType>(shared.tile.getType()), shared.uses, static_cast<unsigned>(own));
    const Result<TensorCopy> copy =
        type ? tensorCopyOf(load, type, *facts, target) : Result<TensorCopy>(Status::invalid(""));
    if (!copy)
      return false;
    const Location loc = load.getLoc();
    OpBuilder at(load);
    // Where it is waited for on every path.  The kernel writes to other arguments only; others may write to this one
    // once they have been told to.
    Operation *to = &*b.getInsertionPoint();
    if (Block *block = b.getInsertionBlock(); block != load->getBlock()) {
      auto branch = dyn_cast<scf::IfOp>(block->getParentOp());
      if (!branch || branch->getBlock() != load->getBlock() || tellsOthers(&block->front(), to))
        return false;
      for (Operation *op = load->getNextNode(); op != branch; op = op->getNextNode())
        if (!onlyReads(op))
          return false;
      at.setInsertionPointToStart(block);
    } else if (tellsOthers(load, to)) {
      return false;
    }
    const Value buffer = LocalAllocOp::create(at, loc, type, IntegerAttr());
    const Value full =
        LocalAllocOp::create(at, loc, MbarriersType::get(load.getContext(), 1), IntegerAttr(), /*alone=*/true);
    const Value zero = arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(0));
    auto elected = ElectedOp::create(at, loc);
    at.createBlock(&elected.getBody());
    MbarrierInitOp::create(at, loc, full, 1);
    copy->create(at, load, buffer, IRMapping(), full, zero);
    MbarrierArriveOp::create(at, loc, full, zero, zero);
    MbarrierWaitOp::create(b, loc, full, zero, zero, buffer);
    readFrom(shared, buffer, b);
    read.insert(load);
    return true;
  }

  /// There is an atomic operation from `op` on, before `to`.
  static bool tellsOthers(Operation *op, Operation *to) {
    for (; op != to; op = op->getNextNode())
      if (op->walk([](Operation *inner) {
              return llvm::any_of(tile::accessesOf(inner), [](const tile::MemoryAccess &a) { return a.atomic; })
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            }).wasInterrupted())
        return true;
    return false;
  }

  /// Other kernels have loads enough in flight without.
  static bool hasStagedLoop(Operation *op) {
    return op->getParentOfType<func::FuncOp>()
        ->walk(
            [](scf::ForOp loop) { return tile::numStages(loop) > 1 ? WalkResult::interrupt() : WalkResult::advance(); })
        .wasInterrupted();
  }

  /// A tile from outside of loops with stages is stored once before them; else `first`.
  Operation *beforeLoops(Value tile, Operation *first) const {
    Operation *at = first;
    if (storing != Storing::Each)
      for (auto loop = first->getParentOfType<scf::ForOp>();
           loop && tile::numStages(loop) > 1 && !loop->isAncestor(tile.getParentRegion()->getParentOp());
           loop = loop->getParentOfType<scf::ForOp>())
        at = loop;
    return at;
  }

  /// The operands of all uses, where `b` is.
  void readFrom(const Shared &shared, Value buffer, OpBuilder &b) {
    const auto type = cast<BufferType>(buffer.getType());
    Value turned;
    for (const WarpgroupOperand &use : shared.uses) {
      if (use.turned && !turned) {
        const auto tma = std::get<layout::Tma>(cast<SharedLayoutAttr>(type.getLayout()).encoding().kind);
        const layout::Tma other{tma.swizzle, {1 - tma.order[0], tma.order[0]}};
        turned = LocalTransposeOp::create(
            b, shared.uses.front().dot->getLoc(),
            BufferType::get(type.getContext(), 1, {type.getShape()[1], type.getShape()[0]}, type.getElementType(),
                            SharedLayoutAttr::get(type.getContext(), other), type.getName()),
            buffer, b.getDenseI64ArrayAttr({1, 0}));
      }
      operands[{use.dot, use.number}] = use.turned ? turned : buffer;
    }
  }

  /// With the views that nobody looks at any more.
  static void erase(Operation *op) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (isMemoryEffectFree(user))
        erase(user);
    if (op->use_empty())
      op->erase();
  }

  /// In the block of `op`, or nowhere before it.
  static bool isWaitedForBefore(WarpgroupDotOp product, Operation *op) {
    return llvm::any_of(product->getUsers(), [&](Operation *user) {
      return isa<WarpgroupWaitOp>(user) && user->getBlock() == op->getBlock() && user->isBeforeInBlock(op);
    });
  }

  /// A product whose sums are looked at later is waited for there, other products may be in flight then.  In loops with
  /// stages alone, whose tiles are chosen for that: elsewhere what is computed meanwhile takes registers that are not
  /// there (DPLR's maps spilled half as much again).
  void waitLate(WarpgroupDotOp product) {
    const auto loop = dyn_cast<scf::ForOp>(product->getParentOp());
    if (product.goesOn() || !loop || tile::numStages(loop) < 2)
      return;
    Operation *first = firstLook(product);
    if (!first)
      return;
    // Nothing in the round looks at them.  The slot that the product reads is then given back at the end of the round:
    // first the wait, then that.
    const bool atEnd = first->hasTrait<OpTrait::IsTerminator>();
    unsigned later = 0;
    for (Operation *op = product->getNextNode(); op != first; op = op->getNextNode()) {
      const auto ordering = tile::orderingOf(op);
      if (auto other = dyn_cast<WarpgroupDotOp>(op)) {
        later += other.goesOn() && !isWaitedForBefore(other, first);
      } else if (op->walk([](WarpgroupDotOp) { return WalkResult::interrupt(); }).wasInterrupted() ||
                 (ordering &&
                  (ordering->handoff ? atEnd && ordering->arrives : ordering->awaits != tile::Agent::MatrixUnit))) {
        first = op; // not past loops of products, nor barriers
        break;
      }
    }
    if (first == product->getNextNode())
      return;
    IRRewriter rewriter(product.getContext());
    const auto tile = cast<RankedTensorType>(product.getType());
    const auto pending = PendingType::get(tile);
    rewriter.setInsertionPoint(product);
    product.getAccumulatorMutable().set(
        WarpgroupBeginOp::create(rewriter, product.getLoc(), pending, product.getAccumulator()));
    product.getResult().setType(pending);
    rewriter.setInsertionPoint(first);
    llvm::SmallVector<Value> kept;
    if (product.readsRegisters())
      kept.push_back(product.getLhs());
    if (auto branch = dyn_cast<scf::IfOp>(first);
        branch && !branch.getElseRegion().empty() &&
        llvm::all_of(product->getUsers(), [&](Operation *user) { return branch->isProperAncestor(user); })) {
      // What the condition follows from comes before the wait, whatever an assembler would like.
      for (Region &region : branch->getRegions()) {
        rewriter.setInsertionPointToStart(&region.front());
        auto wait = WarpgroupWaitOp::create(rewriter, product.getLoc(), tile, product.getResult(), kept, later);
        rewriter.replaceUsesWithIf(product.getResult(), wait.getResult(), [&](OpOperand &use) {
          return region.isAncestor(use.getOwner()->getParentRegion()) && !isa<WarpgroupWaitOp>(use.getOwner());
        });
      }
      return;
    }
    auto wait = WarpgroupWaitOp::create(rewriter, product.getLoc(), tile, product.getResult(), kept, later);
    rewriter.replaceAllUsesExcept(product.getResult(), wait.getResult(), wait);
  }

  /// A product that the next round's may overtake: the loop carries its sums in flight, and leaves one in flight.
  ///
  ///   for .. carrying sums:                 begin
  ///     sums += a b                   =>    for .. carrying pending sums:
  ///                                           a product; at the end wait for the one before
  ///                                         wait for all
  void overlap(scf::ForOp loop, WarpgroupDotOp product) {
    IRRewriter rewriter(loop.getContext());
    auto sums = cast<BlockArgument>(product.getAccumulator());
    const unsigned place = sums.getArgNumber() - loop.getNumInductionVars();
    const auto tile = cast<RankedTensorType>(sums.getType());
    const auto pending = PendingType::get(tile);
    rewriter.setInsertionPoint(loop);
    loop.getInitArgsMutable()[place].set(
        WarpgroupBeginOp::create(rewriter, product.getLoc(), pending, loop.getInitArgs()[place]));
    sums.setType(pending);
    product.getResult().setType(pending);
    Operation *end = loop.getBody()->getTerminator();
    Operation *last = end; // before the slot of the round before is given back
    for (Operation *op = end->getPrevNode(); op != product; op = op->getPrevNode())
      if (const auto ordering = tile::orderingOf(op); ordering && ordering->handoff && ordering->arrives)
        last = op;
    rewriter.setInsertionPoint(last);
    end->setOperand(place,
                    WarpgroupWaitOp::create(rewriter, product.getLoc(), pending, product.getResult(), ValueRange(), 1));
    Value result = loop.getResult(place);
    result.setType(pending);
    rewriter.setInsertionPointAfter(loop);
    auto wait = WarpgroupWaitOp::create(rewriter, product.getLoc(), tile, result, ValueRange(), 0);
    rewriter.replaceAllUsesExcept(result, wait.getResult(), wait);
  }

  const Target &target;
  const Storing storing;
  std::optional<analysis::AxisAnalysis> facts; ///< of the function, once they are asked for
  llvm::SmallVector<tile::DotOp> dots;         ///< in program order
  llvm::SmallVector<WarpgroupDotOp> products;
  llvm::MapVector<std::pair<Value, std::pair<const void *, unsigned>>, Shared> groups;
  llvm::DenseMap<std::pair<Operation *, unsigned>, Value> operands;
  llvm::DenseSet<std::pair<Operation *, unsigned>> inPlace; ///< operands that are read where they were copied
  llvm::SetVector<Operation *> read;                        ///< their loads
};

} // namespace

LogicalResult expandWarpgroupDots(func::FuncOp f) {
  bool any = false;
  f.walk([&](tile::DotOp dot) { any |= readsShared(dot); });
  if (!any)
    return success();
  const Result<const Target *> target = targetOf(f);
  if (!target)
    return report(f, target.status());
  // The rest is for conversions.
  const uint64_t most = (*target)->sharedOptIn / 16 * 15;
  for (const Storing storing : {Storing::InTurn, Storing::Early, Storing::Late}) {
    func::FuncOp attempt = f.clone();
    const bool good = succeeded(Expander(attempt, **target, storing).run()) && mostSharedBytes(attempt) <= most;
    if (good) {
      f.getBody().takeBody(attempt.getBody());
      f.setFunctionType(attempt.getFunctionType()); // tensor maps may have been added
      if (const ArrayAttr attributes = attempt.getAllArgAttrs())
        f.setAllArgAttrs(attributes);
    }
    attempt->erase();
    if (good)
      return success();
  }
  return Expander(f, **target, Storing::Each).run();
}

} // namespace kiln
