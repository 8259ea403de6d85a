#include "compiler/passes/barriers/BarrierPaths.h"
#include "compiler/passes/barriers/PhaseCheck.h"
#include "compiler/passes/barriers/TurnCheck.h"
#include "compiler/passes/barriers/WritesInFlight.h"
#include "compiler/passes/Pass.h"

#include <map>
#include <set>

using namespace mlir;

namespace kiln {
#include "compiler/passes/VerifyBarriers.inc"

using proof::BarrierPaths;
using proof::Event;
using proof::Meet;
using proof::SharedAccess;

namespace {

/// What lies between an access and a place after it on a path.  Bytes that a thread accessed: no barrier, a barrier of
/// the warp.  A copy before that: it is in no group yet, or in one, with so many groups after it.
using Between = unsigned;
constexpr Between nothing = 0, warpBarrier = 1, noGroup = 2, lastGroup = 3;

/// Sets of phases of mbarriers, each with a number.  Many paths have the same few.
class PhaseSets {
public:
  static constexpr unsigned none = 0;

  /// The set with the phase of an arrival as well; the same one where that is not known.
  unsigned with(unsigned set, const Event &arrival) {
    const std::optional<int> phase = phaseOf(arrival);
    if (!phase || sets[set].contains(*phase))
      return set;
    auto [next, fresh] = larger.try_emplace({set, *phase}, 0);
    if (fresh) {
      std::set<int> both = sets[set];
      both.insert(*phase);
      const auto found = llvm::find(sets, both);
      next->second = static_cast<unsigned>(found - sets.begin());
      if (found == sets.end())
        sets.push_back(std::move(both));
    }
    return next->second;
  }
  bool has(unsigned set, const Event &wait) const {
    const std::optional<int> phase = phaseOf(wait);
    return phase && sets[set].contains(*phase);
  }

private:
  static std::optional<int> phaseOf(const Event &event) {
    const bool known = event.mbarrier != Event::unknown && event.phase != Event::unknown;
    return known ? std::optional(event.mbarrier * 2 + event.phase) : std::nullopt;
  }

  std::vector<std::set<int>> sets{{}};
  std::map<std::pair<unsigned, int>, unsigned> larger;
};

/// All of it, and what mbarriers hand on.
struct State {
  Between between = nothing;
  /// Phases of mbarriers that end only after the access has: a number of PhaseSets.
  unsigned arrivals = PhaseSets::none;
  /// The access comes before what the elected thread does from here on, or the warps that compute.
  bool elected = false, computes = false;

  bool flies() const { return between >= noGroup; }
  auto key() const { return std::tuple(between, arrivals, unsigned(elected) | unsigned(computes) << 1); }
};

/// What an access that goes on is called, and what ends it.
struct Words {
  const char *what, *wait, *remedy;
};

/// Ends with a phase of an mbarrier, not with a group.
bool endsByPhase(const Event &event) {
  return event.kind == Event::Arrive || isa<tile_gpu::TensorCopyOp>(event.op);
}

Words wordsOf(const Event &event, tile::Agent agent) {
  if (endsByPhase(event))
    return {"copy", "mbarrier_wait", "wait for its mbarrier first"};
  if (agent == tile::Agent::MatrixUnit)
    return {"product", "warpgroup_wait", "wait for its group first"};
  if (agent == tile::Agent::BulkStore)
    return {"sum", "bulk_wait", "wait for its group first"};
  return {"copy", "async_wait", "wait for its group first"};
}

/// From one access forward, to everything that no barrier keeps apart from it.  A barrier does nothing for a copy in
/// flight: only a wait after the commit of its group ends that, and then a barrier counts.  So for the bytes of shared
/// memory that it writes, and for the global memory that it reads.
///
/// An mbarrier keeps apart too: the access, an arrival of every thread that carried it out or waited for one who did,
/// and a wait for the arrival's phase.  If only the elected thread waits, what comes before it comes before its own
/// later accesses and arrivals alone.  A copy that counts to an mbarrier ends with the phase that the elected thread
/// arrives at next, and with nothing else.
///
/// Three more things are no accesses and are searched from in the same way.  Mbarriers that begin: until they end,
/// their bytes are for nothing else.  The end of a phase: who arrives at the next one must know that it is over.  A
/// wait by all threads: before the elected thread, who may be far ahead, ends the next phase, they must have seen that
/// this one is over.
class Search {
public:
  explicit Search(const BarrierPaths &paths) : paths(paths) {}

