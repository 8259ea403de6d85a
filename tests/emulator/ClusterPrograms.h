//===- ClusterPrograms.h - Correct kernels with clusters ------------------===//
//
// Bodies for clusterKernel (ClusterKernels.h) and what every thread must store, from models of their own.  The emulator
// runs them under every schedule, a GPU as it does.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_CLUSTERPROGRAMS_H
#define KILN_TESTS_EMULATOR_CLUSTERPROGRAMS_H

#include "tests/emulator/ClusterKernels.h"

#include <random>

namespace kiln::test {

struct ClusterProgram {
  std::string name, body;
  ClusterShape shape;
  std::vector<std::uint32_t> expected; ///< by linear block, then thread
  std::string directives;
};

/// Where a block is, and what its cluster is.
struct PlaceInCluster {
  Dim3 cluster, inCluster;
  std::uint32_t rank;
};
PlaceInCluster placeInCluster(std::uint64_t linear, const ClusterShape &s);
/// The linear number of the block of a rank.
std::uint32_t blockOfRank(const PlaceInCluster &w, std::uint32_t rank, const ClusterShape &s);
/// Shapes of 1 to 16 blocks, in 1 to 3 dimensions.
std::vector<ClusterShape> clusterShapes();

/// One thread of each block makes `bar` with `count` arrivals, and all blocks know; after the body they meet once more.
/// %r40 = bar, %r41 = the next rank, %r42 = its bar, %p10 = not the first thread.
std::string withBarrier(unsigned count, const std::string &body);
/// Waits for the first phase of `bar`.
extern const std::string waitForBar;

/// Loads, stores, atomics, barriers, registers of clusters.
std::vector<ClusterProgram> memoryPrograms();
/// mbarriers of other blocks, st.async, red.async, setmaxnreg.
std::vector<ClusterProgram> asyncPrograms();

// --- random ones ---------------------------------------------------------------

enum class ClusterSync { Aligned, Unaligned, Relaxed, Apart };
enum class RemoteWay { Shared, Generic, Atomic, Own };

/// Every thread writes to its word in another block, all meet, it adds up what its own word is, all meet.
struct ClusterPhase {
  std::uint32_t shift = 0, add = 1; ///< writes to rank + shift
  RemoteWay way = RemoteWay::Shared;
  ClusterSync first = ClusterSync::Aligned, second = ClusterSync::Aligned;
  std::uint32_t leaving = 99; ///< the warp that exits after it
};
struct ClusterPhases {
  ClusterShape shape;
  std::vector<ClusterPhase> phases;
};
ClusterPhases randomPhases(std::mt19937 &random);
ClusterProgram programOf(const ClusterPhases &c);

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_CLUSTERPROGRAMS_H
