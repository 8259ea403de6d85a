// Loads become asynchronous copies, some rounds ahead of their use, into the slots of a pipeline.
//
//   a pipeline of S slots; slots of rounds 0 .. S-2 acquired, filled if those rounds exist, committed
//   for .. carrying (the pipeline, the addresses' carried values S-1 rounds ahead):
//     wait for a slot: this round's
//     acquire a slot; if round + S-1 exists: copy it there; commit
//     .. users read this round's slot ..
//     release it
//   drain the pipeline
//
// Tiles that only products of warpgroups read lie in the slot as these want them, and are read there.  Where such a
// product adds to sums that the loop carries, it may be in flight until the next round has begun its own:
//
//   a pipeline of S slots, holding two; slots of rounds 0 .. S-3 acquired, filled, committed
//   for .. carrying (the pipeline, ..):
//     wait for a slot: this round's
//     .. users read this round's slot; the product of the round before goes on ..
//     release the slot of two rounds ago; acquire one; if round + S-2 exists: copy it there; commit
//   release two slots, drain the pipeline
//
// A slot is committed in every round, so that the number of slots in flight does not depend on the trip count.  The
// wait comes before the acquisition: at it all threads meet after their last reads of the slot that is acquired.
//
// Where all of a loop's copies can be the copy engine's (TensorCopies.h), no threads meet.  Then tiles of different
// products have pipelines of their own, and each of these releases its slot when its product's sums are looked at, and
// refills the one that was released half a round earlier: the first at the beginning of a round, others once the one
// before has released.  A product in flight holds one slot, that of the round before, until its round's end.
//
// What the copies are and how a wait works is lower-pipelines' business; which loads can be staged is StagedLoads'.
#include "compiler/passes/Pass.h"
#include "compiler/passes/pipelines/PipelinedLoops.h"

#include "compiler/passes/pipelines/PeeledLoads.h"
#include "compiler/passes/pipelines/SlotBuffers.h"
#include "compiler/tile_gpu/LayoutInference.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/PipelineLoops.inc"

using namespace tile_gpu;

namespace {

/// Slots of rounds before that products in flight may still read: that of the round before, and where the threads copy,
/// of the one before that until all warps have met.
constexpr unsigned heldByProducts = 2, heldByBulkProducts = 1;

/// Tiles that are copied, waited for and released together.
struct Pipe {
  llvm::SmallVector<Stage *> stages;
  bool bulk = false;
  Value state;                    ///< where the pass is
  unsigned carried = 0;           ///< its number among the loop's carried values
  llvm::SmallVector<Value> in;    ///< this round's slot
  Operation *released = nullptr;  ///< after this operation of the body; null: at its end
  Operation *lookedAt = nullptr;  ///< the last that looks at sums of products that read the slot
  tile::LoadViewOp before, after; ///< loads next to the loop that flow through it, too
};

class Pipeliner {
public:
  Pipeliner(scf::ForOp loop, StagedLoop &plan, const Target &target, const analysis::AxisAnalysis &facts)
      : loop(loop), plan(plan), target(target), facts(facts), rewriter(loop.getContext()) {}