  /// Reports each access that races with one before it, once.  False if there was one.
  bool run() {
    for (const Event &event : paths.events)
      if (event.kind == Event::Access || event.kind == Event::GlobalWrite || event.kind == Event::Change)
        from(event);
    if (good) // else it may be the same again
      for (const Event &event : paths.events)
        if (event.kind == Event::Arrive || event.kind == Event::Init ||
            (event.kind == Event::PhaseWait && (!event.elected || paths.apart())))
          from(event);
    return good;
  }
  size_t pairs() const { return compared.size(); }

private:
  /// A place that was reached, and from which one.
  struct Reached {
    unsigned event = 0;
    State state;
    int via = noParent;
  };

  State begin(const Event &start) {
    switch (start.kind) {
    case Event::Access:
      return {paths.accesses[start.access].copy ? noGroup : nothing, 0,
              !paths.accesses[start.access].copy && start.elected};
    case Event::Change:
      return {start.goesOn ? noGroup : nothing, 0, !start.goesOn && start.elected};
    case Event::Init:
      return {noGroup, 0, false};
    case Event::Arrive: // the phase goes on
      return {noGroup, phases.with(PhaseSets::none, start), false};
    case Event::PhaseWait:
      return {nothing, 0, start.elected};
    default:
      return {};
    }
  }
  /// Whose groups an access belongs to.
  tile::Agent seriesOf(const Event &start) const {
    return start.kind == Event::Access ? paths.accesses[start.access].agent : start.series;
  }

  bool writes(const Event &start) const {
    return start.kind == Event::Change || (start.kind == Event::Access && paths.accesses[start.access].write);
  }

  void from(const Event &start) {
    llvm::SmallVector<Reached> reached;
    llvm::DenseSet<std::pair<unsigned, decltype(State().key())>> seen;
    auto visit = [&](const Event &last, const State &state, int via) {
      for (unsigned n : last.next)
        if (seen.insert({n, state.key()}).second)
          reached.push_back({n, state, via});
    };
    visit(start, begin(start), noParent);
    for (size_t i = 0; i < reached.size(); ++i) {
      const Event &event = paths.events[reached[i].event];
      if (!(event.elected ? reached[i].state.elected : reached[i].state.computes))
        look(start, reached, i);
      if (const std::optional<State> after = past(start, event, reached[i].state))
        visit(event, *after, static_cast<int>(i));
    }
  }

  void look(const Event &start, llvm::ArrayRef<Reached> reached, size_t at) {
    const Event &event = paths.events[reached[at].event];
    const auto copies = [&](const Event &e) { return e.kind == Event::Access && paths.copied.contains(e.op); };
    const bool flies = reached[at].state.flies();
    if (start.kind == Event::Access && event.kind == Event::Access)
      flies ? checkCopy(start, reached, at) : check(start, reached, at);
    if ((start.kind == Event::GlobalWrite && copies(event)) || (copies(start) && event.kind == Event::GlobalWrite))
      checkGlobal(start, reached, at);
    if (start.kind == Event::Change && event.kind == Event::Release)
      checkCount(start, reached, at);
    if (start.kind == Event::Init && event.kind == Event::Access)
      checkBytes(start, reached, at);
    const bool counts = event.kind == Event::Access && event.mbarrier != Event::unknown;
    if ((start.kind == Event::Arrive && counts && event.mbarrier == start.mbarrier) ||
        ((start.kind == Event::Arrive || start.kind == Event::PhaseWait) && isNextArrival(start, event)))
      checkPhase(start, reached, at);
  }

  static bool isNextArrival(const Event &start, const Event &event) {
    return event.kind == Event::Arrive && event.mbarrier == start.mbarrier && event.mbarrier != Event::unknown;
  }

