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
  event.elected = op && isElected(op);
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
  return build(region.front().begin(), region.front().end());
}

bool BarrierPaths::build(Block::iterator from, Block::iterator to) {
  for (; from != to; ++from) {
    auto counted = dyn_cast<scf::ForOp>(*from);
    if (!counted) {
      if (!step(&*from))
        return false;
      continue;
    }
    const Rounds all = roundsOf(counted, numbers, std::min(mostRounds, mostCopies / copies));
    Operation *last = lastGoingBy(counted);
    if (last && copies * all.states.size() <= mostCopies) {
      // As far as what loops on the way end with.
      for (Operation *op = counted->getNextNode(); op != last->getNextNode(); op = op->getNextNode())
        if (auto loop = dyn_cast<scf::ForOp>(op))
          if (Operation *further = lastGoingBy(loop); further && last->isBeforeInBlock(further))
            last = further;
      if (!forked(counted, all, std::next(last->getIterator())))
        return false;
      from = last->getIterator();
      continue;
    }
    const std::optional<Exits> exits = loop(counted, all);
    if (!exits)
      return false;
    leave(counted, *exits);
  }
  return true;
}

bool BarrierPaths::forked(scf::ForOp op, const Rounds &all, Block::iterator to) {
  const std::optional<Exits> exits = loop(op, all);
  if (!exits)
    return false;
  const KnownNumbers outside = numbers;
  Ends after;
  copies *= all.states.size();
  for (const auto &[k, state] : llvm::enumerate(all.states)) {
    ends.clear();
    for (const auto &[left, event] : *exits)
      if (left == k)
        ends.push_back(event);
    add(Event::Turn, op);
    numbers = outside;
    for (auto [argument, result] : llvm::zip_equal(op.getRegionIterArgs(), op.getResults()))
      if (const std::optional<APInt> number = state.of(argument))
        numbers.set(result, *number);
    if (!build(std::next(op->getIterator()), to))
      return false;
    after.append(ends);
  }
  copies /= all.states.size();
  numbers = outside;
  ends = after;
  add(Event::Turn, op); // one end again
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
  if (auto one = dyn_cast<ElectedOp>(op))
    return build(one.getBody());
  if (auto free = dyn_cast<scf::WhileOp>(op))
    return loop(free);
  if (isa<CallOpInterface>(op)) {
    op->emitError("cannot be proved: what the called function does to shared memory is not known here; inline it");
    return false;
  }
  if (op->getNumRegions() > 0)
    return opaque(op);
  if (!access(op))
    return false;
  if (isa<MbarrierInitOp, MbarrierInvalidateOp>(op)) {
    const unsigned bytes = events.back().access;
    events[add(isa<MbarrierInitOp>(op) ? Event::Init : Event::Invalidate, op)].access = bytes;
  }
  return true;
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
  if (ordering.handoff) {
    if (ordering.arrives && !isElected(op)) // a warp arrives after its lanes have met
      add(Event::WarpBarrier, op);
    Event &event = events[add(ordering.arrives ? Event::Arrive : Event::PhaseWait, op)];
    event.mbarrier = mbarrierOf(ordering.handoff->barriers, ordering.handoff->number);
    if (const std::optional<APInt> phase = numbers.of(ordering.handoff->phase); phase && phase->ule(1))
      event.phase = static_cast<int>(phase->getZExtValue());
  }
}

int BarrierPaths::mbarrierOf(Value barriers, Value number) {
  auto alloc = barriers.getDefiningOp<LocalAllocOp>();
  const std::optional<APInt> known = numbers.of(number);
  const auto count = static_cast<uint64_t>(cast<MbarriersType>(barriers.getType()).getCount());
  if (!alloc || !known || known->uge(count))
    return Event::unknown;
  const Mbarrier one{alloc, known->getSExtValue()};
  auto it = llvm::find(mbarriers, one);
  if (it == mbarriers.end())
    it = mbarriers.insert(it, one);
  return static_cast<int>(it - mbarriers.begin());
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
  auto copy = dyn_cast<TensorCopyOp>(op);
  const int counts = copy && copy.getBarriers() ? mbarrierOf(copy.getBarriers(), copy.getNumber()) : Event::unknown;
  for (unsigned number : it->second) {
    Event &event = events[add(Event::Access, op)];
    event.access = number;
    event.mbarrier = counts;
  }
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

std::optional<BarrierPaths::Exits> BarrierPaths::loop(scf::ForOp op, const Rounds &all) {
  const KnownNumbers outside = numbers;
  copies *= all.states.size();
  std::optional<Exits> exits = rounds(op, all.states.size(), all.back, [&](size_t k) {
    numbers = all.states[k];
    return build(op.getRegion());
  });
  copies /= all.states.size();
  numbers = outside;
  return exits;
}

bool BarrierPaths::loop(scf::WhileOp op) {
  // before (after before)*: the loop is left after `before`.
  if (!build(op.getBefore()))
    return false;
  const std::optional<Exits> exits =
      rounds(op, 1, 0, [&](size_t) { return build(op.getAfter()) && build(op.getBefore()); });
  if (exits)
    leave(op, *exits);
  return exits.has_value();
}

std::optional<BarrierPaths::Exits> BarrierPaths::rounds(Operation *op, size_t count, size_t back,
                                                        llvm::function_ref<bool(size_t)> body) {
  Exits left;
  for (unsigned e : ends)
    left.push_back({0, e});
  llvm::SmallVector<unsigned> heads;
  add(Event::Turn, op, "into the loop");
  for (size_t k = 0; k < count; ++k) {
    heads.push_back(add(Event::Turn, op));
    if (!body(k))
      return std::nullopt;
    for (unsigned e : ends)
      left.push_back({k + 1 < count ? k + 1 : back, e});
    const unsigned next = add(Event::Turn, op, "into the loop's next round");
    if (k + 1 == count)
      events[next].next.push_back(heads[back]);
  }
  return left;
}

void BarrierPaths::leave(Operation *op, const Exits &exits) {
  ends.clear();
  for (const auto &[state, event] : exits)
    ends.push_back(event);
  add(Event::Turn, op); // one end again
}

/// An operation whose regions are not control flow that is known here.
bool BarrierPaths::opaque(Operation *op) {
  const WalkResult walked = op->walk([&](Operation *inner) {
    if (inner == op)
      return WalkResult::advance();
    const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(inner);
    const bool quiet = chosenBy(inner).empty() && !isa<CallOpInterface>(inner) &&
                       !(ordering && (ordering->ordersGroups() || ordering->handoff)) &&
                       (copied.empty() || !writtenTo(inner));
    return quiet ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (!walked.wasInterrupted())
    return true;
  op->emitError("cannot be proved: '") << op->getName() << "' is no control flow that the proof knows";
  return false;
}

} // namespace kiln::proof