  /// False if the buffers do not fit: nothing has changed then, and `why` says so.
  bool run(unsigned stages, std::string &why) {
    if (!slots.choose(plan.loads, stages, target, why))
      return false;
    APInt by;
    matchPattern(loop.getStep(), m_ConstantInt(&by));
    step = by.getSExtValue();
    formPipes();
    prologue();
    replaceLoop();
    body();
    rewriter.setInsertionPointAfter(loop);
    for (Pipe &pipe : pipes) {
      pipe.state = loop.getResult(pipe.carried);
      for (unsigned i = 0; i < held(); ++i)
        release(pipe);
    }
    for (Pipe &pipe : llvm::reverse(pipes)) {
      if (pipe.after) {
        rewriter.setInsertionPoint(pipe.after);
        takeOutside(pipe, pipe.after);
      }
      rewriter.setInsertionPointAfter(pipe.state.getDefiningOp());
      DrainOp::create(rewriter, loop.getLoc(), pipe.state);
    }
    return true;
  }
  unsigned stages() const { return slots.count; }
  /// Loads that got no buffers, and why.
  llvm::ArrayRef<std::pair<Operation *, std::string>> left() const { return slots.dropped; }

private:
  void formPipes() {
    // Threads that read all tiles themselves hold them in registers, and have some for the slots' numbers and phases in
    // loops of one product; attention by mma.sync would spill up to 550 bytes (D = 128, sm_90).
    const bool mayRead = productsIn(loop) == 1 || llvm::any_of(slots.stages, [](const Stage &s) { return s.inPlace; });
    for (Stage &stage : slots.stages)
      if (const BufferType type = stage.bulkType(); type && (stage.inPlace || mayRead)) {
        Result<TensorCopy> copy = tensorCopyOf(stage.staged.load, type, facts, target);
        if (copy)
          stage.bulk = std::move(*copy);
        else if (target.has(Capability::Tma))
          stage.staged.load->emitRemark() << "this load is copied by the threads: " << copy.status().message();
      }
    const auto isBulk = [](const Stage &stage) { return stage.bulk.has_value(); };
    // Threads' copies through pointers of what no product takes are not worth the copy engine: such loads stay.
    const auto inTheWay = [&](const Stage &stage) {
      return !isBulk(stage) && !stage.inPlace && isa<tile::LoadOp>(stage.staged.load) &&
             !feedsProduct(stage.staged.load->getResult(0));
    };
    if (llvm::any_of(slots.stages, isBulk) &&
        llvm::all_of(slots.stages, [&](const Stage &stage) { return isBulk(stage) || inTheWay(stage); }))
      llvm::erase_if(slots.stages, inTheWay);
    const bool bulk = llvm::all_of(slots.stages, isBulk);
    findOvertaken(bulk);
    llvm::MapVector<Operation *, Pipe> byProduct;
    for (Stage &stage : slots.stages) {
      if (bulk)
        stage.type = stage.bulkType();
      byProduct[bulk ? slots.sharing(stage) : nullptr].stages.push_back(&stage);
    }
    for (auto &[product, pipe] : byProduct) {
      pipe.bulk = bulk;
      if (bulk && !overtaken)
        findRelease(pipe);
      pipes.push_back(std::move(pipe));
    }
    if (bulk && !overtaken)
      findPeeled();
    llvm::stable_sort(pipes, [](const Pipe &a, const Pipe &b) {
      return a.released && (!b.released || a.released->isBeforeInBlock(b.released));
    });
  }

