//===- Executor.h - State of a running launch -----------------------------===//
//
// Launch -> workers (host threads) -> clusters -> blocks -> warps -> splits.  A worker runs the warps of a cluster (of
// one block, unless the launch says otherwise) as green threads: each until it blocks or has used its slice.  A split
// is a group of lanes of a warp with one program counter; there is no reconvergence stack, splits that meet merge
// (Splits.cpp).
//
// Ownership: a Worker and what hangs below it belong to one host thread.  Launch is shared and, but for its atomics,
// read-only while workers run.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_EXECUTOR_H
#define KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_EXECUTOR_H

#include "runtime/device/emulator/checks/Findings.h"
#include "runtime/device/emulator/decode/Program.h"
#include "runtime/device/emulator/execute/Schedule.h"
#include "runtime/device/emulator/execute/Warp.h"
#include "runtime/device/emulator/memory/Memory.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kiln::emulator {

struct Worker;
class BlockRaces;
class ClusterState; // Cluster.h
struct LaunchRaces;
struct AsyncState;   // Async.h
struct RegisterPool; // RegisterPool.h
struct OpTraits;     // OpTraits.h
struct OpTrace;      // Counting.h
struct WgmmaState;   // Wgmma.h
struct FloatForm;    // FloatBirths.h
class FloatBirths;   // FloatBirths.h
class DevicePrints;  // DevicePrints.h
class TimelineRecorder;

enum class SplitState : std::uint8_t {
  Ready,
  Parked,     ///< before an .aligned or member-mask op, until the other lanes come
  Barrier,    ///< arrived at Split::barrier
  Cluster,    ///< in barrier.cluster.wait
  AsyncGroup, ///< waits for asynchronous operations: Split::asyncKind, waitsFor
  Mbarrier,   ///< waits for the mbarrier at shared offset Split::waitsFor
  Registers,  ///< waits until its warp can have Split::waitsFor registers a thread
};

struct Split {
  std::uint32_t pc = 0, mask = 0;
  std::uint16_t depth = 0;
  SplitState state = SplitState::Ready;
  std::uint8_t barrier = 0;
  std::uint8_t asyncKind = 0; ///< AsyncGroup: AsyncKind of the works
  std::uint32_t waitsFor =
      0; ///< AsyncGroup: groups below this number; Mbarrier: offset of the object; Registers: their number
  std::uint32_t backward = 0; ///< backward branches taken since it was tired last
  bool tired = false;         ///< has looped for a while: others first
  bool forced = false;        ///< its parked op goes on without the missing lanes (after a finding)
};

/// What the lanes at one call depth return to.
struct CallLevel {
  std::uint32_t returnPc[warpSize], site[warpSize], function[warpSize];
  std::uint64_t frame[warpSize], stack[warpSize];
  /// Registers of recursive functions as the lanes' callers left them: function -> its registers.
  std::vector<std::pair<std::uint32_t, std::vector<std::byte>>> saved;
};

struct WarpState : Warp {
  const Program *program = nullptr;
  std::uint32_t numSplits = 0, current = 0;
  Split splits[warpSize];
  std::uint32_t stopOrder = ~0u; ///< the running split stops at an op of this order or a later one: another waits there
  std::int64_t slice = 0;        ///< ops left before other warps get their turn
  std::uint64_t observations = 0; ///< of a seeded turn: observable ops left
  std::uint64_t executed = 0, threadsExecuted = 0;
  std::uint32_t syncs = 0;     ///< ops that lanes executed together on purpose: .sync with a member mask, .aligned
  std::uint32_t uncounted = 0; ///< lanes of an op that parked: it counts when it runs
  std::uint64_t progressMark = 0, pollMark = 0;
  bool spinning = false;                          ///< gave its slice up: it polls and nothing changes
  bool forced = false;                            ///< of the running split
  std::vector<std::unique_ptr<CallLevel>> levels; ///< by depth - 1
  std::byte *local = nullptr;                     ///< lane 0's local memory; lanes are BlockState::localStride apart

