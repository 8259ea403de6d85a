//===- DoorPlans.h - Calls that are described, not run -------------------------===//
//
// What a call through the door would launch: compiled ahead of time, or told.  Nothing runs, and outputs keep what they
// hold.  On the emulator the tensors are copies, as those of a call are.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_DOORPLANS_H
#define KILN_RUNTIME_DOOR_DOORPLANS_H

#include "runtime/door/OperationCall.h"

namespace kiln::door {

/// Has the code of a call compiled, side by side.  `wait`: until it is there; else a later call of the same finds it,
/// or waits for what is still missing.
Failure prepare(const kernels::Family &family, std::span<const FfiValue> arguments, bool wait);

/// What a call launches, as JSON: {"operation", "device", "workspace": [{"name", "bytes"}], "launches": [{"kernel",
/// "configuration", "variant", "grid", "threads", "shared_bytes", "source", "milliseconds"}]}.  Code that is missing is
/// compiled.
Failure explain(const kernels::Family &family, std::span<const FfiValue> arguments, std::string &json);

/// What arguments say, and that it is right; the device is open and the operation bound to it.
Failure readWhole(OperationCall &call, std::span<const FfiValue> arguments);
/// Copies of the inputs of a call in the host's memory.
kernels::Arrays inputsOf(const OperationCall &call);

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_DOORPLANS_H
