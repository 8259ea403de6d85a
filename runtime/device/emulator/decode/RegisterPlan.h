//===- RegisterPlan.h - Where a function's registers lie ------------------===//
//
// PTX has as many registers as a compiler cares to name.  Registers that are never live at the same time share a slot,
// so a warp's working set stays in the host's first-level cache.  Lanes own columns of a slot and each follows the
// control flow, so liveness holds lane by lane however they diverge.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_REGISTERPLAN_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_REGISTERPLAN_H

#include "runtime/device/emulator/decode/ControlFlow.h"

namespace kiln::emulator {

struct RegisterPlan {
  /// By register: its slot, one of the registers' slots of the same width; trashSlot if nobody touches it.
  std::vector<Slot> places;
  /// 128-byte pieces (as slots) that may be read before they are written.
  std::vector<Slot> unwritten;
};

/// `registers` are slots and bytes a lane (4, 8, 16); accesses of other slots or other functions' ops are ignored.
RegisterPlan planRegisters(const FlowGraph &graph, std::span<const SlotAccess> accesses,
                           std::span<const std::pair<Slot, unsigned>> registers);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_REGISTERPLAN_H
