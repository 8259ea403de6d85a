//===- RemoteAsync.h - Stores and reductions that complete an mbarrier ----===//
//
// st.async and red.async: section 1.7 of the emulator specification.  Every lane writes 4 to 16 bytes into the shared
// memory of a block of the cluster; when they are there, an mbarrier of the same block has so many bytes more.
//
// Operands: the destination's address in s[0] + imm, the mbarrier's in s[1] + s[3], one value in s[2] or several in the
// pool at aux.  Op::flags: those of access:: for the destination, and the following.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_REMOTEASYNC_H
#define KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_REMOTEASYNC_H

#include "runtime/device/emulator/execute/Warp.h"

namespace kiln::emulator {

namespace remoteFlag {
constexpr std::uint16_t wide = 128;              ///< elements of 8 bytes
constexpr std::uint16_t mbarrierBase32 = 0x2000; ///< the mbarrier's address register has 32 bits
} // namespace remoteFlag

/// What a reduction makes of the value in memory and the operand.
using Combine = std::uint64_t (*)(std::uint64_t old, std::uint64_t operand);

Next storeAsync(Warp &w, const Op &op);
Next reduceAsync(Warp &w, const Op &op, Combine combine);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_REMOTEASYNC_H
