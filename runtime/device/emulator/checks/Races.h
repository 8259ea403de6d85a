//===- Races.h - Accesses that nothing orders -----------------------------===//
//
// Happens-before by vector clocks, section 4 of the emulator specification.  The agents are warps.  Each has a clock a
// warp of its block, and what it learnt of other blocks by acquiring.  A release publishes the clocks and raises the
// warp's own; an access comes before what a warp does now if the warp's clock of its agent has reached the access's.
//  - barriers: every arrival releases, every wait acquires;
//  - atomics, volatile, relaxed, acquire and release accesses and fences: through the location, within their scopes;
//  - lanes of a warp: ordered by whatever its lanes execute together (bar.warp.sync, shuffles, votes, barriers), or as
//    warps are; of a warp's cp.async each lane that waits learns of its own;
//  - asynchronous operations are agents of their own: known to whoever waited for them, and to whom these tell it.
// What the async proxy does must also be allowed to see the generic writes before it: fence.proxy.async
// (AsyncRaces.cpp).
//
// One BlockRaces a resident block, one LaunchRaces a device.  Accesses to global memory by several host threads lock
// the shard of their address; clocks of other clusters change only in launches on one thread, since only those can
// acquire.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACES_H
#define KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACES_H

#include "runtime/device/emulator/checks/RaceTable.h"
#include "runtime/device/emulator/execute/Warp.h"

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>

namespace kiln::emulator {

struct WarpState;
struct LaunchRaces;
class GlobalMemory;

/// One asynchronous operation, or a group of them, to the race checks: its accesses are over for somebody whose clock
/// of clocks[row][index] has reached `epoch`.
struct AsyncAgent {
  std::uint64_t row = 0;
  std::uint32_t epoch = 0;
  std::uint8_t index = 0;
  bool asyncProxy = false; ///< reads and writes through the async proxy: bulk copies and wgmma, not cp.async
  bool atomic = false;     ///< its writes are relaxed atomics of scope .gpu: reductions
  bool ofMap = false;      ///< reads a tensor map, through a proxy of its own
};
/// Host addresses in shared memory of a block of the cluster, or in global memory.
struct AsyncRange {
  static constexpr std::uint8_t issuer = 0xFF;
  std::uint64_t address = 0, bytes = 0;
  std::uint8_t lane = issuer; ///< whose the first `laneBytes` are; the lanes after it have the next ones
  std::uint8_t laneBytes = 0;
};

/// What releases left at a location.
struct Published {
  Knowledge wide;                            ///< for everybody
  std::map<std::uint64_t, Knowledge> narrow; ///< scope .cta, by the block that it is for
};

struct WarpClocks {
  ClockRow own{};                          ///< of the block's warps
  std::shared_ptr<const Knowledge> others; ///< of everybody else; null: nothing
  bool fenced = false;                     ///< a fence was executed: later strong writes publish the following
  Knowledge fenceWide, fenceNarrow;
  Knowledge pendingWide, pendingNarrow; ///< read by strong reads; the next fence acquires it
  std::uint32_t lastAccess = 0;         ///< clock of the last access to the block's shared memory
  std::uint32_t lastWrite = 0;
  std::uint32_t met = 0;   ///< what the warp's lanes did up to this clock they have told each other
  std::uint32_t syncs = 0; ///< WarpState::syncs when the warp last issued something asynchronous

  /// What some lanes acquired on their own: the others know of it after the lanes did something together.
  struct Side {
    std::uint32_t lanes, syncs; ///< syncs: WarpState::syncs then
    bool ownCopies;             ///< cp.async of the warp: each of the lanes knows of its own only
    Knowledge known;
  };
  std::vector<Side> sides;

