#include "compiler/passes/barriers/BarrierSearch.h"

#include "compiler/passes/barriers/GlobalAccess.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

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

/// One access of an operation: to a buffer, to global memory, or to both.
struct Access {
  Operation *op = nullptr;
  std::optional<SharedFootprint> shared;
  std::optional<GlobalAccess> global;

  const SlotNumber *slot() const { return shared && shared->slotNumber() ? &*shared->slotNumber() : nullptr; }
};

/// The copy engine writes it.
bool isCopied(const Access &access) {
  return access.shared && access.shared->writes() &&
         llvm::any_of(tile::accessesOf(access.op),
                      [](const tile::MemoryAccess &one) { return one.inFlight && one.agent == tile::Agent::BulkCopy; });
}

/// An access that comes later on a path.
struct Past {
  const Access *access = nullptr;
  unsigned carried = 0; ///< 1: of an earlier round of a loop that it is in
  /// Rounds since then of the loop that counts its slot, modulo the number of slots; `unknown` where that loop has been
  /// entered again.
  int64_t rounds = 0;
  /// The loop around that was entered last since then, and which of its rounds this is, from 0 on; of accesses to one
  /// buffer of several.
  Operation *entered = nullptr;
  int64_t round = 0;
  static constexpr int64_t unknown = -1, mostRounds = 4; ///< that are told apart: a barrier comes soon

  auto key() const { return std::tuple(access, carried, rounds, entered, round); }
};
using PastKey = decltype(Past().key());
/// What lies after an access on every path.
struct Synced {
  bool warp = false;     ///< a barrier of the warp
  bool elected = false;  ///< the elected thread has waited for an mbarrier that says that it is done
  bool computes = false; ///< the warps that compute have, or a barrier of them; only where others copy

  bool operator==(const Synced &) const = default;
  Synced operator&(const Synced &o) const { return {warp && o.warp, elected && o.elected, computes && o.computes}; }
};
/// Accesses since the last barrier of the block, on some path.
using Pending = llvm::MapVector<PastKey, Synced>;

bool sameState(const Pending &a, const Pending &b) {
  return a.size() == b.size() && llvm::all_of(a, [&](const auto &entry) {
           auto it = b.find(entry.first);
           return it != b.end() && it->second == entry.second;
         });
}

void join(Pending &into, const Pending &other) {
  for (const auto &[past, synced] : other) {
    auto [it, fresh] = into.insert({past, synced});
    if (!fresh)
      it->second = it->second & synced;
  }
}

Past pastOf(const PastKey &key) {
  return std::make_from_tuple<Past>(key);
}