  /// What lies between once the event is past too; nothing if it keeps all apart that follows.
  std::optional<State> past(const Event &start, const Event &event, State state) {
    const bool ofPhase = start.kind == Event::Arrive || start.kind == Event::PhaseWait;
    switch (event.kind) {
    case Event::BlockBarrier:
      if (event.all && (!state.flies() || state.elected || state.computes))
        return std::nullopt;
      state.computes |= !state.flies() && !start.elected;
      break;
    case Event::WarpBarrier:
      if (state.between == nothing)
        state.between = warpBarrier;
      break;
    case Event::Commit: // counts that no wait tells apart are one
      if (event.series == seriesOf(start) && state.flies() && !endsByPhase(start))
        state.between =
            state.between == noGroup ? lastGroup : std::min(state.between + 1, lastGroup + paths.mostGroups);
      break;
    case Event::Wait: // groups of other series than the access's say nothing of it
      if (event.series == seriesOf(start) && state.between >= lastGroup + event.groups &&
          !(event.readsOnly && writes(start)))
        state.between = nothing;
      break;
    case Event::Arrive:
      if (ofPhase && isNextArrival(start, event)) // the search from there goes on
        return std::nullopt;
      if (event.elected ? state.elected || endsWith(start, event) : allComputingKnow(start, state))
        state.arrivals = phases.with(state.arrivals, event);
      break;
    case Event::PhaseWait:
      if (!phases.has(state.arrivals, event))
        break;
      (event.elected ? state.elected : state.computes) = true;
      if (state.computes && (state.elected || !paths.apart()))
        return std::nullopt;
      break;
    case Event::Init:
    case Event::Invalidate:
      if (start.kind == Event::Init && start.op->getOperand(0) == event.op->getOperand(0))
        return std::nullopt;
      if (ofPhase && start.mbarrier != Event::unknown && allocOf(start).getResult() == event.op->getOperand(0))
        return std::nullopt;
      break;
    default:
      break;
    }
    return state;
  }

  /// An arrival of every warp that computes comes after what the search began with.
  bool allComputingKnow(const Event &start, const State &state) const {
    return state.computes || (!paths.apart() && state.elected) || (!state.flies() && !start.elected);
  }

  tile_gpu::LocalAllocOp allocOf(const Event &event) const {
    return paths.mbarriers[static_cast<size_t>(event.mbarrier)].alloc;
  }

  /// A copy that counts to the mbarrier that the elected thread arrives at.
  static bool endsWith(const Event &start, const Event &arrival) {
    return start.kind == Event::Access && start.elected && arrival.elected && isNextArrival(start, arrival);
  }

  Meet meet(const Event &first, const Event &second) {
    auto [it, fresh] = compared.insert({{first.access, second.access}, Meet::Never});
    if (fresh)
      it->second = proof::meet(paths.accesses[first.access], paths.accesses[second.access]);
    return it->second;
  }

  /// Of a place that is reached with a copy in flight.
  void checkCopy(const Event &start, llvm::ArrayRef<Reached> reached, size_t at) {
    const Event &event = paths.events[reached[at].event];
    if (meet(start, event) == Meet::Never || !reported.insert(event.op).second)
      return;
    good = false;
    const SharedAccess &a = paths.accesses[start.access], &b = paths.accesses[event.access];
    const std::string &unknown = a.unknown.empty() ? b.unknown : a.unknown;
    const char *what = b.write ? "writes" : "reads", *does = a.write ? "write" : "read";
    InFlightDiagnostic d = event.op->emitError();
    if (!unknown.empty())
      d << "cannot be proved: whether this ";
    const Words words = wordsOf(start, a.agent);
    d << what << " bytes that a " << words.what << " in flight may still " << does;
    if (unknown.empty())
      d << ": " << words.remedy;
    else
      d << " depends on " << unknown;
    d.attachNote(start.op->getLoc()) << "the " << words.what;
    whyInFlight(d, start, reached, at);
  }

  /// Of an arrival at the phase of an mbarrier, or a count to it, after one that is not known to be over, or to have
  /// been seen.
  void checkPhase(const Event &start, llvm::ArrayRef<Reached> reached, size_t at) {
    const Event &event = paths.events[reached[at].event];
    // Who arrives after its own wait knows.
    const bool waits = start.kind == Event::PhaseWait;
    if ((waits && event.elected == start.elected) || !reported.insert(event.op).second)
      return;
    good = false;
    InFlightDiagnostic d = event.op->emitError();
    if (waits)
      d << "this arrival may end the next phase of an mbarrier before "
        << (start.elected ? "the elected thread" : "every thread") << " has seen that the last one is over";
    else
      d << (event.kind == Event::Arrive ? "this arrival" : "this copy's count")
        << " may come before the last phase of its mbarrier is over";
    d.attachNote(start.op->getLoc()) << (waits ? "the wait for that phase" : "the arrival at that phase");
    whyNotKnown(d, reached, at);
    path(d, reached, at);
    if (waits && start.elected)
      d.attachNote()
          << "let the elected thread arrive at another mbarrier after its wait, and the others wait for that";
    else if (waits)
      d.attachNote()
          << "let the threads arrive at another mbarrier after their wait, and the elected one wait for that";
    else
      d.attachNote() << "wait for that phase on this path";
  }