  /// Whether what agent `index` of `row` did at `clock` comes before what lanes of warp `warp` of `block`, whose clocks
  /// these are, do now.
  bool knows(std::uint64_t block, unsigned warp, std::uint32_t lanes, std::uint64_t row, unsigned index,
             std::uint32_t clock) const {
    if (row == block ? index == warp || own[index] >= clock : others && others->reaches(row, index, clock))
      return true;
    return !sides.empty() && !(lanes & ~lanesThatKnow(row, index, clock));
  }
  std::uint32_t lanesThatKnow(std::uint64_t row, unsigned index, std::uint32_t clock, bool ofAllLanes = false) const {
    std::uint32_t lanes = 0;
    for (const Side &s : sides)
      lanes |= (!s.ownCopies || !ofAllLanes) && s.known.reaches(row, index, clock) ? s.lanes : 0;
    return lanes;
  }
};

/// What a memory family knows of an access.  Host addresses; lane l's is at[l], or first + l * bytes if `contiguous`,
/// or `first` if `uniform`.
struct LaneAccess {
  const std::uint64_t *at;
  std::uint64_t first;
  bool contiguous, uniform;
  unsigned bytes;
  const std::uint8_t *data = nullptr; ///< what stmatrix stores, `bytes` a lane; null: the op's operands say it
  std::uint64_t address(unsigned l) const {
    return contiguous ? first + l * std::uint64_t(bytes) : uniform ? first : at[l];
  }
};
enum class AccessRole : std::uint8_t { Read, Write, Atomic };
/// A write initialises an object or gives it back; everything else comes after the one and before the other.
enum class ObjectUse : std::uint8_t {
  Write,
  Use,
  Complete, ///< by an asynchronous operation whose own accesses are recorded: it uses the object when it is over
};
/// A strong access of one lane.
struct StrongAccess {
  std::uint64_t address;
  bool reads, writes, wide;
};

class BlockRaces {
public:
  BlockRaces(LaunchRaces &launch, std::size_t warps, std::uint32_t sharedBytes);
  /// For the next block of the launch, which `b` is now.
  void start(BlockState &b);
  /// The blocks of a cluster, this one among them: their warps access each other's shared memory.
  void joinCluster(std::span<BlockRaces *const> blocks);
  ~BlockRaces();
  BlockRaces(const BlockRaces &) = delete;
  BlockRaces &operator=(const BlockRaces &) = delete;
  /// That it holds for the block's shared memory.
  std::size_t bytes() const;

  void record(WarpState &w, const Op &op, const LaneAccess &m, AccessRole role);
  /// Lanes `lane` and `other`, which execute `op` together, store different values at `address` (of the host).
  void reportSameBytes(WarpState &w, const Op &op, unsigned lane, unsigned other, std::uint64_t address);
  void fence(WarpState &w, bool narrow);
  void arrive(WarpState &w, unsigned barrier);
  void leave(WarpState &w, unsigned barrier);
  /// Barrier `barrier` completed and `waited` (a mask of warps) have left it; `alive` warps have not exited.
  void completed(unsigned barrier, std::uint32_t waited, std::uint32_t alive);

  // --- AsyncRaces.cpp ---------------------------------------------------------
  /// Accesses of an asynchronous operation that `issuers` (one warp, or the four of a warpgroup) issue now with `op`:
  /// what is known to all of them comes before.  Others know of these accesses once they observed the agent.
  void recordAsync(std::span<WarpState *const> issuers, const Op &op, const AsyncAgent &agent,
                   std::span<const AsyncRange> ranges, bool write);
  void recordAsync(WarpState &issuer, const Op &op, const AsyncAgent &agent, std::span<const AsyncRange> ranges,
                   bool write) {
    WarpState *const one[] = {&issuer};
    recordAsync(one, op, agent, ranges, write);
  }
  /// The warp has waited for the agent's operations up to its epoch.
  void observe(WarpState &w, const AsyncAgent &agent);
  /// fence.proxy.async: what the warp knows the async proxy may see, in these spaces.
  void proxyFence(WarpState &w, bool inShared, bool inGlobal);
  /// fence.proxy.tensormap: what the warp knows is released to copies that read tensor maps; what has been released,
  /// as far as the warp knows, they may see.
  void releaseMaps(WarpState &w);
  void acquireMaps(WarpState &w);
  /// A release to, and an acquire from, what is no memory location (a phase of an mbarrier).  Relaxed: what the last
  /// fence released, what the next fence acquires.
  void releaseTo(WarpState &w, Knowledge &k, bool relaxed);
  void acquireFrom(WarpState &w, const Knowledge &k, bool relaxed);
  /// An instruction works on a synchronisation object of `bytes` bytes at `address` (of the host).
  void recordObject(WarpState &w, const Op &op, std::uint32_t lanes, std::uint64_t address, unsigned bytes,
                    ObjectUse use);
  /// ClusterRaces.cpp: the block's warps have exited.  What other blocks do to its shared memory must come before.
  void checkExit();

private:
  struct Touch;
  void recordGlobal(Touch &t);
  void touchGlobal(Touch &t, std::uint64_t first, std::uint64_t bytes);
  void synchroniseAll(Touch &t, bool inShared);
  void synchronise(WarpState &w, const Op &op, const StrongAccess &s, Published *at,
                   std::unordered_map<std::uint64_t, Published> &places);
  static void touchWords(Touch &t, RaceTable &table, std::uint32_t *cells, std::uint64_t first, std::uint64_t bytes,
                         const std::uint64_t *globalBase);
  static bool notWaitedFor(const Touch &t, const Access &other);
  static void report(Touch &t, const Access &other, std::uint64_t word, bool isShared, bool unseen);
  static void reportLanes(Touch &t, const Access &other, std::uint64_t at, unsigned lane, std::uint32_t otherLanes);

