//===- DoorKernel.h - A caller's own kernel, as text -----------------------------===//
//
// A text kernel (.mlir), of a file or of memory, launched with tensors and numbers in the order of its parameters.  It
// is read once a text and device, and compiled for each class of arguments in a process of its own: a text may be
// anybody's.
//
// Invariant: a kernel that was opened stays, as its launches may still run; the same text is the same kernel again.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_DOORKERNEL_H
#define KILN_RUNTIME_DOOR_DOORKERNEL_H

#include "runtime/door/DoorCall.h"
#include "runtime/door/DoorDevices.h"

namespace kiln::door {

/// `arguments`: the file, the kernel's name ("" of a file's only one), the grid's three extents, then the kernel's own.
/// Tensors in the host's memory may all be written.
Failure launchText(std::span<const FfiValue> arguments);

class OpenKernel;
/// The kernel `entry` (empty: the only one) of a text.
Result<OpenKernel *> openText(Place place, std::string_view text, const std::string &entry);
/// A launch with `arguments` in the order of the kernel's parameters, on the device's stream `native`.
Status launchOpen(OpenKernel &kernel, const std::array<std::int64_t, 3> &grid, std::span<const FfiValue> arguments,
                  void *native);

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_DOORKERNEL_H
