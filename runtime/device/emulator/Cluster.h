//===- Cluster.h - Blocks that share their shared memory ------------------===//
//
// An address of shared memory, the offset in the shared window, is rank << 24 | offset: the rank of a block in its
// cluster, and the offset in that block's shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_CLUSTER_H
#define KILN_RUNTIME_DEVICE_EMULATOR_CLUSTER_H

#include <cstdint>

namespace kiln::emulator {

class BlockState;

/// The block of `from`'s cluster whose shared memory `sharedAddress` names; nullptr if its rank is not in the cluster.
BlockState *blockOfShared(BlockState &from, std::uint64_t sharedAddress);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_CLUSTER_H
