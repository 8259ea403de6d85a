//===- Async.h - Operations in flight -------------------------------------===//
//
// Asynchronous copies, reductions and matrix products are an AsyncWork each from the instruction that issues them until
// they are *delivered*.  The instruction checks addresses, bounds and races; `deliver` moves the data and completes
// what the work completes: an mbarrier (Mbarrier.h), a group of its lanes (AsyncGroups).
//
// In order a work is delivered at once.  In a seeded launch it waits in its block's AsyncQueue until the scheduler
// chooses it (candidates 32 and up of Chooser), at the latest when nothing else can run or the block ends.  Works of
// one stream are delivered in any order unless they say otherwise.  Invariants:
//  - what a wait depends on is never delivered after the wait returned;
//  - a wait that must go on waiting parks its lanes at the op (SplitState::AsyncGroup, SplitState::Mbarrier) and the op
//    runs again once it can go on;
//  - everything belongs to the host thread of the block; works hold no pointer into registers.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_ASYNC_H
#define KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_ASYNC_H

#include "runtime/device/emulator/async/Mbarrier.h"
#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/execute/Executor.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace kiln::emulator {

/// What a work is to those that wait for it.
enum class AsyncKind : std::uint8_t {
  Copy,       ///< cp.async: groups of cp.async
  CopyArrive, ///< cp.async.mbarrier.arrive
  Bulk,       ///< completes an mbarrier, or nothing that lanes wait for by group
  BulkRead,   ///< part of a bulk group: its sources are still read
  BulkWrite,  ///< part of a bulk group: its results are not yet written
  Wgmma,      ///< part of a wgmma group
};

/// The series of groups that a wait counts.
enum class GroupSeries : std::uint8_t { Copy, Bulk, Wgmma };
constexpr unsigned groupSeries = 3;

class AsyncWork {
public:
  /// For the lanes `lanes` of `issuer`, which executes `op`.  The group is the open one of the first lane.
  AsyncWork(WarpState &issuer, const Op &op, std::uint32_t lanes, AsyncKind kind);
  virtual ~AsyncWork();
  AsyncWork(const AsyncWork &) = delete;
  AsyncWork &operator=(const AsyncWork &) = delete;

  /// Moves the data and completes; Fault after a fatal finding (report it at `issuer()`, `op`, `lanes`).
  /// May issue further works.
  virtual Next deliver() = 0;
  /// False: something that is still in flight comes first.
  virtual bool ready() const { return true; }
  /// Whether lanes of warp `w` that wait for the groups below `limit` of `kind` must wait for this work.
  virtual bool holds(unsigned w, std::uint32_t waiting, AsyncKind k, std::uint32_t limit) const {
    return k == kind && w == warp && (waiting & lanes) && group < limit;
  }
  WarpState &issuer() const { return block.warps[warp]; }

  BlockState &block; ///< of the issuing warp
  const Op &op;
  std::uint32_t lanes;
  std::uint32_t group = 0; ///< number of the group of these lanes that it is part of
  std::uint8_t warp;
  AsyncKind kind;
  std::uint64_t serial = 0;   ///< counts the works of the block's queue
  bool ordered = false;       ///< after all earlier works of its kind and warp
  AsyncAgent agent;           ///< who it is to the race checks
  std::uint32_t flight = ~0u; ///< of the picture of its block, if there is one (TimelineRecorder.h)
};

/// Numbers of the open groups of a warp's lanes, a series each.  A commit closes the open group, which may be empty.
struct AsyncGroups {
  std::uint32_t open[groupSeries][warpSize] = {};
  std::uint32_t copyArrivals[warpSize] = {}; ///< cp.async.mbarrier.arrive since the last commit of cp.async
};

class AsyncQueue {
public:
  static constexpr unsigned numStreams = 32;
  void start(Schedule schedule, RandomStream seeded);
  bool empty() const { return count == 0; }
  std::size_t size() const { return count; }
  void push(std::unique_ptr<AsyncWork> work);
  /// Streams with a work that could be delivered now.
  std::uint32_t deliverable() const;
  static unsigned streamOf(const AsyncWork &work);
  /// Delivers one work of the stream.
  Next deliver(unsigned stream);
  /// Whether lanes that wait must go on waiting (AsyncWork::holds).
  bool holds(unsigned warp, std::uint32_t waiting, AsyncKind kind, std::uint32_t limit) const;
  /// Whether a work of `kind` of the same warp and of one of the same lanes that was issued before `than` is in flight.
  bool hasEarlier(const AsyncWork &than, AsyncKind kind) const;

  /// Of a seeded schedule: when works are delivered.
  enum class Timing : std::uint8_t {
    Any,   ///< streams are candidates like warps
    Late,  ///< only when no warp can run
    Early, ///< whenever one can be
  };
  Timing timing() const { return when; }

private:
  std::vector<std::unique_ptr<AsyncWork>> streams[numStreams];
  std::size_t count = 0;
  std::uint64_t serials = 0;
  Timing when = Timing::Any;
  RandomStream random;
};

/// A bulk store whose reads of shared memory its thread has not waited for.
struct PendingStore {
  std::uint32_t op = 0, group = 0;
  std::uint32_t offset = 0, bytes = 0; ///< of the block's shared memory
  std::uint8_t warp = 0, lane = 0;
};

/// Of a block whose kernel has asynchronous instructions (Program::usesAsync).
struct AsyncState {
  AsyncQueue queue;
  MbarrierTable mbarriers;
  std::vector<PendingStore> pendingStores;
  std::vector<AsyncGroups> groups;           ///< by warp
  std::uint64_t wokenAt = ~std::uint64_t(0); ///< Worker::progress when waits on mbarriers were last let go in vain
};

/// For BlockState: made once, started for every block.
std::shared_ptr<AsyncState> makeAsyncState(std::size_t warps);
void startAsync(BlockState &block);

/// Delivers the work at once (in order), or keeps it for later.
Next issueAsync(std::unique_ptr<AsyncWork> work);
/// Keeps a work that is not ready yet, also in order; once it is, say so: then it is delivered as any other.
void keepAsync(std::unique_ptr<AsyncWork> work);
Next becameReady(AsyncWork &work);
/// The executing lanes close their open group of the series.
void commitGroup(WarpState &w, GroupSeries series);
/// The executing lanes wait for all but their newest `keep` committed groups; works of `kind` hold them up.  Advance:
/// the wait is over (tell the race checks: BlockRaces::observe).  Otherwise return what it returns: the op runs again.
Next waitForGroups(WarpState &w, const Op &op, GroupSeries series, AsyncKind kind, std::uint32_t keep);

/// Delivers one work of stream `stream` of the block and lets lanes go on that waited for it.
Next deliverAsync(BlockState &block, unsigned stream);
/// Nothing can run and nothing is in flight: lets the lanes that wait for mbarriers look again; false if they have done
/// so since anything changed.
bool wakeMbarrierWaits(BlockState &block);
/// Whether lanes of the block wait for an mbarrier.
bool waitsForMbarrier(const BlockState &block);
/// The block's warps have left: delivers what is in flight, checks what they left unfinished.
Next finishAsync(BlockState &block);

/// "cp.async group 3, 2 in flight": what split `s` of warp `w` waits for, for a deadlock finding.
std::string describeAsyncWait(const BlockState &block, const WarpState &w, const Split &s);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_ASYNC_H
