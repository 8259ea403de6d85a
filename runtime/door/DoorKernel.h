//===- DoorKernel.h - A caller's own kernel, as text -----------------------------===//
//
// A text kernel (.mlir) of a file, launched with tensors and numbers in the order of its parameters.  It is read once a
// file's path and device, and compiled for each class of arguments in a process of its own: a file may be anybody's.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_DOORKERNEL_H
#define KILN_RUNTIME_DOOR_DOORKERNEL_H

#include "runtime/door/DoorCall.h"

namespace kiln::door {

/// `arguments`: the file, the kernel's name ("" of a file's only one), the grid's three extents, then the kernel's own.
/// Tensors in the host's memory may all be written.
Failure launchText(std::span<const FfiValue> arguments);

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_DOORKERNEL_H
