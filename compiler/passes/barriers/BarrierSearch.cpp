#include "compiler/passes/barriers/BarrierSearch.h"

#include "compiler/passes/barriers/PendingAccesses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <map>

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

namespace {

/// Waits for accesses in flight, and so publishes what they wrote.
bool publishes(Operation *op) {
  const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op);
  return ordering && ordering->awaits;
}

/// The copy engine writes it.
bool isCopied(const Access &access) {
  return access.shared && access.shared->writes() &&
         llvm::any_of(tile::accessesOf(access.op),
                      [](const tile::MemoryAccess &one) { return one.inFlight && one.agent == tile::Agent::BulkCopy; });
}

/// Two accesses without the barrier they need.
struct Found {
  Operation *first = nullptr, *second = nullptr;
  Hazard kind = Hazard::None;

  /// Of two hazards at one place the one that needs more, and after a wait before any other.
  bool worseThan(const Found &other) const {
    return std::pair(kind, publishes(first)) > std::pair(other.kind, publishes(other.first));
  }
};

/// Cheapest first.
enum class Joins { Warp, Computing, Block };

/// A named barrier that nobody uses; 0 where there is none.
unsigned freeBarrier(func::FuncOp function) {
  constexpr unsigned most = 15, ofTurns = 8; // turns take those from 1 on, one a warpgroup
  llvm::SmallDenseSet<unsigned> taken;
  function.walk([&](Operation *op) {
    if (auto barrier = dyn_cast<NamedBarrierOp>(op))
      taken.insert(barrier.getId());
    if (auto arrive = dyn_cast<NamedArriveOp>(op))
      taken.insert(arrive.getId());
  });
  unsigned id = most;
  while (id > ofTurns && taken.contains(id))
    --id;
  return id > ofTurns ? id : 0;
}

Operation *makeBarrier(Operation *before, Location loc, Joins who, unsigned ofComputing = 0) {
  OpBuilder b(before);
  switch (who) {
  case Joins::Warp:
    return WarpBarrierOp::create(b, loc);
  case Joins::Computing:
    return NamedBarrierOp::create(b, loc, ofComputing, warpsOf(before).count * layout::warpSize);
  case Joins::Block:
    return BarrierOp::create(b, loc);
  }
  return nullptr;
}

/// The operation to put the barrier before: as late as possible, but before a loop that only the second access is in,
/// and before what one thread does alone; where a wait publishes, after it, for all that comes.
Operation *placeFor(const Found &found) {
  if (publishes(found.first) && found.first->getBlock()->findAncestorOpInBlock(*found.second))
    return found.first->getNextNode();
  Operation *at = found.second;
  for (Operation *p = at->getParentOp(); p && !p->isAncestor(found.first); p = p->getParentOp())
    if (isa<scf::ForOp, scf::WhileOp>(p))
      at = p;
  if (auto elected = at->getParentOfType<ElectedOp>()) // all others would not come
    at = elected;
  return at;
}

} // namespace

unsigned loopDepth(Operation *op) {
  unsigned depth = 0;
  for (Operation *p = op->getParentOp(); p; p = p->getParentOp())
    depth += isa<scf::ForOp, scf::WhileOp>(p);
  return depth;
}

/// Looks for hazards in a function, as its barriers are now.
struct BarrierSearch::Walk {
  explicit Walk(func::FuncOp function) : function(function), apart(tile::numCopyWarps(function)) {}

  /// What every operation accesses.  Reports what cannot be analysed.
  LogicalResult prepare() {
    const analysis::PointerRoots roots(function);
    const WalkResult walked = function.walk([&](Operation *op) {
      if (isBarrier(op))
        return WalkResult::advance();
      if (tile::orderingOf(op))
        orders.insert(op);
      Result<std::vector<SharedFootprint>> footprints = SharedFootprint::of(op);
      if (!footprints) {
        (void)report(op, footprints.status());
        return WalkResult::interrupt();
      }
      std::vector<Access> of;
      for (SharedFootprint &one : *footprints)
        of.push_back({op, std::move(one), std::nullopt});
      for (auto [i, global] : llvm::enumerate(GlobalAccess::of(op, roots))) {
        if (of.size() == i)
          of.push_back({op, std::nullopt, std::nullopt});
        of[i].global = std::move(global);
      }
      numberAll(of);
      if (!of.empty())
        accesses[op] = std::move(of);
      Result<std::vector<SharedFootprint>> buffers = SharedFootprint::releasedBy(op);
      if (!buffers) {
        (void)report(op, buffers.status());
        return WalkResult::interrupt();
      }
      std::vector<Access> ready;
      for (SharedFootprint &one : *buffers)
        ready.push_back({op, std::move(one), std::nullopt});
      numberAll(ready);
      if (!ready.empty())
        released[op] = std::move(ready);
      if (!op->getNumRegions() && !orders.contains(op) && !accesses.contains(op))
        others.insert(op);
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    return checkControlFlow();
  }

  /// From here on a wait says who copied what it publishes.
  void waitsAreOfOwners() {
    for (auto &[op, of] : accesses) {
      if (!publishes(op))
        continue;
      if (Result<std::vector<SharedFootprint>> exact = SharedFootprint::of(op, SharedFootprint::Waits::OfOwners))
        for (auto [access, one] : llvm::zip(of, *exact))
          access.shared = std::move(one);
    }
    hazards.assign(hazards.size(), {});
  }

  /// There is a hazard.
  bool search() {
    found.reset();
    PendingAccesses state;
    walk(function.getBody().front(), state);
    return found.has_value();
  }

  /// Makes the barriers that are missing.
  void mend() {
    mending = true;
    do {
      again.reset();
      PendingAccesses state;
      walk(function.getBody().front(), state);
    } while (again);
    mending = false;
  }

  /// What such an operation accesses itself is not looked at here: the proof does, and asks for a barrier before it.
  static bool isBarrier(Operation *op) {
    const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op);
    return ordering && ordering->meets();
  }

  LogicalResult checkControlFlow() {
    if (accesses.empty())
      return success();
    const WalkResult walked = function.walk([&](Operation *op) {
      for (Region &region : op->getRegions()) {
        if (isa<scf::IfOp, scf::ForOp, scf::WhileOp, ElectedOp, func::FuncOp>(op) && region.getBlocks().size() <= 1)
          continue;
        bool touches = false;
        region.walk([&](Operation *inner) { touches |= accesses.contains(inner) || isBarrier(inner); });
        if (!touches)
          continue;
        op->emitError("'") << op->getName()
                           << "' holds accesses to memory: barriers are placed in scf.for, scf.if and scf.while";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  void numberAll(std::vector<Access> &of) {
    for (Access &access : of) {
      access.number = static_cast<unsigned>(hazards.size());
      access.elected = isElected(access.op);
      access.copied = isCopied(access);
      hazards.emplace_back();
    }
  }

  Hazard between(unsigned pastNumber, const Access &now) {
    std::vector<std::optional<Hazard>> &known = hazards[now.number];
    if (known.size() <= pastNumber)
      known.resize(pastNumber + 1);
    if (!known[pastNumber])
      known[pastNumber] = hazardOf(pasts[pastNumber], now);
    return *known[pastNumber];
  }
  static Hazard hazardOf(const Past &past, const Access &now) {
    Hazard out = Hazard::None;
    const Access &before = *past.access;
    const auto known = [](int64_t n) { return n == Past::unknown ? std::nullopt : std::optional(n); };
    if (before.shared && now.shared) {
      const bool inFront = past.entered && now.slot() && now.slot()->loop == past.entered;
      out = before.shared->against(*now.shared, known(past.rounds), known(inFront ? past.round : Past::unknown));
    }
    if (before.global && now.global)
      out = std::max(out, before.global->against(*now.global, past.carried));
    return out;
  }

  /// Another round of the loop begins.
  void nextRound(PendingAccesses &state, Operation *loop) {
    PendingAccesses aged;
    state.forEach([&](unsigned past, Synced synced) { aged.join(pasts.inNextRound(past, loop), synced); });
    state = std::move(aged);
  }

  void walk(Block &block, PendingAccesses &state) {
    for (Operation &op : block) {
      if (stopped())
        return;
      if (!others.contains(&op))
        step(&op, state);
    }
  }
  bool stopped() const { return found || again; }

  void step(Operation *op, PendingAccesses &state) {
    if (isBarrier(op))
      return barrier(op, state);
    if (accesses.contains(op))
      return access(op, state);
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      PendingAccesses other = state;
      walk(branch.getThenRegion().front(), state);
      if (!branch.getElseRegion().empty())
        walk(branch.getElseRegion().front(), other);
      state.join(other);
    } else if (auto one = dyn_cast<ElectedOp>(op)) {
      walk(one.getBody().front(), state);
    } else if (isa<scf::ForOp, scf::WhileOp>(op)) {
      const PendingAccesses entry = around.empty() ? state : PendingAccesses();
      for (;;) {
        around.push_back({op});
        loop(op, state);
        around.pop_back();
        if (again != op)
          return;
        again.reset();
        state = entry;
        if (Operation *before = op->getPrevNode(); before && isBarrier(before))
          barrier(before, state); // it may be new
      }
    }
  }

  void loop(Operation *op, PendingAccesses &state) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return repeat(state, [&](PendingAccesses &s) {
        nextRound(s, op);
        walk(*loop.getBody(), s);
      });
    // before (after before)*: the loop is left after `before`.
    auto loop = cast<scf::WhileOp>(op);
    walk(loop.getBefore().front(), state);
    around.back().walked = true;
    repeat(state, [&](PendingAccesses &s) {
      walk(loop.getAfter().front(), s);
      nextRound(s, op);
      walk(loop.getBefore().front(), s);
    });
  }

  /// No round of the body, one, two, ...: until the state is stable.
  void repeat(PendingAccesses &state, llvm::function_ref<void(PendingAccesses &)> body) {
    for (;;) {
      PendingAccesses after = state;
      body(after);
      around.back().walked = true;
      PendingAccesses joined = state;
      joined.join(after);
      if (stopped() || joined == state)
        return;
      state = std::move(joined);
    }
  }

  void barrier(Operation *op, PendingAccesses &state) {
    const tile::MemoryOrdering ordering = *tile::orderingOf(op);
    if (ordering.joinsBlock(warpsOf(op).count * layout::warpSize)) {
      if (!apart || !ordering.threads)
        return state.clear();
      state.update([&](unsigned past, Synced &synced) { // the thread that copies does not come
        if (!pasts[past].access->elected)
          synced.warp = synced.computes = true;
        return true;
      });
    } else if (ordering.joinsWarps()) {
      joinWarps(state);
    }
  }

  static void joinWarps(PendingAccesses &state) {
    state.update([](unsigned, Synced &synced) { return synced.warp = true; });
  }

  /// What an mbarrier hands on: a wait for a phase says of which buffers all is done that came before; an arrival of
  /// each warp comes after all of its lanes.
  void handOff(Operation *op, PendingAccesses &state) {
    const auto ordering = orders.contains(op) ? tile::orderingOf(op) : std::nullopt;
    if (!ordering || !ordering->handoff)
      return;
    const bool elected = isElected(op);
    if (ordering->arrives && !elected)
      joinWarps(state);
    const auto it = released.find(op);
    if (it == released.end())
      return;
    // All wait for what was copied there; for what others read there, one thread does.
    const auto isReady = [&](unsigned number) {
      const Access &past = *pasts[number].access;
      return (elected || past.copied) && llvm::any_of(it->second, [&](const Access &ready) {
               return past.shared && past.shared->buffer() && past.shared->buffer() == ready.shared->buffer() &&
                      between(number, ready) != Hazard::None;
             });
    };
    state.update([&](unsigned past, Synced &synced) {
      const bool ready = isReady(past);
      if (!elected && !apart)
        return !ready;
      (elected ? synced.elected : synced.computes) |= ready;
      return true;
    });
  }

  void access(Operation *op, PendingAccesses &state) {
    const std::vector<Access> &all = accesses.find(op)->second;
    // A wait only publishes: what it waits for accessed memory before, by itself.
    const bool elected = isElected(op);
    for (const Access &now : publishes(op) ? llvm::ArrayRef<Access>() : llvm::ArrayRef<Access>(all))
      state.forEach([&](unsigned past, Synced synced) {
        if (elected ? synced.elected : synced.computes)
          return;
        const Access &before = *pasts[past].access;
        const Hazard kind = between(past, now);
        if (kind == Hazard::Warps || (kind == Hazard::Lanes && !synced.warp))
          if (const Found here{before.op, op, kind}; !found || here.worseThan(*found))
            found = here;
        if (neighbour && before.shared && now.shared)
          reportNeighbours(before, now);
      });
    if (mending && found)
      makeBarrierHere(op, state);
    handOff(op, state);
    for (const Access &now : all)
      state.set(pasts.number({.access = &now}), {});
  }

  /// A new barrier changes nothing that was walked before it, so the walk goes on from there; unless it stands
  /// elsewhere, or an earlier round of a loop around was walked without it.  Then the outermost loop begins again, or
  /// the function.
  void makeBarrierHere(Operation *op, PendingAccesses &state) {
    Operation *place = placeFor(*found);
    Operation *barrier =
        made.emplace_back(makeBarrier(place, op->getLoc(), found->kind == Hazard::Warps ? Joins::Block : Joins::Warp));
    found.reset();
    if (place == op && llvm::none_of(around, [](const Around &a) { return a.walked; }))
      return this->barrier(barrier, state);
    Operation *outermost = around.empty() ? nullptr : around.front().loop;
    again = outermost && (place == outermost || outermost->isAncestor(barrier)) ? outermost : nullptr;
  }

  void reportNeighbours(const Access &past, const Access &now) {
    LocalAllocOp first = past.shared->buffer(), second = now.shared->buffer();
    if (first && second && first != second && past.shared->ifShared(*now.shared) == Hazard::Warps)
      neighbour(first, second, placeFor({past.op, now.op, Hazard::Warps}));
  }

  /// A loop that the walk is in, and whether it has been through parts of it before.
  struct Around {
    Operation *loop = nullptr;
    bool walked = false;
  };

  func::FuncOp function;
  const bool apart;                                    ///< warps that copy have the elected thread
  std::map<Operation *, std::vector<Access>> accesses; ///< places that stay: pasts point there
  std::map<Operation *, std::vector<Access>> released; ///< by waits for mbarriers
  llvm::DenseSet<Operation *> orders, others;          ///< that order accesses; that have no part in this
  PastTable pasts;
  std::vector<std::vector<std::optional<Hazard>>> hazards; ///< by the later access and the number of the past one
  std::optional<Found> found;
  bool mending = false;
  llvm::SmallVector<Operation *> made;
  llvm::SmallVector<Around> around; ///< outermost first
  std::optional<Operation *> again; ///< the loop to begin again; null: the function
  Neighbours neighbour;
};

BarrierSearch::BarrierSearch(func::FuncOp function) : walk(std::make_unique<Walk>(function)) {}
BarrierSearch::~BarrierSearch() = default;
LogicalResult BarrierSearch::prepare() {
  return walk->prepare();
}
bool BarrierSearch::empty() const {
  return walk->accesses.empty();
}

llvm::SmallVector<Operation *> BarrierSearch::insert() {
  walk->mend();
  llvm::SmallVector<Operation *> made = std::exchange(walk->made, {}), kept;
  walk->waitsAreOfOwners();
  // A barrier that a loop's back edge asked for may do the work of an earlier one: innermost first, try without, and
  // with a cheaper one.
  const unsigned own = walk->apart ? freeBarrier(walk->function) : 0;
  llvm::stable_sort(made, [](Operation *a, Operation *b) { return loopDepth(a) > loopDepth(b); });
  for (Operation *barrier : made) {
    Operation *next = barrier->getNextNode();
    barrier->remove();
    if (!walk->search()) {
      barrier->destroy();
      continue;
    }
    llvm::SmallVector<Joins, 2> cheaper;
    if (isa<BarrierOp>(barrier))
      cheaper.push_back(Joins::Warp);
    if (isa<BarrierOp>(barrier) && own)
      cheaper.push_back(Joins::Computing);
    Operation *instead = nullptr;
    for (const Joins who : cheaper) {
      instead = makeBarrier(next, barrier->getLoc(), who, own);
      if (!walk->search())
        break;
      instead->erase();
      instead = nullptr;
    }
    if (instead)
      barrier->destroy();
    else
      next->getBlock()->getOperations().insert(next->getIterator(), barrier);
    kept.push_back(instead ? instead : barrier);
  }
  return kept;
}

void BarrierSearch::neighbours(Neighbours report) {
  walk->neighbour = report;
  (void)walk->search();
  walk->neighbour = nullptr;
}

} // namespace kiln
