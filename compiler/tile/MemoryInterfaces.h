//===- MemoryInterfaces.h - What an operation does to memory, as data -------===//
//
// An operation states its accesses by AccessOpInterface and what it orders by OrderOpInterface, next to its verifier
// and nowhere else.  Who asks uses accessesOf and orderingOf, which answer for operations without the interfaces too.
//
// Only facts stand here.  What follows from them (bytes, threads, hazards) each reader works out for itself: the pass
// that inserts barriers and the proof of them share this file and no reasoning.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_MEMORYINTERFACES_H
#define KILN_TILE_MEMORYINTERFACES_H

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

#include <optional>

namespace kiln::tile {

/// Who carries an access out.  Those in flight of one agent are closed into groups, which end in the order of their
/// commits: a series.  Different agents have different series.
enum class Agent : unsigned char {
  Threads,    ///< the block's threads, by instructions of their own
  AsyncCopy,  ///< cp.async: each thread's copies
  BulkCopy,   ///< the copy engine (TMA), to shared memory
  BulkStore,  ///< the copy engine, from shared memory: what each thread has begun
  MatrixUnit, ///< reads shared memory by itself (wgmma)
};

/// One step of a conversion through scratch: its plan follows from these, the access's tile and the scratch's size.
struct ExchangeStep {
  mlir::Attribute source, destination; ///< layouts
  unsigned pass = 0;
};

/// One access: of one memory, a read or a write; an atomic one is both.
struct MemoryAccess {
  mlir::SideEffects::Resource *resource = nullptr; ///< which kind of memory
  mlir::Value memory; ///< pointer or tile of pointers, view, buffer or scratch; null: any bytes of the resource
  bool reads = false, writes = false;
  Agent agent = Agent::Threads;
  bool inFlight = false; ///< goes on after the operation, until a wait for its group
  /// What is moved, each element by the threads that its layout says (of pointers: the tile of pointers).  By threads:
  /// as local_store and local_load move it.  Null: a scalar, or any thread may touch any byte of `memory`.
  mlir::RankedTensorType tile;
  mlir::ValueRange coords; ///< of the tile in a view
  mlir::Value mask;        ///< i1 or a tile of them; null: all elements
  bool atomic = false, acquires = false, releases = false;
  std::optional<ExchangeStep> exchange; ///< `memory` is scratch, and the plan says who touches what

  template <typename R> bool in() const { return llvm::isa<R>(resource); }
};
using MemoryAccesses = llvm::SmallVector<MemoryAccess, 2>;

/// What an operation orders.  A barrier is one at which threads both arrive and wait.
struct MemoryOrdering {
  enum class Among : unsigned char { Thread, Warp, Block };
  Among among = Among::Thread; ///< who meets: nobody, the lanes of each warp, threads of the block
  unsigned threads = 0;        ///< of the block: how many; 0: all
  bool arrives = false, waits = false;

  std::optional<Agent> closes;      ///< puts what this thread has begun as that agent since the last time into a group
  mlir::Value token;                ///< that stands for the group
  std::optional<Agent> awaits;      ///< waits for groups of that agent
  mlir::ValueRange tokens;          ///< which; none: all
  std::optional<unsigned> inFlight; ///< so many of the last groups may stay in flight; not known yet: none
  bool readsOnly = false;           ///< what they read has been read; what they write they may write later
  /// The operations whose accesses are waited for; none: not known, any of that agent.
  llvm::SmallVector<mlir::Operation *, 1> awaited = {};
  mlir::ValueRange ready; ///< the buffers that the groups filled; none: all that are ever filled so

  /// Of an mbarrier: `arrives` belongs to this phase of it, or `waits` is for that.
  struct Handoff {
    mlir::Value barriers, number, phase; ///< which of several, and 0 or 1
  };
  std::optional<Handoff> handoff;

  /// Threads meet here, or arrive and go on.
  bool meets() const { return among != Among::Thread; }
  /// A barrier of all threads of a block of so many.
  bool joinsBlock(unsigned blockThreads) const {
    return among == Among::Block && arrives && waits && (threads == 0 || threads == blockThreads);
  }
  bool joinsWarps() const { return among == Among::Warp && arrives && waits; }
  bool ordersGroups() const { return closes || awaits; }
};

namespace detail {
/// Accesses and memory effects name the same values.
mlir::LogicalResult verifyAccesses(mlir::Operation *op);
/// Through a pointer or a tile of pointers.
MemoryAccess throughPointer(mlir::Value pointer, mlir::Value mask, bool reads, bool writes);
/// Of a tile of a view.
MemoryAccess throughView(mlir::Value view, mlir::ValueRange coords, mlir::Type tile, bool reads, bool writes);
} // namespace detail

/// What the operation itself (not one in its regions) accesses.  Without AccessOpInterface: of each value that its
/// memory effects name anything, by any thread; of an effect without a value any bytes of its resource.
MemoryAccesses accessesOf(mlir::Operation *op);

/// Nothing for an operation without OrderOpInterface.
std::optional<MemoryOrdering> orderingOf(mlir::Operation *op);

/// How it accesses global memory; nothing for an operation that does not.
std::optional<MemoryAccess> globalAccessOf(mlir::Operation *op);

} // namespace kiln::tile

#include "compiler/tile/MemoryInterfaces.h.inc"

#endif // KILN_TILE_MEMORYINTERFACES_H
