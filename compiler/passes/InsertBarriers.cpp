#include "compiler/passes/GlobalAccess.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/SharedFootprint.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace kiln {
#define GEN_PASS_DEF_INSERTBARRIERS
#include "compiler/passes/Passes.h.inc"

using namespace tile_gpu;

namespace {

/// What an operation accesses.
struct Accesses {
  std::optional<SharedFootprint> shared;
  std::optional<GlobalAccess> global;
};

/// An access; 1: of an earlier round of a loop that it is in.
using Past = std::pair<Operation *, unsigned>;
/// Accesses since the last barrier of the block, on some path; true: a barrier of the warp lies behind them on every
/// one.
using Pending = llvm::MapVector<Past, bool>;

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
      it->second = it->second && synced;
  }
}

/// Another round of the loop begins.
void nextRound(Pending &state, Operation *loop) {
  Pending aged;
  for (const auto &[past, synced] : state) {
    Pending one;
    one[{past.first, past.second | unsigned(loop->isProperAncestor(past.first))}] = synced;
    join(aged, one);
  }
  state = std::move(aged);
}

/// Two accesses without the barrier they need.
struct Found {
  Operation *first = nullptr, *second = nullptr;
  Hazard kind = Hazard::None;
};

/// Looks for hazards in a function, as its barriers are now.  What operations access and what they need of each other
/// is worked out once.
class Searcher {
public:
  explicit Searcher(func::FuncOp function) : function(function) {}

  /// What every operation accesses.  Reports what cannot be analysed.
  LogicalResult prepare() {
    const analysis::PointerRoots roots(function);
    const WalkResult walked = function.walk([&](Operation *op) {
      if (isBarrier(op))
        return WalkResult::advance();
      Result<std::optional<SharedFootprint>> footprint = SharedFootprint::of(op);
      if (!footprint) {
        (void)report(op, footprint.status());
        return WalkResult::interrupt();
      }
      std::optional<GlobalAccess> global = GlobalAccess::of(op, roots);
      if (footprint->has_value() || global)
        accesses[op] = std::make_unique<Accesses>(Accesses{std::move(*footprint), std::move(global)});
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    return checkControlFlow();
  }
  bool empty() const { return accesses.empty(); }

  /// The first hazard in program order, if there is one.
  std::optional<Found> search() {
    found.reset();
    Pending state;
    walk(function.getBody().front(), state);
    return found;
  }

private:
  static bool isBarrier(Operation *op) { return isa<BarrierOp, WarpBarrierOp, NamedBarrierOp, NamedArriveOp>(op); }

  LogicalResult checkControlFlow() {
    if (empty())
      return success();
    const WalkResult walked = function.walk([&](Operation *op) {
      for (Region &region : op->getRegions()) {
        if (isa<scf::IfOp, scf::ForOp, scf::WhileOp, func::FuncOp>(op) && region.getBlocks().size() <= 1)
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

  Hazard between(const Past &past, Operation *op) {
    auto [it, fresh] = hazards.insert({{past, op}, Hazard::None});
    if (fresh) {
      const Accesses &a = *accesses[past.first], &b = *accesses[op];
      if (a.shared && b.shared)
        it->second = a.shared->against(*b.shared);
      if (a.global && b.global)
        it->second = std::max(it->second, a.global->against(*b.global, past.second));
    }
    return it->second;
  }

  void walk(Block &block, Pending &state) {
    for (Operation &op : block) {
      if (found)
        return;
      step(&op, state);
    }
  }

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
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      repeat(state, [&](Pending &s) {
        nextRound(s, op);
        walk(*loop.getBody(), s);
      });
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      // before (after before)*: the loop is left after `before`.
      walk(loop.getBefore().front(), state);
      repeat(state, [&](Pending &s) {
        walk(loop.getAfter().front(), s);
        nextRound(s, op);
        walk(loop.getBefore().front(), s);
      });
    }
  }

  /// No round of the body, one, two, ...: until the state is stable.
  void repeat(Pending &state, llvm::function_ref<void(Pending &)> body) {
    for (;;) {
      Pending after = state;
      body(after);
      Pending joined = state;
      join(joined, after);
      if (found || sameState(joined, state))
        return;
      state = std::move(joined);
    }
  }

  void barrier(Operation *op, Pending &state) {
    auto named = dyn_cast<NamedBarrierOp>(op);
    if (isa<BarrierOp>(op) || (named && named.getThreads() == tile::numWarps(function) * layout::warpSize)) {
      state.clear();
    } else if (isa<WarpBarrierOp>(op)) {
      for (auto &[past, synced] : state)
        synced = true;
    }
  }

  void access(Operation *op, Pending &state) {
    for (const auto &[past, synced] : state) {
      const Hazard kind = between(past, op);
      if (kind == Hazard::Warps || (kind == Hazard::Lanes && !synced))
        if (!found || found->kind < kind)
          found = Found{past.first, op, kind};
    }
    state[{op, 0}] = false;
  }

  func::FuncOp function;
  llvm::DenseMap<Operation *, std::unique_ptr<Accesses>> accesses;
  llvm::DenseMap<std::pair<Past, Operation *>, Hazard> hazards;
  std::optional<Found> found;
};

Operation *makeBarrier(Operation *before, Location loc, Hazard kind) {
  OpBuilder b(before);
  if (kind == Hazard::Warps)
    return BarrierOp::create(b, loc);
  return WarpBarrierOp::create(b, loc);
}

/// As late as possible, but before a loop that only the second access is in.
Operation *placeFor(const Found &found) {
  Operation *at = found.second;
  for (Operation *p = at->getParentOp(); p && !p->isAncestor(found.first); p = p->getParentOp())
    if (isa<scf::ForOp, scf::WhileOp>(p))
      at = p;
  return at;
}

unsigned loopDepth(Operation *op) {
  unsigned depth = 0;
  for (Operation *p = op->getParentOp(); p; p = p->getParentOp())
    depth += isa<scf::ForOp, scf::WhileOp>(p);
  return depth;
}

struct InsertBarriers : impl::InsertBarriersBase<InsertBarriers> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(insert(function)))
        return signalPassFailure();
  }

  LogicalResult insert(func::FuncOp function) {
    Searcher searcher(function);
    if (failed(searcher.prepare()))
      return failure();
    if (searcher.empty())
      return success();
    llvm::SmallVector<Operation *> made;
    while (std::optional<Found> found = searcher.search())
      made.push_back(makeBarrier(placeFor(*found), found->second->getLoc(), found->kind));

    // A barrier that a loop's back edge asked for may do the work of an earlier one: innermost first, try without, and
    // with a cheaper one.
    llvm::stable_sort(made, [](Operation *a, Operation *b) { return loopDepth(a) > loopDepth(b); });
    for (Operation *barrier : made) {
      Operation *next = barrier->getNextNode();
      barrier->remove();
      const bool whole = isa<BarrierOp>(barrier);
      if (searcher.search()) {
        Operation *cheaper = whole ? makeBarrier(next, barrier->getLoc(), Hazard::Lanes) : nullptr;
        if (!cheaper || searcher.search()) {
          if (cheaper)
            cheaper->erase();
          next->getBlock()->getOperations().insert(next->getIterator(), barrier);
          continue;
        }
      }
      barrier->destroy();
    }
    return success();
  }
};

} // namespace
} // namespace kiln
