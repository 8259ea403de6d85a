#include "compiler/passes/Passes.h"
#include "compiler/passes/SharedAccess.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <deque>

using namespace mlir;

namespace kiln {
#define GEN_PASS_DEF_VERIFYBARRIERS
#include "compiler/passes/Passes.h.inc"

using namespace tile_gpu;
using proof::Meet;
using proof::SharedAccess;

namespace {

/// A step that a program may take: an access, a barrier, or a turn that the report of a path mentions.
struct Event {
  enum Kind { Start, Access, WarpBarrier, BlockBarrier, Turn } kind = Start;
  Operation *op = nullptr;
  llvm::StringRef turn;
  llvm::SmallVector<unsigned, 2> next;
};

/// All paths of a function as a graph without cycles: a loop is none, one or two rounds of its body.  Two are enough:
/// what meets over n rounds without a barrier meets over two, because the rounds between could be left out.
class Paths {
public:
  explicit Paths(func::FuncOp function) : threads(tile::numWarps(function) * layout::warpSize) {
    events.emplace_back();
    ends = {0};
    failed = !build(function.getBody());
  }

  bool failed = false; ///< reported
  std::vector<Event> events;
  llvm::DenseMap<Operation *, SharedAccess> accesses;

private:
  using Ends = llvm::SmallVector<unsigned>;

  unsigned add(Event::Kind kind, Operation *op, llvm::StringRef turn = {}) {
    const auto id = static_cast<unsigned>(events.size());
    for (unsigned e : ends)
      events[e].next.push_back(id);
    events.push_back({kind, op, turn, {}});
    ends = {id};
    return id;
  }

  bool build(Region &region) {
    if (region.empty())
      return true;
    if (!region.hasOneBlock()) {
      region.getParentOp()->emitError(
          "cannot be proved: its control flow has branches; barriers are proved in scf.for, "
          "scf.if and scf.while");
      return false;
    }
    for (Operation &op : region.front())
      if (!step(&op))
        return false;
    return true;
  }

  bool step(Operation *op) {
    if (auto named = dyn_cast<NamedBarrierOp>(op)) {
      // One of fewer threads is no barrier for all accesses; it proves nothing here.
      if (named.getThreads() == threads)
        add(Event::BlockBarrier, op);
      return true;
    }
    if (isa<NamedArriveOp>(op))
      return true;
    if (isa<BarrierOp>(op))
      return add(Event::BlockBarrier, op), true;
    if (isa<WarpBarrierOp>(op))
      return add(Event::WarpBarrier, op), true;
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return conditional(branch);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return rounds(op, [&] { return build(loop.getRegion()); });
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return build(loop.getBefore()) && rounds(op, [&] { return build(loop.getAfter()) && build(loop.getBefore()); });
    if (auto call = dyn_cast<CallOpInterface>(op)) {
      op->emitError("cannot be proved: what the called function does to shared memory is not known here; inline it");
      return false;
    }
    if (op->getNumRegions() > 0)
      return opaque(op);
    auto known = accesses.find(op);
    if (known == accesses.end()) {
      Result<std::optional<SharedAccess>> access = proof::accessOf(op);
      if (!access) {
        (void)report(op, access.status());
        return false;
      }
      if (!access->has_value())
        return true;
      accesses.insert({op, std::move(**access)});
    }
    add(Event::Access, op);
    return true;
  }

