// Pipelines of a loop over programs, from one program to the next: the copies for the next one begin while this one
// stores its results.
//
//   for program ..:                       %all = pipeline
//     %p = pipeline                       for program .. (%p = %all):
//     .. fill it, use it ..        ->       .. fill it, use it ..
//     drain                                 wait for and release what was committed and not used
//                                         drain
//
// Only what changes nothing else: rings whose slots and phases, all together, the proof can follow, in shared memory
// that all of them fit next to each other, and of which nobody names a slot by its number (a carried one does not begin
// at 0).
#include "compiler/passes/Pass.h"
#include "compiler/passes/pipelines/PipelinedLoops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/CarryPipelines.inc"

using namespace tile_gpu;

namespace {

/// How many slots of a pipeline were committed and not waited for, and waited for and not released.
struct Slots {
  unsigned committed = 0, waited = 0;
};

/// Of a state, and the pipeline that it is one of.  Nothing where an operation takes what is not there, of which
/// lower-pipelines tells.  A loop gives a pipeline back as it took it, a conditional as its first arm does.
std::optional<std::pair<Slots, PipelineOp>> slotsOf(Value state) {
  if (auto argument = dyn_cast<BlockArgument>(state)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument != loop.getInductionVar() ? slotsOf(loop.getTiedLoopInit(argument)->get()) : std::nullopt;
  }
  Operation *op = state.getDefiningOp();
  if (auto pipeline = dyn_cast<PipelineOp>(op))
    return std::pair(Slots{0, static_cast<unsigned>(pipeline.getHolding())}, pipeline);
  const unsigned result = cast<OpResult>(state).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return slotsOf(loop.getInitArgs()[result]);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return slotsOf(branch.thenYield().getOperand(result));
  if (!isa<AcquireOp, CommitOp, WaitOp, ReleaseOp>(op))
    return std::nullopt;
  auto before = slotsOf(op->getOperand(0));
  if (!before)
    return std::nullopt;
  auto &[slots, pipeline] = *before;
  if ((isa<WaitOp>(op) && !slots.committed) || (isa<ReleaseOp>(op) && !slots.waited))
    return std::nullopt;
  slots.committed += isa<CommitOp>(op);
  slots.committed -= isa<WaitOp>(op);
  slots.waited += isa<WaitOp>(op);
  slots.waited -= isa<ReleaseOp>(op);
  if (slots.committed + slots.waited > static_cast<unsigned>(pipeline.getType().getStages()))
    return std::nullopt;
  return before;
}

/// A pipeline that begins and ends in each round, or in an arm of a conditional of each round.
struct Candidate {
  PipelineOp pipeline;
  DrainOp drain;
  Slots end;
};

/// In the loop's own block, or in an arm of a conditional that is.
bool isInRound(Operation *op, scf::ForOp loop) {
  auto branch = dyn_cast<scf::IfOp>(op->getParentOp());
  return op->getBlock() == loop.getBody() || (branch && branch.elseBlock() && branch->getBlock() == loop.getBody());
}

/// A slot of it is named by its number somewhere.
bool isIndexed(PipelineOp pipeline) {
  return pipeline->getParentOfType<func::FuncOp>()
      ->walk([&](SlotsOp op) {
        const auto of = op.getIndex() ? slotsOf(op.getPipeline()) : std::nullopt;
        return op.getIndex() && (!of || of->second == pipeline) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

llvm::SmallVector<Candidate> candidatesOf(scf::ForOp loop, const Target &target) {
  llvm::SmallVector<Candidate> out;
  loop.getBody()->walk([&](DrainOp drain) {
    if (const auto of = isInRound(drain, loop) ? slotsOf(drain.getPipeline()) : std::nullopt)
      if (auto [end, pipeline] = *of; pipeline.getBulk() && pipeline->getBlock() == drain->getBlock() &&
                                      end.committed + end.waited >= static_cast<unsigned>(pipeline.getHolding()) &&
                                      !isIndexed(pipeline))
        out.push_back({pipeline, drain, end});
  });
  // One that ends twice is an error elsewhere.
  for (Candidate &c : out)
    if (llvm::count_if(out, [&](const Candidate &o) { return o.pipeline == c.pipeline; }) > 1)
      return {};
  // In what states a round may begin; and bytes: an eighth of shared memory is left for what rounds exchange.
  constexpr int64_t mostStates = 32;
  const uint64_t most = target.sharedOptIn / 8 * 7;
  int64_t states = 1;
  uint64_t bytes = 0;
  for (Candidate &c : out) {
    const PipelineType type = c.pipeline.getType();
    states *= 2 * type.getStages();
    for (BufferType buffer : type.getBuffers()) {
      const Result<uint64_t> its = buffer.withCount(type.getStages()).bytes();
      bytes += its ? *its : most + 1;
    }
    if (states > mostStates || bytes > most) {
      c.pipeline.emitRemark("begins anew with each program: ")
          << (states > mostStates ? "with more slots the proof does not follow it through two loops"
                                  : "all pipelines of the loop do not fit into shared memory next to each other");
      return {};
    }
  }
  return out;
}

/// The state in which it began: all that was committed is waited for, and all but what it holds then is released.
Value settled(OpBuilder &b, Candidate c) {
  const PipelineType type = c.pipeline.getType();
  llvm::SmallVector<Type> slot = {type};
  llvm::append_range(slot, type.getBuffers());
  Value state = c.drain.getPipeline();
  unsigned waited = c.end.waited;
  const auto releaseDownTo = [&](unsigned most) {
    for (; waited > most; --waited)
      state = ReleaseOp::create(b, c.drain.getLoc(), type, state).getNext();
  };
  for (unsigned i = 0; i < c.end.committed; ++i, ++waited) {
    releaseDownTo(static_cast<unsigned>(c.pipeline.getHolding()));
    state = WaitOp::create(b, c.drain.getLoc(), slot, state).getNext();
  }
  releaseDownTo(static_cast<unsigned>(c.pipeline.getHolding()));
  return state;
}

/// What the conditional gives: `value` of this arm, `otherwise` of the other one.
Value givenBy(RewriterBase &rewriter, scf::IfOp branch, Block *arm, Value value, Value otherwise) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(branch);
  llvm::SmallVector<Type> types(branch.getResultTypes());
  types.push_back(value.getType());
  auto wide = scf::IfOp::create(rewriter, branch.getLoc(), types, branch.getCondition(), /*withElseRegion=*/true);
  wide->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  for (auto [from, to] : llvm::zip_equal(branch->getRegions(), wide->getRegions())) {
    const bool here = &from.front() == arm;
    to.takeBody(from);
    auto yield = cast<scf::YieldOp>(to.front().getTerminator());
    rewriter.modifyOpInPlace(yield, [&] { yield.getResultsMutable().append(here ? value : otherwise); });
  }
  rewriter.replaceOp(branch, wide.getResults().drop_back());
  return wide.getResults().back();
}

void carry(scf::ForOp loop, const Target &target) {
  IRRewriter rewriter(loop.getContext());
  llvm::SmallVector<Candidate> candidates = candidatesOf(loop, target);
  llvm::SmallVector<Value> inits;
  for (Candidate &c : candidates) {
    rewriter.setInsertionPoint(loop);
    inits.push_back(rewriter.clone(*c.pipeline)->getResult(0));
  }
  if (inits.empty())
    return;
  const unsigned before = loop.getNumResults();
  scf::ForOp wide = carryAlso(rewriter, loop, inits);
  auto yield = cast<scf::YieldOp>(wide.getBody()->getTerminator());
  for (auto [i, c] : llvm::enumerate(candidates)) {
    const auto at = before + static_cast<unsigned>(i);
    rewriter.setInsertionPoint(c.drain);
    Value end = settled(rewriter, c);
    if (auto branch = dyn_cast<scf::IfOp>(c.drain->getParentOp()); branch && branch->getBlock() == wide.getBody())
      end = givenBy(rewriter, branch, c.drain->getBlock(), end, wide.getRegionIterArg(at));
    yield.setOperand(at, end);
    rewriter.replaceOp(c.pipeline, wide.getRegionIterArg(at));
    rewriter.setInsertionPointAfter(wide);
    DrainOp::create(rewriter, c.drain.getLoc(), wide.getResult(at));
    rewriter.eraseOp(c.drain);
  }
}

struct CarryPipelines : impl::CarryPipelinesBase<CarryPipelines> {
  void runOnOperation() override {
    const auto all = [](llvm::ArrayRef<scf::ForOp> loops, const Target &target) {
      for (scf::ForOp loop : loops)
        carry(loop, target);
    };
    if (failed(forEachLoops(getOperation(), isOverPrograms, all)))
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln
