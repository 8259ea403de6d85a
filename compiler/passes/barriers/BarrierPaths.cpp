#include "compiler/passes/barriers/BarrierPaths.h"

using namespace mlir;

namespace kiln::proof {

using namespace tile_gpu;

namespace {

/// A loop has at most `mostRounds` copies, code in nested ones at most `mostCopies` in all.
constexpr size_t mostRounds = 32, mostCopies = 1024;

} // namespace

BarrierPaths::BarrierPaths(func::FuncOp function)
    : threads(warpsOf(function).count * layout::warpSize), copyWarps(tile::numCopyWarps(function)) {
  function.walk([&](Operation *op) {
    if (std::optional<MemoryOrigin> from = copiedFrom(op))
      copied[op] = std::move(*from);
    if (std::optional<MemoryOrigin> about = releasedBy(op))
      released.push_back(std::move(*about));
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
  Ways ways;
  if (!build(region.front().begin(), region.front().end(), ways))
    return false;
  merge(region.getParentOp(), std::move(ways));
  return true;
}

void BarrierPaths::take(Way way) {
  ends = std::move(way.ends);
  numbers = std::move(way.numbers);
}

void BarrierPaths::merge(Operation *op, Ways ways) {
  if (ways.size() == 1)
    return take(std::move(ways.front()));
  Way one = ways.front();
  for (const Way &way : llvm::drop_begin(ways)) {
    one.ends.append(way.ends);
    one.numbers = one.numbers & way.numbers;
  }
  take(std::move(one));
  add(Event::Turn, op); // one end again
}

bool BarrierPaths::build(Block::iterator from, Block::iterator to, Ways &out, ValueRange wanted) {
  for (; from != to; ++from) {
    Operation *const op = &*from;
    auto counted = dyn_cast<scf::ForOp>(op);
    auto branch = dyn_cast<scf::IfOp>(op);
    if (!counted && !branch) {
      if (!step(op))
        return false;
      continue;
    }
    Ways ways;
    if (!(counted ? loop(counted, ways) : conditional(branch, ways)))
      return false;
    Operation *last = ways.size() > 1 ? lastGoingBy(op, wanted) : nullptr;
    if (!last || copies * ways.size() > mostCopies) {
      merge(op, std::move(ways));
      continue;
    }
    // As far as what loops and conditionals on the way end with.
    for (Operation *inner = op->getNextNode(); inner != last->getNextNode(); inner = inner->getNextNode())
      if (isa<scf::ForOp, scf::IfOp>(inner))
        if (Operation *further = lastGoingBy(inner, wanted); further && last->isBeforeInBlock(further))
          last = further;
    const bool past = to != op->getBlock()->end() && !last->isBeforeInBlock(&*to);
    const auto end = past ? to : std::next(last->getIterator());
    const size_t count = ways.size();
    Ways after;
    copies *= count;
    for (Way &way : ways) {
      take(std::move(way));
      add(Event::Turn, op);
      if (!build(std::next(op->getIterator()), end, after, wanted))
        return false;
    }
    copies /= count;
    if (end == to) { // what is around goes by it
      out.append(after.begin(), after.end());
      return true;
    }
    merge(op, std::move(after));
    from = last->getIterator();
  }
  out.push_back({ends, numbers});
  return true;
}

bool BarrierPaths::step(Operation *op) {
  if (const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op)) {
    if (!access(op)) // what the operation itself begins, it may also end
      return false;
    order(op, *ordering);
    return true;
  }
  if (isa<RolesOp>(op)) {
    op->emitError("cannot be proved: roles are cut from a kernel whose barriers are proved, and not proved themselves");
    return false;
  }
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
    events[add(Event::BlockBarrier, op)].all = !copyWarps || !ordering.threads;
  if (ordering.joinsWarps())
    add(Event::WarpBarrier, op);
  if (ordering.closes)
    events[add(Event::Commit, op)].series = *ordering.closes;
  if (ordering.awaits) {
    Event &event = events[add(Event::Wait, op)];
    event.series = *ordering.awaits;
    event.groups = ordering.inFlight.value_or(0);
    event.readsOnly = ordering.readsOnly;
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

void BarrierPaths::accessGlobal(Operation *op) {
  if (copied.empty() && released.empty())
    return;
  const auto event = [&](Event::Kind kind, const MemoryOrigin &of) -> Event & {
    Event &out = events[add(kind, op)];
    out.access = static_cast<unsigned>(writes.size());
    writes.push_back(of);
    return out;
  };
  const std::optional<MemoryOrigin> about = releasedBy(op), to = writtenTo(op);
  if (about)
    event(Event::Release, *about);
  if (!to)
    return;
  const auto meets = [&](const MemoryOrigin &other) { return mayMeet(*to, other); };
  if (!about && llvm::any_of(released, meets)) {
    Event &made = event(Event::Change, *to);
    for (const tile::MemoryAccess &access : tile::accessesOf(op))
      if (access.in<tile::GlobalMemory>() && access.writes && access.inFlight) {
        made.goesOn = true;
        made.series = access.agent;
      }
  }
  if (llvm::any_of(copied, [&](const auto &from) { return meets(from.second); }))
    event(Event::GlobalWrite, *to);
}

bool BarrierPaths::access(Operation *op) {
  accessGlobal(op);
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

bool BarrierPaths::conditional(scf::IfOp op, Ways &out) {
  const Way before{ends, numbers};
  bool several = false; // numbers come out of it
  for (auto [i, region] : llvm::enumerate(op->getRegions())) {
    take(before);
    add(Event::Turn, op,
        i == 0           ? "into the 'then' arm"
        : region.empty() ? "past the conditional"
                         : "into the 'else' arm");
    if (region.empty()) {
      out.push_back({ends, numbers});
      continue;
    }
    if (!region.hasOneBlock())
      return build(region);
    llvm::SmallVector<Value> results;
    for (const Value v : region.front().getTerminator()->getOperands())
      if (v.getType().isIntOrIndex())
        results.push_back(v);
    several |= !results.empty();
    Ways ways;
    if (!build(region.front().begin(), region.front().end(), ways, results))
      return false;
    for (Way &way : ways) {
      KnownNumbers after = before.numbers;
      for (auto [result, v] : llvm::zip_equal(op.getResults(), region.front().getTerminator()->getOperands()))
        if (const std::optional<APInt> number = way.numbers.of(v))
          after.set(result, *number);
      out.push_back({std::move(way.ends), std::move(after)});
    }
  }
  if (!several) {
    merge(op, std::exchange(out, {}));
    out.push_back({ends, before.numbers});
  }
  return true;
}

bool BarrierPaths::loop(scf::ForOp op, Ways &out) {
  const Rounds all = roundsOf(op, numbers, std::min(mostRounds, mostCopies / copies));
  if (!all.whole) {
    const Explored explored = explore(op, all.wanted, out);
    if (explored != Explored::NotKnown)
      return explored == Explored::Done;
  }
  const KnownNumbers outside = numbers;
  const std::optional<Exits> exits = rounds(op, all);
  if (!exits)
    return false;
  for (const auto &[k, state] : llvm::enumerate(all.states)) {
    Way &way = out.emplace_back();
    way.numbers = outside;
    for (const auto &[left, event] : *exits)
      if (left == k)
        way.ends.push_back(event);
    for (auto [argument, result] : llvm::zip_equal(op.getRegionIterArgs(), op.getResults()))
      if (const std::optional<APInt> number = state.of(argument))
        way.numbers.set(result, *number);
  }
  return true;
}

std::optional<BarrierPaths::Exits> BarrierPaths::rounds(scf::ForOp op, const Rounds &all) {
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

BarrierPaths::Explored BarrierPaths::explore(scf::ForOp op, llvm::ArrayRef<BlockArgument> wanted, Ways &out) {
  using Row = llvm::SmallVector<APInt>;
  constexpr size_t inner = mostRounds; // copies of the loops inside, at most
  if (wanted.empty() || copies * inner > mostCopies)
    return Explored::NotKnown;
  const Way before{ends, numbers};
  const size_t first = events.size();
  const auto yields =
      llvm::map_to_vector(wanted, [&](BlockArgument a) { return op.getTiedLoopYieldedValue(a)->get(); });
  std::vector<Row> rows(1);
  for (BlockArgument a : wanted)
    rows[0].push_back(*numbers.of(op.getTiedLoopInit(a)->get()));
  std::vector<Ends> exits = {ends}; // by row
  add(Event::Turn, op, "into the loop");
  std::vector<unsigned> heads = {add(Event::Turn, op)};
  copies *= inner;
  Explored result = Explored::Done;
  for (size_t k = 0; k < rows.size() && result == Explored::Done; ++k) {
    ends = {heads[k]};
    numbers = before.numbers;
    for (auto [argument, number] : llvm::zip_equal(wanted, rows[k]))
      numbers.set(argument, number);
    Ways ways;
    if (!build(op.getBody()->begin(), op.getBody()->end(), ways, yields)) {
      result = Explored::Failed;
      break;
    }
    for (Way &way : ways) {
      Row row;
      for (const Value v : yields)
        if (const std::optional<APInt> number = way.numbers.of(v))
          row.push_back(*number);
      if (row.size() != wanted.size()) {
        result = Explored::NotKnown;
        break;
      }
      const size_t at = static_cast<size_t>(llvm::find(rows, row) - rows.begin());
      if (at == rows.size()) {
        if (at == mostRounds) {
          result = Explored::NotKnown;
          break;
        }
        rows.push_back(row);
        exits.emplace_back();
        ends.clear();
        heads.push_back(add(Event::Turn, op));
      }
      exits[at].append(way.ends);
      ends = std::move(way.ends);
      events[add(Event::Turn, op, "into the loop's next round")].next.push_back(heads[at]);
    }
  }
  copies /= inner;
  take(before);
  if (result == Explored::NotKnown) { // as if nobody had been there
    for (const unsigned e : ends)
      llvm::erase_if(events[e].next, [&](unsigned n) { return n >= first; });
    events.resize(first);
  }
  if (result != Explored::Done)
    return result;
  for (auto [row, left] : llvm::zip_equal(rows, exits)) {
    Way &way = out.emplace_back(Way{std::move(left), before.numbers});
    for (auto [argument, number] : llvm::zip_equal(wanted, row))
      way.numbers.set(op.getTiedLoopResult(argument), number);
  }
  return result;
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
                       ((copied.empty() && released.empty()) || !writtenTo(inner));
    return quiet ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (!walked.wasInterrupted())
    return true;
  op->emitError("cannot be proved: '") << op->getName() << "' is no control flow that the proof knows";
  return false;
}

} // namespace kiln::proof