  bool exited() const { return alive == 0; }
  std::uint64_t *frame() const { return reinterpret_cast<std::uint64_t *>(registers + frameSlot); }
  std::uint64_t *stack() const { return reinterpret_cast<std::uint64_t *>(registers + stackSlot); }
};

enum class ArrivalKind : std::uint8_t { Sync, Arrive, Reduce };
/// Op::flags of a barrier with a result.
enum class BarrierReduction : std::uint8_t { Popc, And, Or };

/// One of the 16 barriers of a block: the generation being collected.
struct BarrierState {
  bool open = false;
  ArrivalKind kind = ArrivalKind::Sync;
  std::uint32_t count = 0;              ///< threads expected; 0: every warp that has not exited
  std::uint32_t arrived = 0;            ///< threads, 32 a warp
  std::uint32_t warps = 0;              ///< warps that arrived
  std::uint32_t pending[warpSize] = {}; ///< by warp: lanes that arrived one by one so far
  std::uint32_t lastPc[warpSize] = {};  ///< by warp: where it arrived
  std::uint32_t waiting = 0;            ///< of `warps`: those whose last arrival waits
  std::uint32_t openedPc = 0;
  std::uint32_t popc = 0;
  bool all = true, any = false;
};

/// What a block's warps have done at the barrier of their cluster.
struct ClusterArrivals {
  std::uint32_t arrived[warpSize] = {};              ///< by warp: lanes that arrived in this phase
  std::uint32_t outstanding[warpSize] = {};          ///< by warp: lanes that arrived and have not waited
  std::uint64_t lanePhase[warpSize * warpSize] = {}; ///< by thread: the phase it last arrived in
  std::uint32_t lastPc[warpSize] = {};
  std::uint64_t phasesWaited = 0; ///< all below are over, and a thread of the block waited for the last one
};

/// A round: every warp of a cluster that can run gets its turn, or turns.
struct Round {
  std::uint64_t progress = 0, instructions = 0; ///< of the worker when it began
  bool begun = false, ran = false;              ///< a warp ran in it
};

/// A resident block.  Reused for the block of the same rank in the next cluster.
class BlockState {
public:
  BlockState(Worker &worker, ClusterState &cluster, unsigned rank);
  ~BlockState() { timeline = nullptr; } // what is still in flight was not delivered
  /// Makes it the block at `index` of the grid, in cluster number `clusterNumber`, ready to run.
  void start(Dim3 index, std::uint64_t clusterNumber);

  Worker &worker;
  ClusterState &cluster;
  const unsigned rank; ///< in the cluster
  std::uint64_t linear = 0;
  Dim3 index;
  BlockPlace place; ///< for findings
  std::vector<WarpState> warps;
  std::uint32_t warpsAlive = 0; ///< mask
  std::byte *shared = nullptr;  ///< byte at shared offset 0; offsets below sharedBegin are the system's
  std::uint32_t sharedBegin = 0, sharedEnd = 0;
  std::uint64_t sharedAddress = 0; ///< shared address of offset 0: the rank's bits
  std::uint64_t *sharedBits = nullptr;
  std::uint64_t localStride = 0; ///< bytes of a lane
  std::byte *localBase = nullptr;
  std::uint64_t *localBits = nullptr;
  BarrierState barriers[16];
  ClusterArrivals clusterArrivals;
  bool finished = false;          ///< its warps have left and its asynchronous work is done
  std::uint32_t exitPc = 0;       ///< where its last warp left
  std::uint64_t instructions = 0; ///< warp instructions of this block
  std::uint64_t virtualTime = 0;  ///< nanoseconds added by waiting
  std::uint64_t clockReads = 0;
  BlockRaces *races = nullptr;                ///< null: races are not looked for
  TimelineRecorder *timeline = nullptr;       ///< null: this block is not drawn
  std::shared_ptr<AsyncState> async;          ///< null: the kernel has no asynchronous instructions
  std::shared_ptr<RegisterPool> registerPool; ///< null: the kernel has no setmaxnreg
  std::shared_ptr<WgmmaState> wgmma;          ///< null: the kernel has no wgmma
  std::shared_ptr<DevicePrints> prints;       ///< null: the block has printed no tile yet
  Chooser chooser;                            ///< of a seeded launch

private:
  void prepareWarp(unsigned w);
  std::unique_ptr<Reservation> registerMemory, sharedMemory, localMemory, localBitMemory;
  std::vector<std::uint64_t> sharedBitWords;
  std::shared_ptr<BlockRaces> raceClocks; ///< what `races` points to
  std::size_t registerStride = 0;
};

