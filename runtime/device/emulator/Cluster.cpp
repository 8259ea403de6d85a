#include "runtime/device/emulator/Cluster.h"

#include "runtime/device/emulator/Program.h"

namespace kiln::emulator {

BlockState *blockOfShared(BlockState &from, std::uint64_t sharedAddress) {
  return sharedAddress < sharedRankBytes ? &from : nullptr;
}

} // namespace kiln::emulator