  /// Loads next to the loop that continue its own, where all that copies begin from can be computed before them.
  void findPeeled() {
    for (Pipe &pipe : pipes) {
      if (pipe.stages.size() != 1)
        continue;
      // A load is one pipe's: tiles of one tensor may go through two.
      const auto isTaken = [&](tile::LoadViewOp load) {
        return llvm::any_of(pipes, [&](const Pipe &other) { return load == other.before || load == other.after; });
      };
      if (tile::LoadViewOp load = loadBefore(loop, *pipe.stages.front()); load && !isTaken(load))
        pipe.before = load;
      if (tile::LoadViewOp load = loadAfter(loop, *pipe.stages.front()); load && !isTaken(load))
        pipe.after = load;
    }
    Operation *first = loop;
    for (const Pipe &pipe : pipes)
      if (pipe.before && pipe.before->isBeforeInBlock(first))
        first = pipe.before;
    llvm::SmallVector<Value> needed = {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
    for (const Pipe &pipe : pipes)
      if (pipe.before)
        needed.append(pipe.before->operand_begin(), pipe.before->operand_end());
    for (BlockArgument argument : plan.updates.carried)
      needed.push_back(loop.getTiedLoopInit(argument)->get());
    for (const LoopSlice *slice : {&plan.addresses, &plan.updates})
      for (Operation *op : slice->ops)
        for (Value v : op->getOperands())
          if (!loop->isAncestor(v.getParentRegion()->getParentOp()))
            needed.push_back(v);
    for (const Pipe &pipe : pipes)
      for (const Stage *stage : pipe.stages) {
        auto load = cast<tile::LoadViewOp>(stage->staged.load);
        llvm::SmallVector<Value> operands(load->getOperands());
        operands.append(stage->bulk->fixed.begin(), stage->bulk->fixed.end());
        for (Value v : operands)
          if (v && !loop->isAncestor(v.getParentRegion()->getParentOp()))
            needed.push_back(v);
      }
    DominanceInfo dominance;
    const ScopedDiagnosticHandler silence(loop.getContext(), [](Diagnostic &) { return success(); });
    if (first != loop && failed(moveValueDefinitions(rewriter, needed, first, dominance))) {
      first = loop;
      for (Pipe &pipe : pipes)
        pipe.before = {};
    }
    begin = first;
  }

  /// A load next to the loop becomes a slot of the pipe, which is released once nothing reads it.
  void takeOutside(Pipe &pipe, tile::LoadViewOp load) {
    auto wait = WaitOp::create(rewriter, load.getLoc(), pipe.state);
    pipe.state = wait.getNext();
    const auto operands = warpgroupOperands(load.getResult());
    Operation *last = operands ? lastLook(load, *operands) : load.getOperation();
    Block &block = *load->getBlock();
    rewriter.setInsertionPoint(load);
    if (operands) {
      rewriter.replaceOpWithNewOp<LocalLoadOp>(load, load.getType(), wait.getBuffers().front());
    } else {
      for (Operation *read : readFrom(load, wait.getBuffers().front(), block)) {
        read->setAttr(readByThreads, rewriter.getUnitAttr());
        last = read;
      }
      rewriter.eraseOp(load);
    }
    if (last->hasTrait<OpTrait::IsTerminator>() || last == loop)
      rewriter.setInsertionPoint(last);
    else
      rewriter.setInsertionPointAfter(last);
    release(pipe);
  }

  static Operation *lastOf(llvm::ArrayRef<Operation *> ops) {
    Operation *last = nullptr;
    for (Operation *op : ops)
      last = !op || (last && op->isBeforeInBlock(last)) ? last : op;
    return last;
  }

  /// Where in the body nothing reads the pipe's slot any more: after the operation that first looks at the sums of the
  /// last product that does, and after what brings the tiles that threads read to them.  Nowhere sooner than at the
  /// end: null.
  void findRelease(Pipe &pipe) {
    llvm::SmallVector<Operation *> uses;
    for (const Stage *stage : pipe.stages)
      if (stage->inPlace) {
        for (const WarpgroupOperand &operand : stage->products()) {
          Operation *at = operand.dot;
          uses.push_back(at->getParentOp() == loop ? firstLook(at) : loop.getBody()->findAncestorOpInBlock(*at));
        }
        pipe.lookedAt = lastOf(uses);
      }
    for (const Stage *stage : pipe.stages)
      if (!stage->inPlace)
        for (Operation *user : stage->staged.load->getUsers())
          uses.push_back(loop.getBody()->findAncestorOpInBlock(*user));
    if (llvm::all_of(uses, [](Operation *op) { return op && !op->hasTrait<OpTrait::IsTerminator>(); }))
      pipe.released = lastOf(uses);
  }

  static unsigned productsIn(scf::ForOp loop) {
    unsigned out = 0;
    loop.getBody()->walk([&](tile::DotOp) { ++out; });
    return out;
  }

  /// The loop's only product, if it adds tiles of this pipeline to sums that nothing else in the loop looks at.
  void findOvertaken(bool bulk) {
    if (slots.count <= (bulk ? heldByBulkProducts + 1 : heldByProducts) ||
        !llvm::all_of(slots.stages, [](const Stage &stage) { return stage.inPlace; }))
      return;
    tile::DotOp only;
    loop.getBody()->walk([&](tile::DotOp dot) { only = dot; });
    if (productsIn(loop) != 1 || only->getParentOp() != loop || !addsToCarriedSums(only))
      return;
    for (unsigned number : {0u, 1u})
      if (llvm::none_of(slots.stages, [&](const Stage &stage) {
            return viewedTile(only->getOperand(number)).first == stage.staged.load->getResult(0);
          }))
        return;
    overtaken = only;
    only->setAttr(overlappedProduct, rewriter.getUnitAttr());
    heldSlots = bulk ? heldByBulkProducts : heldByProducts;
  }

  /// Slots of earlier rounds that a round keeps.
  unsigned held() const { return heldSlots; }
  /// How many rounds ahead copies are made.
  unsigned lead() const { return slots.count - (overtaken ? 2 : 1); }

  Value constant(Type type, int64_t v) {
    return arith::ConstantOp::create(rewriter, loop.getLoc(), rewriter.getIntegerAttr(type, v));
  }
  Type countType() { return loop.getInductionVar().getType(); }

  /// `rounds` rounds after the one that counts `from`; whether it exists is another question.
  Value later(Value from, unsigned rounds) {
    if (rounds == 0)
      return from;
    return arith::AddIOp::create(rewriter, loop.getLoc(), from, constant(countType(), rounds * step));
  }

  /// The round `rounds` after the one that counts `from`, which exists, exists too.
  Value exists(Value from, unsigned rounds) { return roundExists(rewriter, loop, from, rounds * step); }

  /// The slice's operations with these values in place of the counter and the carried arguments.
  void clone(const LoopSlice &slice, Value counter, llvm::ArrayRef<Value> carried, IRMapping &map) {
    map.map(loop.getInductionVar(), counter);
    for (auto [argument, value] : llvm::zip_equal(plan.updates.carried, carried))
      map.map(argument, value);
    for (Operation *op : slice.ordered())
      rewriter.clone(*op, map);
  }

  void release(Pipe &pipe) {
    auto release = ReleaseOp::create(rewriter, loop.getLoc(), pipe.state);
    if (pipe.bulk && llvm::any_of(pipe.stages, [](const Stage *stage) { return !stage->inPlace; }))
      release->setAttr(readByThreads, rewriter.getUnitAttr());
    pipe.state = release;
  }

  /// Fills a slot with the tiles of the round that counts `counter`, if `condition` (null: always) says that it exists.
  void copyRound(Pipe &pipe, Value counter, llvm::ArrayRef<Value> carried, Value condition) {
    auto acquire = AcquireOp::create(rewriter, loop.getLoc(), pipe.state);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      if (condition)
        rewriter.setInsertionPointToStart(
            scf::IfOp::create(rewriter, loop.getLoc(), condition, /*withElseRegion=*/false).thenBlock());
      IRMapping map;
      clone(plan.addresses, counter, carried, map);
      for (auto [of, to] : llvm::zip_equal(pipe.stages, acquire.getBuffers())) {
        const Stage &stage = *of;
        const Location loc = stage.staged.load->getLoc();
        if (pipe.bulk) {
          stage.bulk->create(rewriter, cast<tile::LoadViewOp>(stage.staged.load), to, map);
        } else if (auto view = dyn_cast<tile::LoadViewOp>(stage.staged.load)) {
          llvm::SmallVector<Value> coords;
          for (Value c : view.getCoords())
            coords.push_back(map.lookupOrDefault(c));
          AsyncCopyViewOp::create(rewriter, loc, map.lookupOrDefault(Value(view.getView())), coords, to,
                                  stage.staged.copy.by);
        } else {
          auto load = cast<tile::LoadOp>(stage.staged.load);
          const auto by = [&](Value tile) {
            tile = map.lookupOrDefault(tile);
            const RankedTensorType type = withLayout(tile.getType(), stage.staged.copy.by);
            return tile.getType() == type ? tile : ConvertLayoutOp::create(rewriter, loc, type, tile).getResult();
          };
          AsyncCopyOp::create(rewriter, loc, by(load.getPointer()), to, load.getMask() ? by(load.getMask()) : Value());
        }
      }
    }
    pipe.state = CommitOp::create(rewriter, loop.getLoc(), acquire.getNext());
  }