/// An ordinary store to `bytes` of shared memory from an offset on: no tensor copy was the last there
/// (matrix/Wgmma.cpp). The kernel has wgmma.
void noteOrdinaryWrite(BlockState &block, std::uint64_t offset, std::uint64_t bytes);

struct Launch {
  const Program *program = nullptr;
  const Target *target = nullptr;
  GlobalMemory *memory = nullptr;
  Dim3 grid, block, cluster;
  bool explicitCluster = false; ///< the launch or the kernel says what a cluster is
  std::uint32_t dynamicShared = 0;
  std::span<const std::byte> parameters;
  bool checks = true;
  bool strictProxy = false;        ///< EmulatorOptions
  std::uint64_t gridWorkspace = 0; ///< address, of a cooperative launch
  MatrixMode mma = MatrixMode::Exact;
  LaunchRaces *races = nullptr;                   ///< null: races are not looked for
  const std::vector<OpTraits> *traits = nullptr;  ///< by op; null: nothing is counted
  TimelineRecorder *timeline = nullptr;           ///< null: no block is drawn; else there are traits
  const std::vector<FloatForm> *floats = nullptr; ///< by op; null: births are not looked for; else there are traits
  std::string tileDirectory;                      ///< where dumped tiles go; empty: they are printed
  Schedule schedule = Schedule::InOrder;
  std::uint64_t seed = 0;
  std::uint64_t gridId = 0;
  std::vector<std::uint64_t> sample; ///< clusters that run, rising; empty: all
  bool countsBlocks = false;         ///< each block's instructions
  unsigned multiprocessors = 1;
  std::uint64_t instructionBudget = 0;
  double secondsBudget = 0;
  std::chrono::steady_clock::time_point started;

  std::uint64_t blocks() const { return grid.count(); }
  std::uint64_t clusters() const { return grid.count() / cluster.count(); }
  /// Those that run, in their order.
  std::uint64_t clustersToRun() const { return sample.empty() ? clusters() : sample.size(); }
  std::uint64_t clusterToRun(std::uint64_t n) const { return sample.empty() ? n : sample[n]; }
  bool seeded() const { return schedule != Schedule::InOrder; }
  // Lines of their own: every worker writes the first and reads the others all the time.
  alignas(128) std::atomic<std::uint64_t> nextCluster{0};
  alignas(128) std::atomic<std::uint64_t> firstFatal{~std::uint64_t(0)}; ///< the first cluster with a fatal finding
  std::atomic<std::uint64_t> instructions{0};
  std::atomic<bool> outOfBudget{false};
};

struct alignas(128) Worker {
  explicit Worker(Launch &launch);
  Launch &launch;
  std::vector<AccessCache> caches;
  FindingSink findings;
  std::shared_ptr<OpTrace> trace;      ///< null: nothing is counted
  std::shared_ptr<FloatBirths> births; ///< null: not looked for
  std::vector<std::uint64_t> blocks;   ///< warp instructions of each, of a launch that counts blocks
  Status printProblem;                 ///< why a tile could not be written to its file
  std::uint64_t progress =
      0;                   ///< counts what others could wait for: stores, atomics that changed a value, arrivals, exits
  std::uint64_t polls = 0; ///< counts what a waiting loop does: strong loads, atomics that changed nothing, clock reads
  std::uint64_t warpInstructions = 0, threadInstructions = 0;
  std::uint64_t idleInstructions = 0; ///< executed since anything changed, by blocks that poll
  std::uint64_t rounds = 0;
  std::uint64_t reported = 0; ///< part of warpInstructions that Launch::instructions has
};

