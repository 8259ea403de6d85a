#include "compiler/passes/barriers/BarrierPaths.h"
#include "compiler/passes/Pass.h"

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

/// What an access that goes on is called, and what ends it.
struct Words {
  const char *what, *wait;
};
Words wordsOf(tile::Agent agent) {
  return agent == tile::Agent::MatrixUnit ? Words{"product", "warpgroup_wait"} : Words{"copy", "async_wait"};
}

/// From one access forward, to everything that no barrier keeps apart from it.  A barrier does nothing for a copy in
/// flight: only a wait after the commit of its group ends that, and then a barrier counts.  So for the bytes of shared
/// memory that it writes, and for the global memory that it reads.
class Search {
public:
  explicit Search(const BarrierPaths &paths) : paths(paths) {}

  /// Reports each access that races with one before it, once.  False if there was one.
  bool run() {
    for (const Event &event : paths.events)
      if (event.kind == Event::Access || event.kind == Event::GlobalWrite)
        from(event);
    return good;
  }
  size_t pairs() const { return compared.size(); }

private:
  /// A place that was reached, and from which one.
  struct Reached {
    unsigned event = 0;
    Between between = nothing;
    int via = noParent;
  };

  void from(const Event &start) {
    llvm::SmallVector<Reached> reached;
    llvm::DenseSet<std::pair<unsigned, Between>> seen;
    auto visit = [&](const Event &last, Between between, int via) {
      for (unsigned n : last.next)
        if (seen.insert({n, between}).second)
          reached.push_back({n, between, via});
    };
    const bool stores = start.kind == Event::GlobalWrite, copies = !stores && paths.accesses[start.access].copy;
    const tile::Agent series = stores ? tile::Agent() : paths.accesses[start.access].agent;
    visit(start, copies ? noGroup : nothing, noParent);
    for (size_t i = 0; i < reached.size(); ++i) {
      const Event &event = paths.events[reached[i].event];
      const Between between = reached[i].between;
      if (event.kind == Event::Access && !stores)
        between >= noGroup ? checkCopy(start, reached, i) : check(start, reached, i);
      if ((event.kind == Event::Access && stores && paths.accesses[event.access].copy) ||
          (event.kind == Event::GlobalWrite && copies))
        checkGlobal(start, reached, i);
      if (event.kind == Event::BlockBarrier && between < noGroup)
        continue;
      visit(event, past(event, between, series), static_cast<int>(i));
    }
  }

  /// What lies between once the event is past too.  Groups of other series than the access's say nothing of it.
  Between past(const Event &event, Between between, tile::Agent series) const {
    if (event.kind == Event::WarpBarrier && between == nothing)
      return warpBarrier;
    if ((event.kind == Event::Commit || event.kind == Event::Wait) && event.series != series)
      return between;
    if (event.kind == Event::Commit && between >= noGroup) // counts that no wait tells apart are one
      return between == noGroup ? lastGroup : std::min(between + 1, lastGroup + paths.mostGroups);
    if (event.kind == Event::Wait && between >= lastGroup + event.groups)
      return nothing;
    return between;
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
    const Words words = wordsOf(a.agent);
    d << what << " bytes that a " << words.what << " in flight may still " << does;
    if (unknown.empty())
      d << ": wait for its group first";
    else
      d << " depends on " << unknown;
    d.attachNote(start.op->getLoc()) << "the " << words.what;
    whyInFlight(d, words, reached, at);
  }

  /// Of a store of global memory and a copy that reads there, one of them reached from the other.
  void checkGlobal(const Event &start, llvm::ArrayRef<Reached> reached, size_t at) {
    const Event &event = paths.events[reached[at].event];
    const Between between = reached[at].between;
    const bool storeFirst = start.kind == Event::GlobalWrite;
    const proof::MemoryOrigin &to = paths.writes[(storeFirst ? start : event).access];
    const proof::MemoryOrigin &from = paths.copied.find((storeFirst ? event : start).op)->second;
    if ((paths.oneWarp() && between == warpBarrier) || !mayMeet(to, from) || !reported.insert(event.op).second)
      return;
    good = false;
    const bool known = to.known() && from.known(), flies = between >= noGroup;
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
      d << ": wait for its group first";
    d.attachNote(start.op->getLoc()) << (storeFirst ? "the store" : "the copy");
    if (flies)
      return whyInFlight(d, wordsOf(tile::Agent::AsyncCopy), reached, at);
    path(d, reached, at);
    d.attachNote() << "put a tile_gpu." << (paths.oneWarp() ? "warp_barrier" : "barrier") << " on this path"
                   << (storeFirst ? "" : ", after the wait");
  }

  /// Why no wait on the path has ended it.
  void whyInFlight(InFlightDiagnostic &d, Words words, llvm::ArrayRef<Reached> reached, size_t at) {
    const Reached *wait = nullptr;
    for (int s = reached[at].via; s != noParent && !wait; s = reached[static_cast<size_t>(s)].via)
      if (const Reached &one = reached[static_cast<size_t>(s)]; paths.events[one.event].kind == Event::Wait)
        wait = &one;
    if (reached[at].between == noGroup) {
      d.attachNote() << "no async_commit on this path puts it into a group";
    } else if (!wait) {
      d.attachNote() << "no " << words.wait << " lies on this path";
    } else {
      const Event &weak = paths.events[wait->event];
      Diagnostic &note = d.attachNote(weak.op->getLoc()) << "this wait leaves " << weak.groups << " groups in flight: ";
      if (wait->between == noGroup)
        note << "the " << words.what << " is in a later one";
      else
        note << "the " << words.what << "'s group has only " << wait->between - lastGroup << " after it";
    }
    path(d, reached, at);
  }

  void check(const Event &start, llvm::ArrayRef<Reached> reached, size_t at) {
    const Event &event = paths.events[reached[at].event];
    Operation *first = start.op, *second = event.op;
    const SharedAccess &a = paths.accesses[start.access], &b = paths.accesses[event.access];
    const Meet met = meet(start, event);
    if (met < Meet::Lanes || (met == Meet::Lanes && reached[at].between == warpBarrier) ||
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
      if (!search.run())
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
