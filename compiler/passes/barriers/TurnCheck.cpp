#include "compiler/passes/barriers/TurnCheck.h"

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::proof {

using namespace tile_gpu;

namespace {

enum class At { None, Others, Own };
constexpr const char *texts[] = {"no turns have begun", "it is another warpgroup's turn",
                                 "it is this warpgroup's turn"};

const char *text(At at) {
  return texts[static_cast<unsigned>(at)];
}

bool isOfTurns(Operation *op) {
  return isa<TurnsBeginOp, TurnTakeOp, TurnPassOp, TurnsEndOp>(op);
}

bool step(Operation *op, At &at, At before, At after) {
  if (at != before) {
    op->emitError() << "comes where " << text(at) << ": it is for where " << text(before);
    return false;
  }
  at = after;
  return true;
}

bool walk(Region &region, At &at);

/// It leaves the turns as it found them.
bool same(Operation *op, Region &region, At at, const char *what) {
  At end = at;
  if (!walk(region, end))
    return false;
  if (end == at)
    return true;
  op->emitError() << what << " ends where " << text(end) << ", and began where " << text(at);
  return false;
}

bool visit(Operation *op, At &at) {
  if (isOfTurns(op))
    return llvm::TypeSwitch<Operation *, bool>(op)
        .Case([&](TurnsBeginOp) { return step(op, at, At::None, At::Others); })
        .Case([&](TurnTakeOp) { return step(op, at, At::Others, At::Own); })
        .Case([&](TurnPassOp) { return step(op, at, At::Own, At::Others); })
        .Default([&](Operation *) { return step(op, at, At::Others, At::None); });
  if (const auto ordering = tile::orderingOf(op);
      at == At::Own && ordering && ordering->meets() && !ordering->joinsWarps()) {
    op->emitError() << "comes where " << text(at) << ": the others never come here, they wait for their turns";
    return false;
  }
  if (!op->getNumRegions())
    return true;
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    At other = at;
    if (!walk(branch.getThenRegion(), at) || !walk(branch.getElseRegion(), other))
      return false;
    if (at == other)
      return true;
    op->emitError() << "one side ends where " << text(at) << ", the other where " << text(other);
    return false;
  }
  const bool loops = isa<scf::ForOp, scf::WhileOp>(op);
  for (Region &region : op->getRegions())
    if (!same(op, region, loops ? at : At::None, loops ? "a round" : "it"))
      return false;
  return true;
}

bool walk(Region &region, At &at) {
  for (Block &block : region)
    for (Operation &op : block)
      if (!visit(&op, at))
        return false;
  return true;
}

} // namespace

bool checkTurns(func::FuncOp function) {
  return same(function, function.getBody(), At::None, "the kernel");
}

} // namespace kiln::proof