// --- Splits.cpp: what handlers do to the set of splits -----------------------

/// Merges splits that met and makes the one that should run the running one; false if none is ready.
bool pickSplit(WarpState &w);
/// The running split's pc and mask go back to its entry.
inline void storeSplit(WarpState &w) {
  w.splits[w.current].pc = w.pc;
  w.splits[w.current].mask = w.mask;
}
/// The executing lanes go to `target`, the others to the next op.
Next branchTo(WarpState &w, std::uint32_t target);
/// The executing lanes leave.
Next exitLanes(WarpState &w);
/// Detaches the executing lanes from the running split as a split of their own at `pc`, which becomes the current one;
/// the others, if any, go on after the op.
Split &detach(WarpState &w, std::uint32_t pc);
/// A new split with `mask` at `pc`.
Split &addSplit(WarpState &w, std::uint32_t pc, std::uint32_t mask, unsigned depth);
/// Runs an op of a kind other than Plain: gathers the lanes that it needs first.
Next runGathered(WarpState &w, const Op &op);
/// Split `s` took a backward branch; true if the running split must give way (call storeSplit first).
bool wentBackward(WarpState &w, Split &s);
/// No warp of the cluster can run: releases the first parked split after a finding; false if there is none.
bool forceParked(BlockState &block);

// --- Calls.cpp ---------------------------------------------------------------

Next enterFunction(WarpState &w, const Op &op, std::uint32_t function);
Next callIndirect(WarpState &w, const Op &op);
Next returnFrom(WarpState &w, const Op &op);
Next callBuiltin(WarpState &w, const Op &op);
/// Gives the lanes `size` bytes of stack; false after a fatal finding.
bool growStack(WarpState &w, const Op &op, unsigned lane, std::uint64_t newTop);

// --- Barriers.cpp ------------------------------------------------------------

/// The executing lanes arrive at a barrier; predicates are for Reduce.  Blocks them unless `kind` is Arrive.
Next arriveAtBarrier(WarpState &w, const Op &op, ArrivalKind kind, Slot id, Slot count, Slot predicate);
/// A warp exited or lanes did: barriers without a count may be complete now.
void recheckBarriers(BlockState &block);
/// Who waits for what, for a deadlock finding.
std::string describeWaiting(const BlockState &block);

// --- ClusterBarrier.cpp ------------------------------------------------------

/// Op::flags of an arrival that releases nothing.
constexpr std::uint16_t clusterRelaxed = 1;
Next arriveAtCluster(WarpState &w, const Op &op);
Next waitForCluster(WarpState &w, const Op &op);
/// Lanes of the cluster arrived or exited: the phase may be complete.
void recheckClusterBarrier(ClusterState &cluster);
/// " waits barrier.cluster (...)": who is missing.
std::string describeClusterWait(const ClusterState &cluster);

// --- Launch.cpp --------------------------------------------------------------

struct LaunchResult {
  Status status;
  std::vector<Finding> findings;
  LaunchStatistics statistics;
  std::optional<LaunchCounters> counters; ///< of a launch that counts and came to its end
  std::optional<Timeline> timeline;       ///< if a block was to be drawn, and began
};
class WorkerPool;
LaunchResult runLaunch(Launch &launch, WorkerPool &pool);
/// Clusters of the launch that a GPU of the target holds at the same time.
std::uint64_t residentLimit(const Launch &launch);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_EXECUTOR_H
