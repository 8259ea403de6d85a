//===- BarrierPaths.h - Every path of a function as a graph of events -------===//
//
// For verify-barriers.  Nodes are accesses to shared memory, barriers, the commits and waits of asynchronous copies,
// arrivals at mbarriers and waits for their phases, in a function that has such copies what may write the global memory
// that they read, and in one that tells other programs what it has written (a count) what it tells of; every run of the
// function, as far as these go, is a path through the graph from its first node.  Conditionals fork it; a loop is
// skipped or is a cycle.  That a program waits for others before it writes what they count is not proved: only that it
// counts what it has written.
//
// A loop whose buffers are chosen by numbers that it carries is copied once for each set of numbers that a round may
// have (KnownNumbers), so that each access has its buffer.  That is sound: the numbers of a round follow from those of
// the round before, so a run goes through the copies in their order, and after the last one back to the copy that has
// the same numbers; no path of a run is missing.  What comes after such a loop is copied too, once for each set of
// numbers that it may end with, down to the last operation that goes by them; so is what comes after a conditional that
// gives numbers.  Where the next round's numbers depend on the way that a round goes, each set that some way leads to
// is a copy, with an edge from every way that leads there.  A loop without such numbers is one copy with an edge back
// to itself.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_BARRIERS_BARRIERPATHS_H
#define KILN_PASSES_BARRIERS_BARRIERPATHS_H

#include "compiler/passes/barriers/KnownNumbers.h"
#include "compiler/passes/barriers/MemoryOrigin.h"
#include "compiler/passes/barriers/SharedAccess.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <deque>
#include <map>

namespace kiln::proof {

/// A step that a program may take; Turn: nothing but a place that the report of a path mentions.
struct Event {
  enum Kind {
    Start,
    Access,
    GlobalWrite,
    Change, ///< of global memory that a Release is about
    Release,
    Commit,
    Wait,
    WarpBarrier,
    BlockBarrier,
    Init,       ///< mbarriers begin their first phase
    Invalidate, ///< mbarriers end
    Arrive,     ///< at a phase of an mbarrier
    PhaseWait,  ///< for a phase of an mbarrier
    Turn
  } kind = Start;
  static constexpr int unknown = -1;
  mlir::Operation *op = nullptr;
  bool elected = false; ///< of the one thread
  bool all = true;      ///< a BlockBarrier: the elected thread comes, too
  llvm::StringRef turn;
  unsigned access = 0;    ///< number in `accesses`; of a GlobalWrite, Change or Release in `writes`
  bool goesOn = false;    ///< a Change: until a wait for its group
  tile::Agent series{};   ///< of a commit, a wait or a Change that goes on: whose groups
  unsigned groups = 0;    ///< that a wait leaves in flight
  bool readsOnly = false; ///< the wait says nothing of what they write
  int mbarrier = unknown; ///< number in `mbarriers`; of an access by a copy: that it counts to
  int phase = unknown;    ///< 0 or 1
  llvm::SmallVector<unsigned, 2> next;
};

/// One of several.
struct Mbarrier {
  tile_gpu::LocalAllocOp alloc;
  int64_t number = 0;
  bool operator==(const Mbarrier &o) const { return alloc == o.alloc && number == o.number; }
};

class BarrierPaths {
public:
  explicit BarrierPaths(mlir::func::FuncOp function);

  bool failed = false; ///< reported
  std::vector<Event> events;
  std::deque<SharedAccess> accesses;
  std::deque<MemoryOrigin> writes;                        ///< of what copies may read, and counts are about
  std::vector<Mbarrier> mbarriers;                        ///< that are arrived at, waited for or counted to
  llvm::DenseMap<mlir::Operation *, MemoryOrigin> copied; ///< by each asynchronous copy
  unsigned accessOps = 0;                                 ///< operations that access shared memory
  unsigned mostGroups = 0;                                ///< that a wait leaves in flight
  bool oneWarp() const { return threads == layout::warpSize && !copyWarps; }
  /// The elected thread is in a warp that copies: what the others do it does not.
  bool apart() const { return copyWarps; }

private:
  using Ends = llvm::SmallVector<unsigned>;
  /// The events that a loop is left after, each with the state of its numbers in which it is left.
  using Exits = llvm::SmallVector<std::pair<size_t, unsigned>>;
  /// A way to a place: the events that come last, and the numbers that are known there.
  struct Way {
    Ends ends;
    KnownNumbers numbers;
  };
  using Ways = llvm::SmallVector<Way, 1>;

  unsigned add(Event::Kind kind, mlir::Operation *op, llvm::StringRef turn = {});
  bool build(mlir::Region &region);
  /// Adds to `out` the ways on which `to` is reached.  `wanted`: what the place around goes by, of the terminator's.
  bool build(mlir::Block::iterator from, mlir::Block::iterator to, Ways &out, mlir::ValueRange wanted = {});
  void take(Way way);
  /// One way again, on which is known what is known on all.
  void merge(mlir::Operation *op, Ways ways);
  bool step(mlir::Operation *op);
  bool conditional(mlir::scf::IfOp op, Ways &out);
  bool loop(mlir::scf::ForOp op, Ways &out);
  std::optional<Exits> rounds(mlir::scf::ForOp op, const Rounds &all);
  /// A loop whose numbers depend on the way that a round goes: each set of numbers that some way leads to is a copy.
  /// Nothing is left of it if that does not end, or a number is not known on some way.
  enum class Explored : unsigned char { Done, NotKnown, Failed };
  Explored explore(mlir::scf::ForOp op, llvm::ArrayRef<mlir::BlockArgument> wanted, Ways &out);
  bool loop(mlir::scf::WhileOp op);
  void order(mlir::Operation *op, const tile::MemoryOrdering &ordering);
  bool access(mlir::Operation *op);
  void accessGlobal(mlir::Operation *op);
  int mbarrierOf(mlir::Value barriers, mlir::Value number);
  bool opaque(mlir::Operation *op);
  /// From where the path is now into the loop, `count` bodies one after the other, and from the last to that of `back`.
  std::optional<Exits> rounds(mlir::Operation *op, size_t count, size_t back, llvm::function_ref<bool(size_t)> body);
  /// Where the path goes on after a loop, however it was left.
  void leave(mlir::Operation *op, const Exits &exits);

  llvm::SmallVector<MemoryOrigin> released; ///< what counts are about

  unsigned threads;  ///< of the warps that compute
  bool copyWarps;    ///< there are others
  size_t copies = 1; ///< of the code at hand
  Ends ends;         ///< the events that the next one follows
  KnownNumbers numbers;
  /// Numbers in `accesses` of an operation's, by the indices that are known.
  std::map<std::pair<mlir::Operation *, Chosen>, llvm::SmallVector<unsigned, 1>> known;
};

} // namespace kiln::proof

#endif // KILN_PASSES_BARRIERS_BARRIERPATHS_H
