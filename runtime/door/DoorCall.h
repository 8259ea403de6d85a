//===- DoorCall.h - A call of an operation through the door --------------------===//
//
// Arguments by position, in the order of the family's own table (kernels/support/Callable.h): its tensors, inputs and
// outputs, then its options, then a workspace.  None, and trailing arguments that are left out, are not given.  An
// optional output is asked for by giving it.  Groups of tensors (TensorParameter::isGroup) have no place.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_DOORCALL_H
#define KILN_RUNTIME_DOOR_DOORCALL_H

#include "kernels/support/Family.h"
#include "runtime/door/TvmFfi.h"

#include <span>

namespace kiln::door {

/// What was wrong, as a kind of Python's errors and a message.
struct Failure {
  std::string kind; ///< empty: nothing was wrong
  std::string message;
  std::string remedy = {};
  StatusCode code = StatusCode::InvalidArgument;
  /// "message (remedy)", as Status has it.
  std::string toString() const { return remedy.empty() ? message : message + " (" + remedy + ")"; }
};
Failure failureOf(std::string_view operation, const Status &status);

/// Where a call on a GPU runs, if its arguments and tvm-ffi do not say it.
struct Surroundings {
  void *stream = nullptr; ///< of the device's driver; nullptr: its default stream
  DeviceAddress workspace = 0;
  std::size_t workspaceBytes = 0;
};

/// Runs a call.  In the host's memory its outputs are written when it returns.
Failure run(const kernels::Family &family, std::span<const FfiValue> arguments, const Surroundings *given = nullptr);

/// Bytes of the workspace that a caller may bring; 0 in the host's memory.  They follow from types, shapes, strides and
/// options: a caller may ask once for these.
Failure workspaceOf(const kernels::Family &family, std::span<const FfiValue> arguments, std::size_t &bytes);

/// Has the code of a call made, and launches nothing.  `isReady`: whether it is there on return, which it is if
/// `waits`.
Failure prepare(const kernels::Family &family, std::span<const FfiValue> arguments, bool waits, bool &isReady);

/// What a call would launch, as JSON: {"operation", "device", "target", "workspace": [{"name", "bytes"}], "launches":
/// [{"kernel", "configuration", "arguments", "grid", "threads", "shared_bytes", "code", "milliseconds"}]}.
/// "configuration": the fields that the operation, or a sweep, chose; "arguments": what the code is compiled for of
/// them; "code": where it came from (memory, disk, shared, compiled), and the time that took.  Code that is not there
/// is made.
Failure explain(const kernels::Family &family, std::span<const FfiValue> arguments, std::string &json);

/// Types of the outputs of a call.  Inputs and options as of `run`; an optional output is asked for by True.
Failure outputsOf(const kernels::Family &family, std::span<const FfiValue> arguments, kernels::TensorTypes &types);

/// The same as JSON: [{"name", "shape", "dtype"}].
Failure outputsOf(const kernels::Family &family, std::span<const FfiValue> arguments, std::string &json);

/// All operations, as JSON: names, parameters, options with kinds, defaults, texts; the knobs.
std::string describeAll();

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_DOORCALL_H