  /// Of an access to bytes of mbarriers that have not ended, as something else.
  void checkBytes(const Event &start, llvm::ArrayRef<Reached> reached, size_t at) {
    const Event &event = paths.events[reached[at].event];
    const Value barriers = start.op->getOperand(0);
    const bool asBuffer = isa<tile_gpu::TensorCopyOp>(event.op) && paths.accesses[event.access].write;
    if ((!asBuffer && llvm::is_contained(event.op->getOperands(), barriers)) || meet(start, event) == Meet::Never ||
        !reported.insert(event.op).second)
      return;
    good = false;
    InFlightDiagnostic d = event.op->emitError("accesses bytes of mbarriers that have not ended");
    d.attachNote(start.op->getLoc()) << "they begin here";
    path(d, reached, at);
    d.attachNote() << "put a tile_gpu.mbarrier_invalidate on this path";
  }

  /// One thread knows that what the search began with is over, others do not.
  void whyNotKnown(InFlightDiagnostic &d, llvm::ArrayRef<Reached> reached, size_t at) {
    if (!reached[at].state.elected)
      return;
    for (int s = static_cast<int>(at); s != noParent; s = reached[static_cast<size_t>(s)].via)
      if (const Reached &one = reached[static_cast<size_t>(s)]; !one.state.elected) {
        d.attachNote(paths.events[one.event].op->getLoc()) << "only the elected thread waits here";
        return;
      }
  }

  /// Of a store of global memory and a copy that reads there, one of them reached from the other.
  void checkGlobal(const Event &start, llvm::ArrayRef<Reached> reached, size_t at) {
    const Event &event = paths.events[reached[at].event];
    const Between between = reached[at].state.between;
    const bool storeFirst = start.kind == Event::GlobalWrite;
    const proof::MemoryOrigin &to = paths.writes[(storeFirst ? start : event).access];
    const proof::MemoryOrigin &from = paths.copied.find((storeFirst ? event : start).op)->second;
    if ((paths.oneWarp() && between == warpBarrier) || !mayMeet(to, from) || !reported.insert(event.op).second)
      return;
    good = false;
    const bool known = to.known() && from.known(), flies = reached[at].state.flies();
    const Words words = wordsOf(storeFirst ? event : start, tile::Agent::AsyncCopy);
    InFlightDiagnostic d = event.op->emitError();
    if (!known)
      d << "cannot be proved: whether ";
    d << (storeFirst ? "this copy reads memory" : "this writes memory") << " that "
      << (storeFirst ? "a store before it writes"
          : flies    ? "a copy in flight may still read"
                     : "a copy of another warp may still read");
    if (!known) {
      const Value unknown = to.unknown ? to.unknown : from.unknown;
      d << " depends on ";
      if (unknown)
        d << "where " << unknown << " points to";
      else
        d << "what '" << (storeFirst ? start : event).op->getName() << "' writes";
    }
    if (flies)
      d << ": " << words.remedy;
    d.attachNote(start.op->getLoc()) << (storeFirst ? "the store" : "the copy");
    if (flies)
      return whyInFlight(d, start, reached, at);
    path(d, reached, at);
    d.attachNote() << "put a tile_gpu." << (paths.oneWarp() ? "warp_barrier" : "barrier") << " on this path"
                   << (storeFirst ? "" : ", after the wait");
  }

  /// Of a count of what has changed, reached from a change.
  void checkCount(const Event &start, llvm::ArrayRef<Reached> reached, size_t at) {
    const Event &event = paths.events[reached[at].event];
    const State &state = reached[at].state;
    if ((paths.oneWarp() && state.between == warpBarrier) ||
        !mayMeet(paths.writes[start.access], paths.writes[event.access]) || !reported.insert(event.op).second)
      return;
    good = false;
    const Words words = wordsOf(start, start.series);
    const proof::MemoryOrigin &written = paths.writes[start.access], &counted = paths.writes[event.access];
    InFlightDiagnostic d = event.op->emitError();
    if (!written.known() || !counted.known())
      d << "cannot be proved: whether this ";
    d << "counts what ";
    if (state.flies())
      d << "a " << words.what << " in flight may still write";
    else
      d << "other threads may not have written yet";
    if (const Value unknown = written.unknown ? written.unknown : counted.unknown)
      d << " depends on where " << unknown << " points to";
    if (state.flies())
      d << ": " << words.remedy;
    d.attachNote(start.op->getLoc()) << "the " << (state.flies() ? words.what : "write");
    if (state.flies())
      return whyInFlight(d, start, reached, at);
    path(d, reached, at);
    d.attachNote() << "put a tile_gpu." << (paths.oneWarp() ? "warp_barrier" : "barrier") << " on this path"
                   << (start.goesOn ? ", after the wait" : "");
  }

