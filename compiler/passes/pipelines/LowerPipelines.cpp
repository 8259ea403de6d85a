// Pipelines become buffers, the numbers of slots, and what says whose turn they are.
//
// Of copies by the threads (cp.async) a state is, from here on: the slot that is read next, the slot that is filled
// next, and the groups that were committed and not yet waited for, whose number is known everywhere.  A wait waits for
// the oldest group of every thread and joins the block: what each thread copied is there for all, and no thread reads
// what was released before it.  So acquire and release cost nothing; where that barrier does not come between a release
// and the next copies to that slot, insert-barriers adds one.
//
// Of copies by tensor maps (`bulk`) each slot has two mbarriers, one that says that it is full and one that it is
// empty, and a state is the slot that is read next and the one that is filled next, each with its phase: 0 in the first
// round through the slots, 1 in the second, 0 again.  One thread waits until a slot is empty, copies, and arrives; all
// wait until it is full, and each warp arrives when it reads it no more.  Nothing joins the block.
//
//     acquire   one thread: wait for the release of this slot in the round before (of the first round: at once)
//     commit    one thread: arrive at `full`, to whose phase the copies count
//     wait      wait for `full`
//     release   each warp: arrive at `empty`
//
// States are followed through scf.for and scf.if, so that what an author got wrong is found here: a slot that is
// acquired while none is free, waited for before anything was committed, a round that keeps one, a pipeline without
// end.
#include "compiler/passes/Pass.h"
#include "compiler/passes/pipelines/PipelinedLoops.h"
#include "compiler/passes/pipelines/PipelineStates.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/LowerPipelines.inc"

using namespace tile_gpu;

namespace {

bool isState(Value v) {
  return isa<PipelineType>(v.getType());
}

class Lowering {
public:
  explicit Lowering(func::FuncOp function) : function(function), rewriter(function.getContext()) {}

  LogicalResult run() {
    for (Block &block : function.getBody())
      if (failed(inside(block)))
        return failure();
    for (Operation *op : dead)
      op->dropAllReferences();
    for (Operation *op : dead)
      rewriter.eraseOp(op);
    return success();
  }

private:
  LogicalResult lower(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      rewriter.setInsertionPoint(&op);
      const LogicalResult done =
          llvm::TypeSwitch<Operation *, LogicalResult>(&op)
              .Case<PipelineOp, AcquireOp, CommitOp, WaitOp, ReleaseOp, SlotsOp, DrainOp, scf::ForOp, scf::IfOp>(
                  [&](auto op) { return lower(op); })
              .Default([&](Operation *op) { return others(op); });
      if (failed(done))
        return failure();
    }
    return success();
  }

  /// Ends of regions are their operations' affair; pipelines may live inside of an operation, not pass through it.
  LogicalResult others(Operation *op) {
    if (isa<scf::YieldOp>(op))
      return success();
    if (llvm::any_of(op->getOperands(), isState) || llvm::any_of(op->getResults(), isState))
      return op->emitError("'") << op->getName() << "' takes or gives the state of a pipeline: only scf.for and scf.if "
                                << "carry one, and the operations of pipelines";
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        if (llvm::any_of(block.getArguments(), isState))
          return op->emitError("'") << op->getName() << "' carries a pipeline: only scf.for and scf.if do";
        if (failed(inside(block)))
          return failure();
      }
    return success();
  }

  //===--- states ----------------------------------------------------------===//

  /// For the operation that gives the next one.
  FailureOr<RingState> take(Value v, Operation *by) {
    if (!usable.remove(v)) {
      InFlightDiagnostic error = by->emitError(
          states.contains(v) ? "takes the state of a pipeline that went on somewhere else, or that a loop around it "
                               "does not carry"
                             : "takes the state of a pipeline that is not known here");
      error.attachNote(v.getLoc()) << "each state is used once: by the operation that gives the next one, or as what a "
                                      "loop or a conditional carries";
      return failure();
    }
    return states.find(v)->second;
  }
  void give(Value v, RingState state) {
    states.insert_or_assign(v, std::move(state));
    usable.insert(v);
  }

  LogicalResult allEnded() {
    if (usable.empty())
      return success();
    const Value v = usable.front();
    emitError(v.getLoc(), "this pipeline does not end, with ")
        << states.find(v)->second.text() << ": tile_gpu.drain it, or carry it on";
    return failure();
  }

  //===--- slots -----------------------------------------------------------===//

  Value constant(Location loc, int64_t v) {
    return arith::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(static_cast<int32_t>(v)));
  }

  /// The slot after this one, worked out once.
  Turn after(const Ring &ring, const Turn &turn, Location loc) {
    Turn &next = following[{turn.slot, turn.phase}];
    // Not one of the other side of a conditional.
    if (!next.slot || !next.slot.getParentRegion()->isAncestor(rewriter.getInsertionBlock()->getParent())) {
      const Value one = rewriter.createOrFold<arith::AddIOp>(loc, turn.slot, constant(loc, 1));
      const Value past = rewriter.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, one,
                                                              constant(loc, ring.type.getStages()));
      next.slot = rewriter.createOrFold<arith::SelectOp>(loc, past, constant(loc, 0), one);
      if (turn.phase)
        next.phase = rewriter.createOrFold<arith::SelectOp>(loc, past, other(turn.phase, loc), turn.phase);
    }
    return next;
  }
  Turn after(const Ring &ring, Turn turn, unsigned slots, Location loc) {
    for (unsigned i = 0; i < slots; ++i)
      turn = after(ring, turn, loc);
    return turn;
  }
  /// The slot of a bulk pipeline that is filled next, from the one that is read next and how many are taken, at most
  /// all: in one step, since a round needs none of those between.
  Turn fillAfter(const RingState &state, Location loc) {
    const Turn &turn = state.read;
    const int64_t stages = state.ring->type.getStages(), slots = state.waited + state.committed;
    if (slots == 0)
      return turn;
    if (slots == stages)
      return {turn.slot, other(turn.phase, loc)};
    if (slots == 1)
      return after(*state.ring, turn, loc);
    const Value sum = rewriter.createOrFold<arith::AddIOp>(loc, turn.slot, constant(loc, slots));
    const Value past = rewriter.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::sge, sum, constant(loc, stages));
    const Value wrapped = rewriter.createOrFold<arith::AddIOp>(loc, turn.slot, constant(loc, slots - stages));
    Turn out;
    out.slot = rewriter.createOrFold<arith::SelectOp>(loc, past, wrapped, sum);
    out.phase = rewriter.createOrFold<arith::SelectOp>(loc, past, other(turn.phase, loc), turn.phase);
    return out;
  }
  Value other(Value phase, Location loc) { return rewriter.createOrFold<arith::XOrIOp>(loc, phase, constant(loc, 1)); }

  /// What one thread does, where the rewriter is.
  void elected(Location loc, llvm::function_ref<void()> body) {
    auto op = ElectedOp::create(rewriter, loc);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.createBlock(&op.getBody());
    body();
  }

  llvm::SmallVector<Value> buffersOf(const Ring &ring, Value slot, Location loc) {
    llvm::SmallVector<Value> out;
    for (auto [all, type] : llvm::zip_equal(ring.buffers, ring.type.getBuffers()))
      out.push_back(LocalSubviewOp::create(rewriter, loc, type, all, slot));
    return out;
  }

  /// The same for slots that are written: addresses stand where the writes are, which may be in a conditional.
  void placeWhereUsed(ValueRange results, const Ring &ring, Value slot, Operation *op) {
    for (auto [result, all, type] : llvm::zip_equal(results, ring.buffers, ring.type.getBuffers())) {
      Operation *at = op;
      const llvm::SmallVector<Operation *> users(result.getUsers());
      if (!users.empty() &&
          llvm::all_of(users, [&](Operation *user) { return user->getBlock() == users.front()->getBlock(); }))
        at = *llvm::min_element(users, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(at);
      rewriter.replaceAllUsesWith(result, LocalSubviewOp::create(rewriter, at->getLoc(), type, all, slot));
    }
  }

  LogicalResult lower(PipelineOp op) {
    const Location loc = op.getLoc();
    rings.push_back(std::make_unique<Ring>());
    Ring &ring = *rings.back();
    ring.type = op.getType();
    const int64_t stages = ring.type.getStages();
    for (BufferType buffer : ring.type.getBuffers())
      ring.buffers.push_back(LocalAllocOp::create(rewriter, loc, buffer.withCount(stages), IntegerAttr()));
    RingState state;
    state.ring = &ring;
    state.read.slot = constant(loc, 0);
    state.write.slot = op.getHolding() ? constant(loc, op.getHolding()) : state.read.slot;
    state.waited = op.getHolding();
    if (op.getBulk()) {
      const auto barriers = MbarriersType::get(op.getContext(), stages);
      // Made once, their bytes need never be anything else: nobody has to know when all are past the last wait.
      ring.once = !op->getParentOfType<LoopLikeOpInterface>();
      // Carried from program to program, its numbers start anywhere in inner loops: insert-barriers can tell slots
      // apart there if they follow from one of them.
      ring.single = llvm::any_of(op->getUsers(), [](Operation *user) {
        auto loop = dyn_cast<scf::ForOp>(user);
        return loop && isOverPrograms(loop);
      });
      ring.full = LocalAllocOp::create(rewriter, loc, barriers, IntegerAttr(), ring.once);
      ring.empty = LocalAllocOp::create(rewriter, loc, barriers, IntegerAttr(), ring.once);
      state.read.phase = state.write.phase = constant(loc, 0);
      elected(loc, [&] {
        MbarrierInitOp::create(rewriter, loc, ring.full, 1);
        MbarrierInitOp::create(rewriter, loc, ring.empty, warpsOf(op).count);
      });
      if (op.getHolding()) { // they were full once
        elected(loc, [&] {
          for (unsigned i = 0; i < op.getHolding(); ++i)
            MbarrierArriveOp::create(rewriter, loc, ring.full, constant(loc, i), state.read.phase);
        });
        for (unsigned i = 0; i < op.getHolding(); ++i)
          MbarrierWaitOp::create(rewriter, loc, ring.full, constant(loc, i), state.read.phase, ValueRange());
      }
    }
    give(op.getState(), std::move(state));
    return gone(op);
  }

  /// Takes the operation's state, changes it and gives the next one.
  template <typename Op> LogicalResult step(Op op, llvm::function_ref<LogicalResult(RingState &)> change) {
    FailureOr<RingState> state = take(op.getPipeline(), op);
    if (failed(state) || failed(change(*state)))
      return failure();
    give(op.getNext(), std::move(*state));
    return gone(op);
  }

  LogicalResult lower(AcquireOp op) {
    return step(op, [&](RingState &state) -> LogicalResult {
      const Ring &ring = *state.ring;
      if (state.taken() == ring.type.getStages())
        return op.emitOpError() << "finds no free slot: of " << ring.type.getStages() << ", " << state.text()
                                << "; release one before, or give the pipeline more";
      if (state.acquired)
        return op.emitOpError("takes a second slot before the first is committed");
      state.acquired = 1;
      if (ring.isBulk())
        return acquireBulk(op, state);
      for (Operation *user : op->getUsers())
        if (isa<TensorCopyOp>(user))
          return user->emitOpError("copies into a slot of a pipeline that is not `bulk`");
      placeWhereUsed(op.getBuffers(), ring, state.write.slot, op);
      // The numbers of the next slots together: what is released later has its own in time.
      if (state.waited)
        after(ring, state.read, op.getLoc());
      after(ring, state.write, op.getLoc());
      return success();
    });
  }

  /// The copies into a slot count to its mbarrier; those of a block become one thread's together.
  LogicalResult acquireBulk(AcquireOp op, RingState &state) {
    const Ring &ring = *state.ring;
    const Turn turn = state.write;
    elected(op.getLoc(), [&] {
      MbarrierWaitOp::create(rewriter, op.getLoc(), ring.empty, turn.slot, other(turn.phase, op.getLoc()),
                             buffersOf(ring, turn.slot, op.getLoc()));
    });
    llvm::SetVector<TensorCopyOp> copies;
    for (const Value buffer : op.getBuffers())
      for (Operation *user : buffer.getUsers()) {
        auto copy = dyn_cast<TensorCopyOp>(user);
        if (!copy)
          return user->emitOpError(
              "takes an acquired slot of a `bulk` pipeline: only tile_gpu.tensor_copy fills those");
        if (copy.getBarriers())
          return copy.emitOpError("counts to an mbarrier of its own, not to that of its slot");
        auto commit = op.getNext().hasOneUse() ? dyn_cast<CommitOp>(*op.getNext().user_begin()) : CommitOp();
        if (Operation *at = commit ? commit->getBlock()->findAncestorOpInBlock(*copy) : nullptr;
            at && commit->isBeforeInBlock(at))
          return copy.emitOpError("copies into a slot after its tile_gpu.commit");
        copies.insert(copy);
      }
    llvm::SmallMapVector<Block *, llvm::SmallVector<TensorCopyOp>, 2> byBlock;
    for (TensorCopyOp copy : copies)
      byBlock[copy->getBlock()].push_back(copy);
    for (auto &[block, its] : byBlock) {
      llvm::sort(its, [](TensorCopyOp a, TensorCopyOp b) { return a->isBeforeInBlock(b); });
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointAfter(its.back()); // all that they take is there
      elected(its.back()->getLoc(), [&] {
        const llvm::SmallVector<Value> buffers = buffersOf(ring, turn.slot, its.back()->getLoc());
        for (TensorCopyOp copy : its) {
          const auto which = llvm::find(op.getBuffers(), copy.getBuffer()) - op.getBuffers().begin();
          TensorCopyOp::create(rewriter, copy->getLoc(), copy.getMap(), copy.getCoords(),
                               buffers[static_cast<size_t>(which)], copy.getDims(), ring.full, turn.slot);
          (void)gone(copy);
        }
      });
    }
    return success();
  }

  LogicalResult lower(CommitOp op) {
    return step(op, [&](RingState &state) -> LogicalResult {
      if (!state.acquired)
        return op.emitOpError("commits no slot: none was acquired since the last one");
      const Ring &ring = *state.ring;
      if (ring.isBulk())
        elected(op.getLoc(), [&] {
          MbarrierArriveOp::create(rewriter, op.getLoc(), ring.full, state.write.slot, state.write.phase);
        });
      else
        state.groups.push_back(AsyncCommitOp::create(rewriter, op.getLoc(), TokenType::get(op.getContext())));
      state.write = after(ring, state.write, op.getLoc());
      state.acquired = 0;
      ++state.committed;
      return success();
    });
  }

  LogicalResult lower(WaitOp op) {
    return step(op, [&](RingState &state) -> LogicalResult {
      if (!state.committed)
        return op.emitOpError("waits for a slot that is never committed");
      const Ring &ring = *state.ring;
      const Turn turn = after(ring, state.read, state.waited, op.getLoc());
      const llvm::SmallVector<Value> buffers = buffersOf(ring, turn.slot, op.getLoc());
      if (ring.isBulk()) {
        MbarrierWaitOp::create(rewriter, op.getLoc(), ring.full, turn.slot, turn.phase, buffers);
      } else {
        AsyncWaitOp::create(rewriter, op.getLoc(), ValueRange(state.groups.front()), buffers, IntegerAttr());
        BarrierOp::create(rewriter, op.getLoc());
        state.groups.erase(state.groups.begin());
      }
      --state.committed;
      ++state.waited;
      rewriter.replaceAllUsesWith(op.getBuffers(), buffers);
      return success();
    });
  }

  LogicalResult lower(ReleaseOp op) {
    return step(op, [&](RingState &state) -> LogicalResult {
      if (!state.waited)
        return op.emitOpError("releases no slot: none was waited for since the last one");
      if (state.ring->isBulk()) {
        auto arrive =
            MbarrierArriveOp::create(rewriter, op.getLoc(), state.ring->empty, state.read.slot, state.read.phase);
        if (op->hasAttr(readByThreads))
          arrive->setAttr(readByThreads, rewriter.getUnitAttr());
      }
      state.read = after(*state.ring, state.read, op.getLoc());
      --state.waited;
      return success();
    });
  }

  LogicalResult lower(SlotsOp op) {
    auto it = states.find(op.getPipeline());
    if (it == states.end())
      return op.emitOpError("looks at a pipeline that is not known here");
    const RingState &state = it->second;
    if (!op.getIndex() && !state.waited)
      return op.emitOpError("looks at a slot that was not waited for: name one by `at`");
    if (op.getIndex())
      placeWhereUsed(op.getBuffers(), *state.ring, op.getIndex(), op);
    else
      rewriter.replaceAllUsesWith(op.getBuffers(), buffersOf(*state.ring, state.read.slot, op.getLoc()));
    return gone(op);
  }

  LogicalResult lower(DrainOp op) {
    const FailureOr<RingState> state = take(op.getPipeline(), op);
    if (failed(state))
      return failure();
    if (state->acquired)
      return op.emitOpError("ends a pipeline of which a slot was acquired and not committed");
    const Ring &ring = *state->ring;
    if (!ring.isBulk()) {
      AsyncWaitOp::create(rewriter, op.getLoc(), ValueRange(), ValueRange(), IntegerAttr());
      return gone(op);
    }
    Turn turn = after(ring, state->read, state->waited, op.getLoc());
    for (unsigned i = 0; i < state->committed; ++i, turn = after(ring, turn, op.getLoc()))
      MbarrierWaitOp::create(rewriter, op.getLoc(), ring.full, turn.slot, turn.phase,
                             buffersOf(ring, turn.slot, op.getLoc()));
    if (ring.once)
      return gone(op);
    elected(op.getLoc(), [&] {
      for (const Value barriers : {ring.full, ring.empty})
        MbarrierInvalidateOp::create(rewriter, op.getLoc(), barriers);
    });
    return gone(op);
  }

  //===--- control flow ----------------------------------------------------===//

  /// Each state as its values, in its place.
  FailureOr<llvm::SmallVector<Value>> expand(ValueRange values, Operation *by,
                                             llvm::SmallVectorImpl<RingState> &taken) {
    llvm::SmallVector<Value> out;
    for (Value v : values) {
      if (!isState(v)) {
        out.push_back(v);
        continue;
      }
      FailureOr<RingState> state = take(v, by);
      if (failed(state))
        return failure();
      out.append(state->values());
      taken.push_back(std::move(*state));
    }
    return out;
  }

  /// `values` in the place of `old`, whose states have the shapes of `like`.
  void collapse(ValueRange old, ValueRange values, llvm::ArrayRef<RingState> like) {
    for (Value v : old) {
      if (!isState(v)) {
        rewriter.replaceAllUsesWith(v, values.front());
        values = values.drop_front();
        continue;
      }
      const size_t count = like.front().values().size();
      RingState state = like.front().with(values.take_front(count));
      if (state.ring->single)
        state.write = fillAfter(state, v.getLoc());
      give(v, std::move(state));
      values = values.drop_front(count);
      like = like.drop_front();
    }
  }

  LogicalResult lower(scf::ForOp loop) {
    if (llvm::none_of(loop.getInitArgs(), isState))
      return inside(*loop.getBody());
    llvm::SmallVector<RingState> before;
    FailureOr<llvm::SmallVector<Value>> inits = expand(loop.getInitArgs(), loop, before);
    if (failed(inits))
      return failure();
    auto wide = scf::ForOp::create(rewriter, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(), loop.getStep(),
                                   *inits, nullptr, loop.getUnsignedCmp());
    wide->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    wide.getBody()->getOperations().splice(wide.getBody()->end(), loop.getBody()->getOperations());
    rewriter.replaceAllUsesWith(loop.getInductionVar(), wide.getInductionVar());
    const auto saved = std::exchange(usable, {});
    rewriter.setInsertionPointToStart(wide.getBody());
    collapse(loop.getRegionIterArgs(), wide.getRegionIterArgs(), before);
    if (failed(lower(*wide.getBody())) || failed(endOf(*wide.getBody(), before, "a round of this loop")))
      return failure();
    usable = saved;
    rewriter.setInsertionPointAfter(wide);
    collapse(loop.getResults(), wide.getResults(), before);
    return gone(loop);
  }

  LogicalResult lower(scf::IfOp op) {
    const auto saved = usable;
    auto left = usable; // what neither side uses up
    std::optional<llvm::SmallVector<RingState>> shapes;
    for (Region &region : op->getRegions()) {
      if (region.empty())
        continue;
      usable = saved;
      if (failed(lower(region.front())))
        return failure();
      if (!shapes) {
        shapes.emplace();
        for (Value v : region.front().getTerminator()->getOperands())
          if (isState(v))
            shapes->push_back(states.lookup(v));
      }
      if (failed(endOf(region.front(), *shapes, "this side of a conditional")))
        return failure();
      left.remove_if([&](Value v) { return !usable.contains(v); });
      usable.remove_if([&](Value v) { return saved.contains(v); });
      if (failed(allEnded()))
        return failure();
    }
    usable = left;
    if (llvm::none_of(op.getResults(), isState))
      return success();
    rewriter.setInsertionPoint(op);
    auto wide = scf::IfOp::create(rewriter, op.getLoc(), op.thenYield().getOperandTypes(), op.getCondition());
    wide.getThenRegion().takeBody(op.getThenRegion());
    wide.getElseRegion().takeBody(op.getElseRegion());
    wide->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.setInsertionPointAfter(wide);
    collapse(op.getResults(), wide.getResults(), *shapes);
    return gone(op);
  }

  /// A block that carries no pipeline: those inside begin and end there.
  LogicalResult inside(Block &block) {
    const auto saved = std::exchange(usable, {});
    if (failed(lower(block)) || failed(allEnded()))
      return failure();
    usable = saved;
    return success();
  }

  /// The values of the states that a block ends with, in their place; they have the shapes of `like`.
  LogicalResult endOf(Block &block, llvm::ArrayRef<RingState> like, const char *what) {
    Operation *end = block.getTerminator();
    llvm::SmallVector<RingState> taken;
    const FailureOr<llvm::SmallVector<Value>> values = expand(end->getOperands(), end, taken);
    if (failed(values))
      return failure();
    for (auto [is, was] : llvm::zip_equal(taken, like))
      if (!is.sameShape(was))
        return end->emitError() << what << " ends with a pipeline in another state than "
                                << (isa<scf::ForOp>(block.getParentOp()) ? "it began with" : "the other side") << ": "
                                << (is.ring == was.ring ? is.text() + ", not " + was.text()
                                                        : std::string("another pipeline"));
    end->setOperands(*values);
    if (isa<scf::ForOp>(block.getParentOp()))
      return allEnded();
    return success();
  }

  LogicalResult gone(Operation *op) {
    dead.push_back(op);
    return success();
  }

  func::FuncOp function;
  IRRewriter rewriter;
  llvm::SmallVector<std::unique_ptr<Ring>> rings;
  llvm::DenseMap<Value, RingState> states;                 ///< of every value that stands for one
  llvm::SmallSetVector<Value, 4> usable;                   ///< those that may go on from here
  llvm::DenseMap<std::pair<Value, Value>, Turn> following; ///< a slot's number and phase -> the next one's
  llvm::SmallVector<Operation *> dead;
};

struct LowerPipelines : impl::LowerPipelinesBase<LowerPipelines> {
  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      bool any = false;
      function.walk([&](PipelineOp) { any = true; });
      if (any && failed(Lowering(function).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace kiln
