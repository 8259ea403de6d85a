//===- LaneValues.h - A lane's operands, outside the levels ---------------===//
//
// For instructions that go lane by lane in code that exists once (the families of insn/ have LaneOps.h).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_LANEVALUES_H
#define KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_LANEVALUES_H

#include "runtime/device/emulator/execute/Warp.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

namespace kiln::emulator {

/// Calls f(lane) for every lane of a mask.
template <typename Fn> void eachLane(std::uint32_t lanes, Fn f) {
  for (; lanes; lanes &= lanes - 1)
    f(static_cast<unsigned>(__builtin_ctz(lanes)));
}

/// The 32 values of a slot.
template <typename T> T *lanesOf(const Warp &w, Slot slot) {
  return reinterpret_cast<T *>(w.registers + slot);
}

/// What a lane has in a slot of 32 or 64 bits.
inline std::uint64_t laneValue(const Warp &w, Slot slot, unsigned lane, bool narrow) {
  return narrow ? lanesOf<std::uint32_t>(w, slot)[lane] : lanesOf<std::uint64_t>(w, slot)[lane];
}

/// The device address s[0] + imm.
inline std::uint64_t laneAddress(const Warp &w, const Op &op, unsigned lane) {
  const bool narrow = op.flags & access::base32;
  const std::uint64_t at = laneValue(w, op.s[0], lane, narrow) + static_cast<std::uint64_t>(op.imm);
  return narrow ? static_cast<std::uint32_t>(at) : at;
}

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_LANEVALUES_H