  /// The carried values of the next round.
  llvm::SmallVector<Value> nextCarried(Value counter, llvm::ArrayRef<Value> carried) {
    if (carried.empty())
      return {};
    IRMapping map;
    clone(plan.updates, counter, carried, map);
    llvm::SmallVector<Value> out;
    for (BlockArgument argument : plan.updates.carried)
      out.push_back(map.lookupOrDefault(loop.getTiedLoopYieldedValue(argument)->get()));
    return out;
  }

  void prologue() {
    rewriter.setInsertionPoint(begin ? begin : loop);
    for (Pipe &pipe : pipes) {
      const auto buffers = llvm::map_to_vector(pipe.stages, [](const Stage *stage) { return stage->type; });
      pipe.state = PipelineOp::create(rewriter, loop.getLoc(),
                                      PipelineType::get(loop.getContext(), slots.count, buffers), pipe.bulk, held());
    }
    for (Pipe &pipe : pipes)
      if (pipe.before) {
        auto acquire = AcquireOp::create(rewriter, pipe.before.getLoc(), pipe.state);
        pipe.stages.front()->bulk->create(rewriter, pipe.before, acquire.getBuffers().front(), IRMapping());
        pipe.state = CommitOp::create(rewriter, pipe.before.getLoc(), acquire.getNext());
      }
    llvm::SmallVector<Value> rounds;
    rounds.push_back(arith::CmpIOp::create(rewriter, loop.getLoc(), arith::CmpIPredicate::slt, loop.getLowerBound(),
                                           loop.getUpperBound()));
    for (unsigned round = 1; round < lead(); ++round)
      rounds.push_back(
          arith::AndIOp::create(rewriter, loop.getLoc(), rounds.front(), exists(loop.getLowerBound(), round)));
    for (BlockArgument argument : plan.updates.carried)
      ahead.push_back(loop.getTiedLoopInit(argument)->get());
    for (auto [round, condition] : llvm::enumerate(rounds)) {
      const Value counter = later(loop.getLowerBound(), static_cast<unsigned>(round));
      for (Pipe &pipe : pipes)
        copyRound(pipe, counter, ahead, !pipe.after ? condition : round ? rounds[round - 1] : Value());
      ahead = nextCarried(counter, ahead);
    }
    for (Pipe &pipe : pipes)
      if (pipe.before) {
        rewriter.setInsertionPoint(pipe.before);
        takeOutside(pipe, pipe.before);
      }
    rewriter.setInsertionPoint(loop);
  }