  std::string placeText(const BlockRaces *home, std::uint64_t at) const;
  /// Whose shared memory holds a host address: this block, one of its cluster, or nullptr.
  BlockRaces *homeOf(std::uint64_t address);
  // Of this block's shared memory, whoever touches it.
  void recordShared(Touch &t);
  void touchShared(Touch &t, std::uint64_t first, std::uint64_t bytes, unsigned lane, unsigned laneBytes);
  void lanesInByte(Touch &t, const Transition &step, std::uint64_t at, unsigned lane);
  bool touchesObject(Touch &t);
  bool touchesObject(Touch &t, const AsyncRange &range);
  void noteOutsider(const Touch &t);
  void makeRoom();
  bool settled(const Access &a) const;
  bool everythingIsKnown(const ClockRow &own, const Knowledge *others) const;

  void bump(unsigned warp) { ++clocks[warp].own[warp]; }
  void join(unsigned warp, const Knowledge &k);
  /// The executing lanes learn `k`; ownCopies: each of its own part (WarpClocks::Side).
  void acquire(WarpState &w, const Knowledge &k, bool ownCopies = false);
  /// All lanes of the warp learn what some know; settleSides: if they have done something together since.
  void joinSides(WarpState &w);
  void settleSides(WarpState &w);
  /// What the executing lanes know.
  Knowledge everything(const WarpState &w) const;

  LaunchRaces &launch;
  BlockState *block = nullptr;
  std::uint64_t linear = 0;
  std::uint64_t sharedFirst = 0, sharedBytes = 0; ///< host address of offset 0
  std::vector<BlockRaces *> peers;                ///< the other blocks of the cluster
  std::vector<WarpClocks> clocks;
  struct BarrierClock {
    ClockRow own{};
    std::shared_ptr<const Knowledge> others;
  } barriers[16];
  RaceTable shared;
  std::vector<std::uint32_t> cells;                       ///< of shared memory, by word
  std::vector<std::uint8_t> laneWrote, laneRead;          ///< of shared memory, by byte: RaceTable's Transition
  std::unordered_map<std::uint64_t, Published> published; ///< by host address in shared memory
  Knowledge outsiders; ///< the last accesses to the block's shared memory of all agents but its warps
  struct OutsideUse {
    std::uint32_t clock = 0, op = 0, lanes = 0;
    std::uint64_t block = 0; ///< whose warp `warp` made or issued it
    unsigned warp = 0;
    std::uint64_t phase = 0; ///< of the cluster's barrier: its end comes after the access
  };
  std::map<std::pair<std::uint64_t, unsigned>, OutsideUse> outsideUses; ///< of `outsiders`, those of other blocks
};

struct LaunchRaces {
  struct Shard {
    explicit Shard() : table(smallest, 12) {}
    RaceTable table;
    std::atomic_flag busy;
  };
  static constexpr unsigned shardBits = 16;
  static constexpr std::size_t smallest = 4096;
  static constexpr std::size_t mostStates = std::size_t(1) << 23; ///< in all shards: half a GiB

  /// For a launch on so many workers.
  void start(unsigned workers);
  Shard &shardOf(std::uint64_t address) { return *shards[(address >> shardBits) % shards.size()]; }
  /// The shard is full; its lock is held.
  void makeRoom(Shard &shard);
  /// What the checks hold for global memory, without the cells.
  std::size_t bytes() const;
  /// A block held so many bytes for its shared memory.
  void noteShared(std::size_t held);

  std::vector<std::unique_ptr<Shard>> shards;
  std::unordered_map<std::uint64_t, Published> published; ///< by address; launches on one worker only
  const GlobalMemory *memory = nullptr;
  std::uint32_t *cells = nullptr;            ///< of global memory, by word; null: no checks there
  std::uint64_t base = 0, bytesOfMemory = 0; ///< of global memory
  bool locked = false;                       ///< several workers
  bool wornOut = false;                      ///< after start(): cells must be forgotten
  std::atomic<std::size_t> mostShared{0};    ///< bytes held for one block's shared memory, at most
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_CHECKS_RACES_H
