// A tile that a program of a loop over programs loads once, for products of warpgroups, comes by the copy engine into a
// pipeline of one slot.
//
//   for program ..:                    for program ..:
//     q = load                           a pipeline of one slot: acquired, filled, committed, waited for
//     .. products read q ..       =>     .. products read the slot ..
//                                        release it
//                                        drain the pipeline
//
// carry-pipelines then makes one pipeline of all programs': the next program's tile is fetched once no product of this
// one reads its own.
#include "compiler/passes/Pass.h"
#include "compiler/passes/pipelines/PipelinedLoops.h"

#include "compiler/passes/pipelines/StagedLoads.h"
#include "compiler/passes/pipelines/TensorCopies.h"
#include "compiler/passes/shared/WarpgroupOperands.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/FetchProgramTiles.inc"

using namespace tile_gpu;

namespace {

/// The loop's stores and atomic operations do not meet what the load reads: a copy for the next program passes them.
bool mayPassWrites(scf::ForOp loop, tile::LoadViewOp load, const analysis::PointerRoots &roots) {
  const analysis::Roots read = roots.of(load.getView());
  return !loop.getBody()
              ->walk([&](Operation *op) {
                const Value to = writtenBy(op);
                return acquires(op) || (to && analysis::mayOverlap(read, roots.of(to))) ? WalkResult::interrupt()
                                                                                        : WalkResult::advance();
              })
              .wasInterrupted();
}

void fetch(tile::LoadViewOp load, const Target &target, const analysis::AxisAnalysis &facts) {
  const auto operands = warpgroupOperands(load.getResult());
  const auto unit = load.getView().getType().getUnit();
  if (!operands || unit == tile::ViewType::noUnit || load.getCache() == tile::Cache::Volatile)
    return;
  const BufferType type = warpgroupBuffer(cast<RankedTensorType>(load.getType()), *operands,
                                          static_cast<unsigned>(unit), tile::memoryName(load.getView()));
  const Result<TensorCopy> copy =
      type ? tensorCopyOf(load, type, facts, target) : Result<TensorCopy>(Status::invalid("no layout"));
  Operation *last = lastLook(load, *operands);
  if (!copy || last->hasTrait<OpTrait::IsTerminator>())
    return;
  const Location loc = load.getLoc();
  IRRewriter b(load);
  const PipelineType pipe = PipelineType::get(load.getContext(), 1, {type});
  Value state = PipelineOp::create(b, loc, pipe, /*bulk=*/true, /*holding=*/0);
  auto acquire = AcquireOp::create(b, loc, state);
  copy->create(b, load, acquire.getBuffers().front(), IRMapping());
  state = CommitOp::create(b, loc, acquire.getNext());
  auto wait = WaitOp::create(b, loc, state);
  auto read = LocalLoadOp::create(b, loc, load.getType(), wait.getBuffers().front());
  read->setAttr(heldForProducts, b.getUnitAttr());
  b.replaceOp(load, read);
  b.setInsertionPointAfter(last);
  state = ReleaseOp::create(b, loc, wait.getNext());
  DrainOp::create(b, loc, state);
}

struct FetchProgramTiles : impl::FetchProgramTilesBase<FetchProgramTiles> {
  void runOnOperation() override {
    const auto all = [](llvm::ArrayRef<scf::ForOp> loops, const Target &target) {
      if (!target.has(Capability::Tma))
        return;
      const auto function = loops.front()->getParentOfType<func::FuncOp>();
      const analysis::AxisAnalysis facts(function);
      const analysis::PointerRoots roots(function);
      for (scf::ForOp loop : loops)
        for (tile::LoadViewOp load : llvm::make_early_inc_range(loop.getBody()->getOps<tile::LoadViewOp>()))
          if (mayPassWrites(loop, load, roots))
            fetch(load, target, facts);
    };
    if (failed(forEachLoops(getOperation(), isOverPrograms, all)))
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln
