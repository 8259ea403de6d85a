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

/// Accesses since the last barrier of the block, on some path; true: a barrier of the warp lies behind them on every
/// one.
using Pending = llvm::MapVector<Operation *, bool>;

bool sameState(const Pending &a, const Pending &b) {
  return a.size() == b.size() && llvm::all_of(a, [&](const auto &entry) {
           auto it = b.find(entry.first);
           return it != b.end() && it->second == entry.second;
         });
}

void join(Pending &into, const Pending &other) {
  for (const auto &[op, synced] : other) {
    auto [it, fresh] = into.insert({op, synced});
    if (!fresh)
      it->second = it->second && synced;
  }
}

/// Two accesses without the barrier they need.
struct Found {
  Operation *first = nullptr, *second = nullptr;
  Hazard kind = Hazard::None;
};

/// Looks for hazards in a function, as its barriers are now.  Footprints and what they need of each other are worked
/// out once.
class Searcher {
public:
  explicit Searcher(func::FuncOp function) : function(function) {}

  /// Footprints of all accesses.  Reports what cannot be analysed.
  LogicalResult prepare() {
    const WalkResult walked = function.walk([&](Operation *op) {
      if (isBarrier(op))
        return WalkResult::advance();
      Result<std::optional<SharedFootprint>> footprint = SharedFootprint::of(op);
      if (!footprint) {
        (void)report(op, footprint.status());
        return WalkResult::interrupt();
      }
      if (footprint->has_value())
        footprints[op] = std::make_unique<SharedFootprint>(std::move(**footprint));
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    return checkControlFlow();
  }
  bool empty() const { return footprints.empty(); }

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
        region.walk([&](Operation *inner) { touches |= footprints.contains(inner) || isBarrier(inner); });
        if (!touches)
          continue;
        op->emitError("'") << op->getName()
                           << "' holds accesses to shared memory: barriers are placed in scf.for, scf.if and scf.while";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  Hazard between(Operation *a, Operation *b) {
    auto [it, fresh] = hazards.insert({{a, b}, Hazard::None});
    if (fresh)
      it->second = footprints[a]->against(*footprints[b]);
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
    if (footprints.contains(op))
      return access(op, state);
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Pending other = state;
      walk(branch.getThenRegion().front(), state);
      if (!branch.getElseRegion().empty())
        walk(branch.getElseRegion().front(), other);
      join(state, other);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      repeat(state, [&](Pending &s) { walk(*loop.getBody(), s); });
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      // before (after before)*: the loop is left after `before`.
      walk(loop.getBefore().front(), state);
      repeat(state, [&](Pending &s) {
        walk(loop.getAfter().front(), s);
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
      for (auto &[access, synced] : state)
        synced = true;
    }
  }

  void access(Operation *op, Pending &state) {
    for (const auto &[first, synced] : state) {
      const Hazard kind = between(first, op);
      if (kind == Hazard::Warps || (kind == Hazard::Lanes && !synced))
        if (!found || found->kind < kind)
          found = Found{first, op, kind};
    }
    state[op] = false;
  }

  func::FuncOp function;
  llvm::DenseMap<Operation *, std::unique_ptr<SharedFootprint>> footprints;
  llvm::DenseMap<std::pair<Operation *, Operation *>, Hazard> hazards;
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