  /// The loop with the new carried values: the pipelines and the addresses.
  void replaceLoop() {
    llvm::SmallVector<Value> inits = llvm::map_to_vector(pipes, [](const Pipe &pipe) { return pipe.state; });
    inits.append(ahead);
    firstAdded = loop.getNumRegionIterArgs();
    // The slices' operations are in the body and move with it; its arguments are new.
    llvm::SmallVector<unsigned> numbers;
    for (BlockArgument argument : plan.updates.carried)
      numbers.push_back(argument.getArgNumber());
    loop = carryAlso(rewriter, loop, inits);
    plan.updates.carried.clear();
    for (unsigned number : numbers)
      plan.updates.carried.insert(loop.getBody()->getArgument(number));
    llvm::ArrayRef<BlockArgument> added = loop.getRegionIterArgs().drop_front(firstAdded);
    for (auto [i, pipe] : llvm::enumerate(pipes)) {
      pipe.carried = firstAdded + static_cast<unsigned>(i);
      pipe.state = added[i];
    }
    added = added.drop_front(pipes.size());
    ahead.assign(added.begin(), added.end());
  }

  void body() {
    rewriter.setInsertionPointToStart(loop.getBody());
    for (Pipe &pipe : pipes) {
      auto wait = WaitOp::create(rewriter, loop.getLoc(), pipe.state);
      pipe.state = wait.getNext();
      pipe.in.assign(wait.getBuffers().begin(), wait.getBuffers().end());
    }
    Operation *end = loop.getBody()->getTerminator();
    for (Pipe &pipe : pipes) {
      llvm::SmallVector<Operation *> reads;
      for (auto [stage, buffer] : llvm::zip_equal(pipe.stages, pipe.in))
        for (Operation *read : readFrom(stage->staged.load, buffer, *loop.getBody()))
          if (!stage->inPlace && pipe.bulk) {
            read->setAttr(readByThreads, rewriter.getUnitAttr());
            reads.push_back(read);
          }
      if (pipe.released) { // what reads these tiles is another operation now
        reads.push_back(pipe.lookedAt);
        pipe.released = lastOf(reads);
      }
    }
    rewriter.setInsertionPointAfter(pipes.back().state.getDefiningOp());
    // What copies of a later round begin from.
    const Value counter = later(loop.getInductionVar(), lead());
    const Value condition = exists(loop.getInductionVar(), lead());
    // The round after the last one is there for a load after the loop.
    const Value orAfter = lead() > 1 ? exists(loop.getInductionVar(), lead() - 1) : Value();
    const llvm::SmallVector<Value> carried = ahead;
    ahead = nextCarried(counter, ahead);
    const Pipe *previous = nullptr;
    for (Pipe &pipe : pipes) {
      // Two rounds ahead copies have the time to come after this round's product, and do not keep it from being begun;
      // one round ahead they do not: the product's instructions are issued as the matrix unit takes them.
      if (overtaken && lead() > 1)
        rewriter.setInsertionPointAfter(overtaken);
      if (overtaken && !pipe.bulk) // at the wait all warps have met after the product of two rounds ago
        release(pipe);
      else if (previous && previous->released)
        rewriter.setInsertionPointAfter(previous->released);
      copyRound(pipe, counter, carried, pipe.after ? orAfter : condition);
      previous = &pipe;
    }
    for (Pipe &pipe : pipes)
      for (const Stage *stage : pipe.stages)
        rewriter.eraseOp(stage->staged.load);
    llvm::SmallVector<Value> yields;
    for (Pipe &pipe : pipes) {
      rewriter.setInsertionPoint(end);
      if (Operation *refilled = pipe.state.getDefiningOp(); pipe.released)
        rewriter.setInsertionPointAfter(refilled->isBeforeInBlock(pipe.released) ? pipe.released : refilled);
      if (!overtaken || pipe.bulk)
        release(pipe);
      yields.push_back(pipe.state);
    }
    yields.append(ahead);
    for (auto [i, v] : llvm::enumerate(yields))
      end->setOperand(firstAdded + static_cast<unsigned>(i), v);
  }

  /// The users of a load, in this block or inside of its operations, read its slot, each in the layout that it wants:
  /// by these operations, the last one at the end.
  llvm::SmallVector<Operation *> readFrom(Operation *load, Value slot, Block &block) {
    const auto tile = cast<RankedTensorType>(load->getResult(0).getType());
    llvm::SmallVector<OpOperand *> uses;
    for (OpOperand &use : load->getResult(0).getUses())
      uses.push_back(&use);
    // In program order, each read as late as its first user allows.
    llvm::SmallVector<std::pair<OpOperand *, LayoutAttr>> wanted;
    for (OpOperand *use : uses)
      wanted.push_back({use, wantedLayout(*use).value_or(layoutAttrOf(tile))});
    llvm::DenseMap<LayoutAttr, Value> loaded;
    for (auto [use, layout] : wanted) {
      Value &value = loaded[layout];
      if (!value) {
        Operation *first = nullptr;
        for (auto [other, its] : wanted) {
          Operation *at = block.findAncestorOpInBlock(*other->getOwner());
          if (its == layout && (!first || at->isBeforeInBlock(first)))
            first = at;
        }
        rewriter.setInsertionPoint(first);
        value = LocalLoadOp::create(rewriter, load->getLoc(), withLayout(tile, layout), slot);
      }
    }
    for (auto [use, layout] : wanted)
      feed(*use, loaded[layout]);
    llvm::SmallVector<Operation *> reads;
    for (const auto &[layout, value] : loaded)
      reads.push_back(value.getDefiningOp());
    llvm::sort(reads, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return reads;
  }

  /// Gives the use `value`; conversions at the end of its chain are not needed any more.
  void feed(OpOperand &use, Value value) {
    Operation *op = use.getOwner();
    if (value.getType() == use.get().getType() && !isa<ConvertLayoutOp>(op)) {
      use.set(value);
      return;
    }
    if (isa<ConvertLayoutOp>(op)) {
      rewriter.replaceOp(op, value);
      return;
    }
    OpOperand &next = *op->getResult(0).use_begin();
    rewriter.setInsertionPoint(op);
    IRMapping map;
    map.map(use.get(), value);
    Operation *other = rewriter.clone(*op, map);
    other->getResult(0).setType(withLayout(op->getResult(0).getType(), *wantedLayout(next)));
    feed(next, other->getResult(0));
    rewriter.eraseOp(op);
  }

  scf::ForOp loop;
  StagedLoop &plan;
  const Target &target;
  const analysis::AxisAnalysis &facts;
  IRRewriter rewriter;
  SlotBuffers slots;
  unsigned firstAdded = 0;
  Operation *begin = nullptr; ///< before which the pipelines begin; null: the loop
  std::vector<Pipe> pipes;
  tile::DotOp overtaken; ///< a product that may be in flight while the next round's is begun
  unsigned heldSlots = 0;
  int64_t step = 1;
  llvm::SmallVector<Value> ahead;
};

struct PipelineLoops : impl::PipelineLoopsBase<PipelineLoops> {
  void runOnOperation() override {
    const auto hasStages = [](scf::ForOp loop) { return tile::numStages(loop) > 1; };
    const auto pipelineAll = [](llvm::ArrayRef<scf::ForOp> loops, const Target &target) {
      const analysis::AxisAnalysis facts(loops.front()->getParentOfType<func::FuncOp>());
      for (scf::ForOp loop : loops)
        pipeline(loop, target, facts);
    };
    if (failed(forEachLoops(getOperation(), hasStages, pipelineAll)))
      signalPassFailure();
  }

  static void pipeline(scf::ForOp loop, const Target &target, const analysis::AxisAnalysis &facts) {
    StagedLoop plan(loop, target, facts);
    const StagedLoop::Answer answer = plan.examine();
    for (const auto &[op, why] : plan.refused)
      op->emitRemark() << (op == loop ? "this loop" : "this load") << " is not pipelined: " << why;
    if (answer != StagedLoop::Answer::Yes)
      return;
    const unsigned wanted = tile::numStages(loop);
    const Location loc = loop.getLoc(); // the loop is another one afterwards
    Pipeliner pipeliner(loop, plan, target, facts);
    std::string why;
    const bool done = pipeliner.run(wanted, why);
    for (const auto &[load, its] : pipeliner.left())
      load->emitRemark() << "this load is not pipelined: " << its;
    if (!done) {
      if (!why.empty())
        emitRemark(loc) << "this loop is not pipelined: " << why;
      return;
    }
    if (pipeliner.stages() < wanted)
      emitRemark(loc) << "this loop has " << pipeliner.stages() << " stages, not " << wanted << ": "
                      << target.name.data() << " has " << target.sharedOptIn << " bytes of shared memory";
  }
};

} // namespace
} // namespace kiln