  bool conditional(scf::IfOp op) {
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

  bool rounds(Operation *op, llvm::function_ref<bool()> body) {
    const Ends none = ends;
    add(Event::Turn, op, "into the loop");
    if (!body())
      return false;
    Ends one = ends;
    add(Event::Turn, op, "into the loop's next round");
    if (!body())
      return false;
    ends.append(none);
    ends.append(one);
    add(Event::Turn, op); // one end again
    return true;
  }

  /// An operation whose regions are not control flow that is known here.
  bool opaque(Operation *op) {
    const WalkResult walked = op->walk([&](Operation *inner) {
      if (inner == op)
        return WalkResult::advance();
      Result<std::optional<SharedAccess>> access = proof::accessOf(inner);
      const bool quiet = access && !access->has_value() && !isa<CallOpInterface>(inner);
      return quiet ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (!walked.wasInterrupted())
      return true;
    op->emitError("cannot be proved: '") << op->getName() << "' is no control flow that the proof knows";
    return false;
  }

  unsigned threads;
  Ends ends;
};

/// From one access forward, to everything that no barrier keeps apart from it.
class Search {
public:
  explicit Search(const Paths &paths) : paths(paths) {}

  /// Reports each access that races with one before it, once.  False if there was one.
  bool run() {
    for (unsigned start = 0; start < paths.events.size(); ++start)
      if (paths.events[start].kind == Event::Access)
        from(start);
    return good;
  }
  size_t pairs() const { return compared.size(); }

private:
  void from(unsigned start) {
    // State: event, and whether a barrier of the warp lies behind.
    std::vector<int> parent(2 * paths.events.size(), unseen);
    std::deque<unsigned> work;
    auto visit = [&](unsigned event, bool synced, int via) {
      const unsigned state = 2 * event + synced;
      if (parent[state] != unseen)
        return;
      parent[state] = via;
      work.push_back(state);
    };
    for (unsigned n : paths.events[start].next)
      visit(n, false, noParent);
    while (!work.empty()) {
      const unsigned state = work.front();
      work.pop_front();
      const Event &event = paths.events[state / 2];
      bool synced = state & 1;
      if (event.kind == Event::BlockBarrier)
        continue;
      if (event.kind == Event::WarpBarrier)
        synced = true;
      if (event.kind == Event::Access)
        check(start, state, synced, parent);
      for (unsigned n : event.next)
        visit(n, synced, static_cast<int>(state));
    }
  }

  void check(unsigned start, unsigned state, bool synced, const std::vector<int> &parent) {
    Operation *first = paths.events[start].op, *second = paths.events[state / 2].op;
    auto [it, fresh] = compared.insert({{first, second}, Meet::Never});
    const SharedAccess &a = paths.accesses.at(first), &b = paths.accesses.at(second);
    if (fresh)
      it->second = proof::meet(a, b);
    const Meet met = it->second;
    if (met == Meet::Never || (met == Meet::Lanes && synced) || !reported.insert(second).second)
      return;
    good = false;
    const char *who = met == Meet::Warps ? "different warps" : "different lanes of a warp";
    const char *what = met == Meet::Warps ? "barrier of the block" : "barrier of the warp";
    const std::string &unknown = a.unknown.empty() ? b.unknown : a.unknown;
    InFlightDiagnostic d =
        unknown.empty()
            ? second->emitError() << (b.write ? "this write to" : "this read of") << " shared memory races with "
                                  << (a.write ? "a write" : "a read") << " before it: " << who
                                  << " touch the same bytes, and no " << what << " lies between"
            : second->emitError() << "cannot be proved: whether " << who << " touch the same bytes here and in "
                                  << (a.write ? "a write" : "a read") << " before it, with no " << what
                                  << " between, depends on " << unknown;
    d.attachNote(first->getLoc()) << "the " << (a.write ? "write" : "read");
    path(d, state, parent);
    d.attachNote() << "put a tile_gpu." << (met == Meet::Warps ? "barrier" : "warp_barrier") << " on this path";
  }

  void path(InFlightDiagnostic &d, unsigned state, const std::vector<int> &parent) {
    llvm::SmallVector<const Event *> turns;
    for (int s = static_cast<int>(state); s != noParent; s = parent[static_cast<size_t>(s)])
      if (const Event &event = paths.events[static_cast<size_t>(s) / 2];
          event.kind == Event::Turn && !event.turn.empty())
        turns.push_back(&event);
    for (const Event *event : llvm::reverse(turns))
      d.attachNote(event->op->getLoc()) << "the path goes " << event->turn;
  }

  static constexpr int unseen = -2, noParent = -1;
  const Paths &paths;
  llvm::DenseMap<std::pair<Operation *, Operation *>, Meet> compared;
  llvm::DenseSet<Operation *> reported;
  bool good = true;
};

struct VerifyBarriers : impl::VerifyBarriersBase<VerifyBarriers> {
  using impl::VerifyBarriersBase<VerifyBarriers>::VerifyBarriersBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    bool good = true;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      const Paths paths(function);
      if (paths.failed) {
        good = false;
        continue;
      }
      Search search(paths);
      if (!search.run())
        good = false;
      else if (remarks)
        function.emitRemark("proved: ") << paths.accesses.size() << " accesses, " << search.pairs()
                                        << " pairs that meet without a barrier of the block";
    }
    if (!good)
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln
