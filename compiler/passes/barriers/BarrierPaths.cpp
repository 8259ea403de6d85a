#include "compiler/passes/barriers/BarrierPaths.h"

using namespace mlir;

namespace kiln::proof {

using namespace tile_gpu;

namespace {

/// A loop has at most `mostRounds` copies, code in nested ones at most `mostCopies` in all.
constexpr size_t mostRounds = 16, mostCopies = 64;

} // namespace

BarrierPaths::BarrierPaths(func::FuncOp function) : threads(warpsOf(function).count * layout::warpSize) {
  function.walk([&](Operation *op) {
    if (std::optional<MemoryOrigin> from = copiedFrom(op))
      copied[op] = std::move(*from);
  });
  events.emplace_back();
  ends = {0};
  failed = !build(function.getBody());
}

unsigned BarrierPaths::add(Event::Kind kind, Operation *op, llvm::StringRef turn) {
  const auto id = static_cast<unsigned>(events.size());
  for (unsigned e : ends)
    events[e].next.push_back(id);
  Event &event = events.emplace_back();
  event.kind = kind;
  event.op = op;
  event.turn = turn;
  ends = {id};
  return id;
}

bool BarrierPaths::build(Region &region) {
  if (region.empty())
    return true;
  if (!region.hasOneBlock()) {
    region.getParentOp()->emitError("cannot be proved: its control flow has branches; barriers are proved in scf.for, "
                                    "scf.if and scf.while");
    return false;
  }
  for (Operation &op : region.front())
    if (!step(&op))
      return false;
  return true;
}

bool BarrierPaths::step(Operation *op) {
  if (const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op)) {
    if (!access(op)) // what the operation itself begins, it may also end
      return false;
    order(op, *ordering);
    return true;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return conditional(branch);
  if (auto counted = dyn_cast<scf::ForOp>(op))
    return loop(counted);
  if (auto free = dyn_cast<scf::WhileOp>(op))
    return loop(free);
  if (isa<CallOpInterface>(op)) {
    op->emitError("cannot be proved: what the called function does to shared memory is not known here; inline it");
    return false;
  }
  return op->getNumRegions() > 0 ? opaque(op) : access(op);
}

void BarrierPaths::order(Operation *op, const tile::MemoryOrdering &ordering) {
  // A barrier of fewer threads is none for all accesses, nor is an arrival: they prove nothing here.
  if (ordering.joinsBlock(threads))
    add(Event::BlockBarrier, op);
  if (ordering.joinsWarps())
    add(Event::WarpBarrier, op);
  if (ordering.closes)
    events[add(Event::Commit, op)].series = *ordering.closes;
  if (ordering.awaits) {
    Event &event = events[add(Event::Wait, op)];
    event.series = *ordering.awaits;
    event.groups = ordering.inFlight.value_or(0);
    mostGroups = std::max(mostGroups, event.groups);
  }
}

bool BarrierPaths::access(Operation *op) {
  if (std::optional<MemoryOrigin> to = copied.empty() ? std::nullopt : writtenTo(op);
      to && llvm::any_of(copied, [&](const auto &from) { return mayMeet(*to, from.second); })) {
    events[add(Event::GlobalWrite, op)].access = static_cast<unsigned>(writes.size());
    writes.push_back(std::move(*to));
  }
  Chosen at;
  for (const Value index : chosenBy(op)) {
    const std::optional<APInt> number = index ? numbers.of(index) : std::nullopt;
    at.push_back(number ? std::optional(number->getSExtValue()) : std::nullopt);
  }
  if (at.empty())
    return true;
  auto it = known.find({op, at});
  if (it == known.end()) {
    Result<std::vector<SharedAccess>> made = accessesOf(op, at);
    if (!made) {
      (void)report(op, made.status());
      return false;
    }
    const auto before = known.lower_bound({op, Chosen()});
    accessOps += before == known.end() || before->first.first != op;
    it = known.insert({{op, at}, {}}).first;
    for (SharedAccess &one : *made) {
      it->second.push_back(static_cast<unsigned>(accesses.size()));
      accesses.push_back(std::move(one));
    }
  }
  for (unsigned number : it->second)
    events[add(Event::Access, op)].access = number;
  return true;
}

bool BarrierPaths::conditional(scf::IfOp op) {
  const Ends before = ends;
  add(Event::Turn, op, "into the 'then' arm");
  if (!build(op.getThenRegion()))
    return false;
  Ends after = ends;
  ends = before;
  if (op.getElseRegion().empty()) {
    add(Event::Turn, op, "past the conditional");
  } else {
    add(Event::Turn, op, "into the 'else' arm");
    if (!build(op.getElseRegion()))
      return false;
  }
  ends.append(after);
  return true;
}

bool BarrierPaths::loop(scf::ForOp op) {
  const KnownNumbers outside = numbers;
  const Rounds all = roundsOf(op, outside, std::min(mostRounds, mostCopies / copies));
  copies *= all.states.size();
  const bool built = rounds(op, all.states.size(), all.back, [&](size_t k) {
    numbers = all.states[k];
    return build(op.getRegion());
  });
  copies /= all.states.size();
  numbers = outside;
  return built;
}

bool BarrierPaths::loop(scf::WhileOp op) {
  // before (after before)*: the loop is left after `before`.
  return build(op.getBefore()) &&
         rounds(op, 1, 0, [&](size_t) { return build(op.getAfter()) && build(op.getBefore()); });
}

bool BarrierPaths::rounds(Operation *op, size_t count, size_t back, llvm::function_ref<bool(size_t)> body) {
  Ends left = ends;
  llvm::SmallVector<unsigned> heads;
  add(Event::Turn, op, "into the loop");
  for (size_t k = 0; k < count; ++k) {
    heads.push_back(add(Event::Turn, op));
    if (!body(k))
      return false;
    left.append(ends);
    const unsigned next = add(Event::Turn, op, "into the loop's next round");
    if (k + 1 == count)
      events[next].next.push_back(heads[back]);
  }
  ends = left;
  add(Event::Turn, op); // one end again
  return true;
}

/// An operation whose regions are not control flow that is known here.
bool BarrierPaths::opaque(Operation *op) {
  const WalkResult walked = op->walk([&](Operation *inner) {
    if (inner == op)
      return WalkResult::advance();
    const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(inner);
    const bool quiet = chosenBy(inner).empty() && !isa<CallOpInterface>(inner) &&
                       !(ordering && ordering->ordersGroups()) && (copied.empty() || !writtenTo(inner));
    return quiet ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (!walked.wasInterrupted())
    return true;
  op->emitError("cannot be proved: '") << op->getName() << "' is no control flow that the proof knows";
  return false;
}

} // namespace kiln::proof