/// Another round of the loop begins.
void nextRound(Pending &state, Operation *loop) {
  Pending aged;
  for (const auto &[key, synced] : state) {
    Past past = pastOf(key);
    past.carried |= unsigned(loop->isProperAncestor(past.access->op));
    if (const SlotNumber *slot = past.access->slot(); slot && past.rounds != Past::unknown) {
      scf::ForOp counts = slot->loop;
      if (loop == counts)
        past.rounds = (past.rounds + 1) % slot->count;
      else if (loop->isProperAncestor(counts))
        past.rounds = Past::unknown;
    }
    if (past.access->shared && past.access->shared->constantNumber()) {
      if (loop->isProperAncestor(past.access->op)) {
        past.entered = nullptr;
        past.round = 0;
      } else {
        // The next round of the loop entered last; a round of a loop around that one; else this loop is entered.
        if (past.entered == loop)
          past.round =
              past.round == Past::unknown || past.round + 1 == Past::mostRounds ? Past::unknown : past.round + 1;
        else
          past.round = past.entered && loop->isProperAncestor(past.entered) ? Past::unknown : 0;
        past.entered = loop;
      }
    }
    Pending one;
    one[past.key()] = synced;
    join(aged, one);
  }
  state = std::move(aged);
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
      if (!of.empty())
        accesses[op] = std::move(of);
      Result<std::vector<SharedFootprint>> buffers = SharedFootprint::releasedBy(op);
      if (!buffers) {
        (void)report(op, buffers.status());
        return WalkResult::interrupt();
      }
      for (SharedFootprint &one : *buffers)
        released[op].push_back({op, std::move(one), std::nullopt});
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
    llvm::SmallVector<std::pair<PastKey, const Access *>> old;
    for (const auto &[pair, hazard] : hazards)
      if (publishes(std::get<0>(pair.first)->op) || publishes(pair.second->op))
        old.push_back(pair);
    for (const auto &pair : old)
      hazards.erase(pair);
  }

  /// There is a hazard.
  bool search() {
    found.reset();
    Pending state;
    walk(function.getBody().front(), state);
    return found.has_value();
  }

  /// Makes the barriers that are missing.
  void mend() {
    mending = true;
    do {
      again.reset();
      Pending state;
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

  Hazard between(const Past &past, const Access &now) {
    auto [it, fresh] = hazards.insert({{past.key(), &now}, Hazard::None});
    if (fresh) {
      const Access &before = *past.access;
      const auto known = [](int64_t n) { return n == Past::unknown ? std::nullopt : std::optional(n); };
      if (before.shared && now.shared) {
        const bool inFront = past.entered && now.slot() && now.slot()->loop == past.entered;
        it->second =
            before.shared->against(*now.shared, known(past.rounds), known(inFront ? past.round : Past::unknown));
      }
      if (before.global && now.global)
        it->second = std::max(it->second, before.global->against(*now.global, past.carried));
    }
    return it->second;
  }

  void walk(Block &block, Pending &state) {
    for (Operation &op : block) {
      if (stopped())
        return;
      step(&op, state);
    }
  }
  bool stopped() const { return found || again; }

  void step(Operation *op, Pending &state) {
    if (isBarrier(op))
      return barrier(op, state);
    if (accesses.contains(op))
      return access(op, state);
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Pending other = state;
      walk(branch.getThenRegion().front(), state);
      if (!branch.getElseRegion().empty())
        walk(branch.getElseRegion().front(), other);
      join(state, other);
    } else if (auto one = dyn_cast<ElectedOp>(op)) {
      walk(one.getBody().front(), state);
    } else if (isa<scf::ForOp, scf::WhileOp>(op)) {
      const Pending entry = around.empty() ? state : Pending();
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

  void loop(Operation *op, Pending &state) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return repeat(state, [&](Pending &s) {
        nextRound(s, op);
        walk(*loop.getBody(), s);
      });
    // before (after before)*: the loop is left after `before`.
    auto loop = cast<scf::WhileOp>(op);
    walk(loop.getBefore().front(), state);
    around.back().walked = true;
    repeat(state, [&](Pending &s) {
      walk(loop.getAfter().front(), s);
      nextRound(s, op);
      walk(loop.getBefore().front(), s);
    });
  }

  /// No round of the body, one, two, ...: until the state is stable.
  void repeat(Pending &state, llvm::function_ref<void(Pending &)> body) {
    for (;;) {
      Pending after = state;
      body(after);
      around.back().walked = true;
      Pending joined = state;
      join(joined, after);
      if (stopped() || sameState(joined, state))
        return;
      state = std::move(joined);
    }
  }

  void barrier(Operation *op, Pending &state) {
    const tile::MemoryOrdering ordering = *tile::orderingOf(op);
    if (ordering.joinsBlock(warpsOf(op).count * layout::warpSize)) {
      if (!apart || !ordering.threads)
        return state.clear();
      for (auto &[past, synced] : state) // the thread that copies does not come
        if (!isElected(pastOf(past).access->op))
          synced.warp = synced.computes = true;
    } else if (ordering.joinsWarps()) {
      joinWarps(state);
    }
  }

  static void joinWarps(Pending &state) {
    for (auto &[past, synced] : state)
      synced.warp = true;
  }

  /// What an mbarrier hands on: a wait for a phase says of which buffers all is done that came before; an arrival of
  /// each warp comes after all of its lanes.
  void handOff(Operation *op, Pending &state) {
    const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op);
    if (!ordering || !ordering->handoff)
      return;
    const bool elected = isElected(op);
    if (ordering->arrives && !elected)
      joinWarps(state);
    const auto it = released.find(op);
    if (it == released.end())
      return;
    // All wait for what was copied there; for what others read there, one thread does.
    const auto isReady = [&](const PastKey &key) {
      const Past past = pastOf(key);
      return (elected || isCopied(*past.access)) && llvm::any_of(it->second, [&](const Access &ready) {
               return past.access->shared && past.access->shared->buffer() &&
                      past.access->shared->buffer() == ready.shared->buffer() && between(past, ready) != Hazard::None;
             });
    };
    if (!elected && !apart)
      return state.remove_if([&](const auto &entry) { return isReady(entry.first); });
    for (auto &[key, synced] : state)
      (elected ? synced.elected : synced.computes) |= isReady(key);
  }

  void access(Operation *op, Pending &state) {
    const std::vector<Access> &all = accesses.find(op)->second;
    // A wait only publishes: what it waits for accessed memory before, by itself.
    const bool elected = isElected(op);
    for (const Access &now : publishes(op) ? llvm::ArrayRef<Access>() : llvm::ArrayRef<Access>(all)) {
      for (const auto &[key, synced] : state) {
        if (elected ? synced.elected : synced.computes)
          continue;
        const Past past = pastOf(key);
        const Found here{past.access->op, op, between(past, now)};
        if (here.kind == Hazard::Warps || (here.kind == Hazard::Lanes && !synced.warp))
          if (!found || here.worseThan(*found))
            found = here;
        if (neighbour && past.access->shared && now.shared)
          reportNeighbours(*past.access, now);
      }
    }
    if (mending && found)
      makeBarrierHere(op, state);
    handOff(op, state);
    for (const Access &now : all)
      state[Past{&now}.key()] = {};
  }

  /// A new barrier changes nothing that was walked before it, so the walk goes on from there; unless it stands
  /// elsewhere, or an earlier round of a loop around was walked without it.  Then the outermost loop begins again, or
  /// the function.
  void makeBarrierHere(Operation *op, Pending &state) {
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
  llvm::DenseMap<std::pair<PastKey, const Access *>, Hazard> hazards;
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