  /// Why no wait on the path has ended it.
  void whyInFlight(InFlightDiagnostic &d, const Event &start, llvm::ArrayRef<Reached> reached, size_t at) {
    const Words words = wordsOf(start, seriesOf(start));
    if (endsByPhase(start)) {
      const State &state = reached[at].state;
      if (state.elected)
        whyNotKnown(d, reached, at);
      else if (start.mbarrier == Event::unknown)
        d.attachNote() << "nobody knows which mbarrier it counts to";
      else if (state.arrivals == PhaseSets::none)
        d.attachNote() << "no mbarrier_arrive on this path belongs to the phase that it counts to";
      else
        d.attachNote() << "no mbarrier_wait on this path is for the phase that it counts to";
      return path(d, reached, at);
    }
    const Reached *wait = nullptr;
    for (int s = reached[at].via; s != noParent && !wait; s = reached[static_cast<size_t>(s)].via)
      if (const Reached &one = reached[static_cast<size_t>(s)]; paths.events[one.event].kind == Event::Wait)
        wait = &one;
    const Between between = reached[at].state.between;
    if (between == noGroup) {
      d.attachNote() << "no async_commit on this path puts it into a group";
    } else if (!wait) {
      d.attachNote() << "no " << words.wait << " lies on this path";
    } else {
      const Event &weak = paths.events[wait->event];
      if (weak.readsOnly && writes(start)) {
        d.attachNote(weak.op->getLoc()) << "this waits until the " << words.what
                                        << " has read, not until it has written";
        return path(d, reached, at);
      }
      Diagnostic &note = d.attachNote(weak.op->getLoc()) << "this wait leaves " << weak.groups << " groups in flight: ";
      if (wait->state.between == noGroup)
        note << "the " << words.what << " is in a later one";
      else
        note << "the " << words.what << "'s group has only " << wait->state.between - lastGroup << " after it";
    }
    path(d, reached, at);
  }

  void check(const Event &start, llvm::ArrayRef<Reached> reached, size_t at) {
    const Event &event = paths.events[reached[at].event];
    Operation *first = start.op, *second = event.op;
    const SharedAccess &a = paths.accesses[start.access], &b = paths.accesses[event.access];
    const Meet met = meet(start, event);
    if (met < Meet::Lanes || (met == Meet::Lanes && reached[at].state.between == warpBarrier) ||
        !reported.insert(second).second)
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
    whyNotKnown(d, reached, at);
    path(d, reached, at);
    d.attachNote() << "put a tile_gpu." << (met == Meet::Warps ? "barrier" : "warp_barrier") << " on this path";
  }

  void path(InFlightDiagnostic &d, llvm::ArrayRef<Reached> reached, size_t at) {
    llvm::SmallVector<const Event *> turns;
    for (int s = static_cast<int>(at); s != noParent; s = reached[static_cast<size_t>(s)].via)
      if (const Event &event = paths.events[reached[static_cast<size_t>(s)].event];
          event.kind == Event::Turn && !event.turn.empty())
        turns.push_back(&event);
    for (const Event *event : llvm::reverse(turns))
      d.attachNote(event->op->getLoc()) << "the path goes " << event->turn;
  }

  static constexpr int noParent = -1;
  PhaseSets phases;
  const BarrierPaths &paths;
  llvm::DenseMap<std::pair<unsigned, unsigned>, Meet> compared; ///< accesses
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
      const BarrierPaths paths(function);
      if (paths.failed) {
        good = false;
        continue;
      }
      Search search(paths);
      // The search goes by phases: with wrong ones it finds what follows from them.
      if (!proof::checkTurns(function) || !proof::checkWritesInFlight(function) || !checkPhases(paths) || !search.run())
        good = false;
      else if (remarks)
        function.emitRemark("proved: ") << paths.accessOps << " accesses, " << search.pairs()
                                        << " pairs that meet without a barrier of the block";
    }
    if (!good)
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln
