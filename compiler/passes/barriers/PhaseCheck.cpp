#include "compiler/passes/barriers/PhaseCheck.h"

#include <bit>
#include <set>

using namespace mlir;

namespace kiln::proof {

using namespace tile_gpu;

namespace {

/// How far the arrivals at an mbarrier are ahead of those who wait for it, all threads or the elected one: by which of
/// these it may be.  None: they have waited for the last arrivals; one: they wait for these next; more: they have
/// missed a phase.  Nobody has to wait for the phase before the first.
using Lags = unsigned;
constexpr Lags none = 1, one = 2, more = 4, begin = none | one;

Lags arrived(Lags lags) {
  return (lags & none ? one : 0) | (lags & (one | more) ? more : 0);
}

/// What those who wait know, once others have told them what they know.
Lags told(Lags mine, Lags others) {
  return std::countr_zero(others) < std::countr_zero(mine) ? others : mine;
}

/// Of one mbarrier at one place, however it was reached.
struct Progress {
  static constexpr int notBegun = 0, differs = -1;
  int64_t arrivals = notBegun; ///< that end a phase
  Operation *init = nullptr;
  int next = 0; ///< phase of the next arrivals, or `differs`
  Lags all = begin, elected = begin;
  bool wrong = false; ///< reported: nothing is known any more, until it begins again

  bool operator==(const Progress &) const = default;

  /// Ways that meet.
  Progress operator&(const Progress &o) const {
    Progress out;
    out.arrivals = arrivals == o.arrivals ? arrivals : differs;
    out.init = init == o.init ? init : nullptr;
    out.next = next == o.next ? next : differs;
    const auto both = [](Lags a, Lags b) { return a & b ? a & b : more; };
    out.all = both(all, o.all);
    out.elected = both(elected, o.elected);
    out.wrong = wrong || o.wrong;
    return out;
  }
};
using State = std::vector<Progress>; // by mbarrier

/// Follows what is known before each event until nothing changes.  Knowing less only makes more events wrong: what is
/// wrong on the way stays so.
class Check {
public:
  explicit Check(const BarrierPaths &paths) : paths(paths), before(paths.events.size()) {}

  bool run() {
    std::set<unsigned> work{0};
    before[0] = State(paths.mbarriers.size());
    while (!work.empty()) {
      const unsigned at = *work.begin();
      work.erase(work.begin());
      State after = *before[at];
      pass(paths.events[at], after);
      for (unsigned n : paths.events[at].next) {
        State joined = after;
        if (std::optional<State> &there = before[n]) {
          for (auto [mine, other] : llvm::zip_equal(joined, *there))
            mine = mine & other;
          if (joined == *there)
            continue;
        }
        before[n] = std::move(joined);
        work.insert(n);
      }
    }
    return good;
  }

private:
  void pass(const Event &event, State &state) {
    if (event.kind == Event::Init || event.kind == Event::Invalidate) {
      auto init = dyn_cast<MbarrierInitOp>(event.op);
      for (auto [which, progress] : llvm::zip_equal(paths.mbarriers, state)) {
        LocalAllocOp alloc = which.alloc;
        if (alloc.getResult() != event.op->getOperand(0))
          continue;
        progress = Progress();
        progress.arrivals = init ? static_cast<int64_t>(init.getArrivals()) : Progress::notBegun;
        progress.init = init;
      }
      return;
    }
    if (event.kind == Event::BlockBarrier && event.all)
      for (Progress &progress : state) {
        const Lags all = progress.all;
        progress.all = told(progress.all, progress.elected);
        progress.elected = told(progress.elected, all);
      }
    const bool counts = copies(event);
    if (event.kind != Event::Arrive && event.kind != Event::PhaseWait && !counts)
      return;
    if (event.mbarrier == Event::unknown || (event.phase == Event::unknown && !counts))
      return notKnown(event);
    Progress &progress = state[static_cast<size_t>(event.mbarrier)];
    if (progress.wrong)
      return;
    progress.wrong = !(counts                        ? hasBegun(event, progress, "counts to ")
                       : event.kind == Event::Arrive ? arrive(event, progress)
                                                     : wait(event, progress));
  }

  static bool copies(const Event &event) {
    auto copy = event.kind == Event::Access ? dyn_cast<TensorCopyOp>(event.op) : TensorCopyOp();
    return copy && copy.getBarriers();
  }

  void notKnown(const Event &event) {
    if (!isNew(event))
      return;
    tile::MemoryOrdering::Handoff at;
    if (auto copy = dyn_cast<TensorCopyOp>(event.op))
      at = {copy.getBarriers(), copy.getNumber(), Value()};
    else
      at = *tile::orderingOf(event.op)->handoff;
    InFlightDiagnostic d = event.op->emitError("cannot be proved: which ");
    d << (event.mbarrier != Event::unknown ? "phase" : "mbarrier") << " this "
      << (copies(event)                 ? "counts to"
          : event.kind == Event::Arrive ? "arrives at"
                                        : "waits for")
      << " depends on ";
    if (event.mbarrier != Event::unknown)
      d << "the phase " << textOf(at.phase);
    else if (!at.barriers.getDefiningOp<LocalAllocOp>())
      d << "the mbarriers " << textOf(at.barriers);
    else
      d << "the number " << textOf(at.number);
  }

  bool arrive(const Event &event, Progress &progress) {
    if (!hasBegun(event, progress, "arrives at "))
      return false;
    const int64_t warps = warpsOf(event.op).count, arrivals = event.elected ? 1 : warps;
    if (arrivals != progress.arrivals) {
      if (!isNew(event))
        return false;
      InFlightDiagnostic d = event.op->emitError();
      if (event.elected)
        d << "one thread arrives at ";
      else
        d << "each of " << warps << " warps arrives at ";
      d << name(event) << ", whose phases end with " << progress.arrivals << " arrivals";
      if (progress.init)
        d.attachNote(progress.init->getLoc()) << "begun here: make it " << arrivals;
      return false;
    }
    if (event.phase != progress.next) {
      if (isNew(event))
        event.op->emitError() << "arrives at phase " << event.phase << " of " << name(event)
                              << ": after the arrivals before it, it is phase " << progress.next;
      return false;
    }
    progress.next ^= 1;
    progress.all = arrived(progress.all);
    progress.elected = arrived(progress.elected);
    return true;
  }

  bool wait(const Event &event, Progress &progress) {
    if (!hasBegun(event, progress, "waits for "))
      return false;
    if (event.phase == progress.next) {
      if (isNew(event))
        event.op->emitError() << "waits for an arrival that never comes: phase " << event.phase << " of " << name(event)
                              << " is the next one, after all arrivals on a path to here";
      return false;
    }
    if (!((event.elected ? progress.elected : progress.all) & begin)) {
      if (isNew(event))
        event.op->emitError() << "waits for phase " << event.phase << " of " << name(event) << ", but "
                              << (event.elected ? "the elected thread has not waited" : "not every thread has waited")
                              << " for the one before it on every path to here: it may take one for the other";
      return false;
    }
    if (event.elected || !paths.apart())
      progress.elected = none;
    if (!event.elected)
      progress.all = none;
    return true;
  }

  bool hasBegun(const Event &event, const Progress &progress, const char *does) {
    if (progress.arrivals > 0 && (progress.next != Progress::differs || copies(event)))
      return true;
    if (!isNew(event))
      return false;
    if (progress.arrivals == Progress::notBegun)
      event.op->emitError() << does << name(event) << ", which no mbarrier_init before it begins";
    else if (progress.arrivals == Progress::differs)
      event.op->emitError() << "cannot be proved: " << does << name(event)
                            << ", which paths to here have begun in different ways";
    else
      event.op->emitError() << "cannot be proved: " << does << name(event)
                            << ", and paths to here have different numbers of arrivals at it";
    return false;
  }

  std::string name(const Event &event) const {
    return "mbarrier " + std::to_string(paths.mbarriers[static_cast<size_t>(event.mbarrier)].number);
  }

  /// To report.
  bool isNew(const Event &event) {
    good = false;
    return reported.insert(event.op).second;
  }

  const BarrierPaths &paths;
  std::vector<std::optional<State>> before; ///< by event
  llvm::DenseSet<Operation *> reported;
  bool good = true;
};

} // namespace

bool checkPhases(const BarrierPaths &paths) {
  return Check(paths).run();
}

} // namespace kiln::proof
