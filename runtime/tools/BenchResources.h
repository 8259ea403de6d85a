//===- BenchResources.h - --resources of kiln bench --------------------------===//
//
// What an assembler or a GPU's driver says of the kernels of a call: compiled and not launched.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_BENCHRESOURCES_H
#define KILN_RUNTIME_TOOLS_BENCHRESOURCES_H

#include "kiln/Jit.h"
#include "runtime/tools/FamilyCalls.h"
#include "runtime/tools/Report.h"

namespace kiln::tools {

/// The call's kernels with threads, shared memory, and where they are known registers and spilled bytes of a thread.
Result<Json> resourcesRow(Device &device, Jit &jit, const FamilyCall &call);

std::string resourcesText(const Json &row);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_BENCHRESOURCES_H
