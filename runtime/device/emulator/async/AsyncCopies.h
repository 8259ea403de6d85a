//===- AsyncCopies.h - cp.async -------------------------------------------===//
//
// Copies of 4, 8 or 16 bytes a lane from global to shared memory, section 3.1 of the emulator specification.  They
// belong to the generic proxy; completion is known by group or through an mbarrier.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_ASYNCCOPIES_H
#define KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_ASYNCCOPIES_H

#include "runtime/device/emulator/execute/Warp.h"

namespace kiln::emulator {

/// Op::flags of cp.async, in addition to those of access:: for the destination: s[2] is the number of source bytes, or
/// a predicate that says "none".  Bits access::countShift and up: words of a lane.
namespace copyFlag {
constexpr std::uint16_t sourceSize = 0x2000, ignoreSource = 0x4000;
} // namespace copyFlag

/// [s[0] + imm] in shared memory = [s[1] + s[3]] in global memory.
Next copyAsync(Warp &w, const Op &op);
Next copyCommit(Warp &w, const Op &op);
/// All but the newest `imm` groups.
Next copyWait(Warp &w, const Op &op);
/// Arrives at the mbarrier at s[0] + imm when the lane's copies so far are done; flags: see below.
Next copyArrive(Warp &w, const Op &op);
constexpr std::uint16_t copyArriveNoinc = 0x100;

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_ASYNCCOPIES_H
