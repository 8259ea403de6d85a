//===- Cluster.h - Blocks that share their shared memory ------------------===//
//
// The unit that a worker runs: one or more blocks whose warps take turns, as a GPU runs the blocks of a cluster at the
// same time.  A launch without clusters has clusters of one block.
//
// An address of shared memory, the offset in the shared window, is rank << 24 | offset: the rank of a block in its
// cluster, and the offset in that block's shared memory.  A block's own addresses have its own rank.
//
// Invariants: all blocks of a cluster start together and belong to one worker; the state of a block that has left stays
// until the last one has.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_CLUSTER_H
#define KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_CLUSTER_H

#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/execute/Executor.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::emulator {

constexpr unsigned maxClusterBlocks = 16;

class ClusterState {
public:
  explicit ClusterState(Worker &worker);
  /// Whether the host had the memory.
  bool good() const { return !blocks.empty(); }
  /// Makes it cluster number `n` of the launch, ready to run.
  void start(std::uint64_t n);
  bool isAlone() const { return blocks.size() == 1; }
  bool finished() const;

  Worker &worker;
  std::uint64_t number = 0;
  std::vector<std::unique_ptr<BlockState>> blocks; ///< by rank
  Chooser chooser;                                 ///< of a seeded launch: among the blocks
  Round round;                                     ///< of a seeded launch
  std::uint64_t roundExecuted = 0;                 ///< of it: instructions of this cluster
  bool deliversFirst = false;                      ///< of it: asynchronous work in flight comes before any warp
  /// barrier.cluster: the phase being collected, what its arrivals release, what those of the last one released.
  std::uint64_t phase = 0;
  Knowledge releasing, released;
};

/// Spinning: every warp polls in vain.  Paused: the instructions or turns given are used up.
enum class ClusterResult : std::uint8_t { Done, Fault, Spinning, OutOfBudget, Paused };
/// Runs the warps in order, until they have executed about so many instructions.
ClusterResult runCluster(ClusterState &cluster, std::uint64_t instructions);
/// Gives warps of a seeded launch so many turns.
ClusterResult runTurns(ClusterState &cluster, std::uint64_t turns);

/// The block of `from`'s cluster whose shared memory `sharedAddress` names; nullptr if its rank is not in the cluster.
inline BlockState *blockOfShared(BlockState &from, std::uint64_t sharedAddress) {
  const auto &blocks = from.cluster.blocks;
  const std::uint64_t rank = sharedAddress / sharedRankBytes;
  return rank < blocks.size() ? blocks[rank].get() : nullptr;
}

/// The block of `from`'s cluster whose shared memory holds the byte at a host address; nullptr if none does.
inline BlockState *blockHolding(BlockState &from, std::uint64_t host) {
  auto holds = [&](const BlockState &b) { return host - reinterpret_cast<std::uint64_t>(b.shared) < b.sharedEnd; };
  if (holds(from))
    return &from;
  if (!from.cluster.isAlone())
    for (const auto &b : from.cluster.blocks)
      if (holds(*b))
        return b.get();
  return nullptr;
}

/// Whether the block has exited; if so, reports that `lanes` access its shared memory.
bool reportIfExited(WarpState &w, const Op &op, std::uint32_t lanes, const BlockState &owner);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_CLUSTER_H
