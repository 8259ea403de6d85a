//===- BenchFirstCall.h - What a first call costs: kiln bench --first-call --------===//
//
// A call's kernels, and those of the calls that make its inputs (the forward of a backward), compiled side by side by
// new processes: with an empty cache each, then from the cache on disk.  The clock runs from before the Jit is made
// until every kernel is loaded; the device and the tensors are there before.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_BENCHFIRSTCALL_H
#define KILN_RUNTIME_TOOLS_BENCHFIRSTCALL_H

#include "kiln/Jit.h"
#include "runtime/tools/FamilyCalls.h"
#include "runtime/tools/Report.h"

namespace kiln::tools {

/// What such a process does: "milliseconds", "kernels" with their stages.
Result<Json> firstCallHere(Device &device, const JitOptions &options, const FamilyCall &call);

/// Of one call: `words` are those of a command that does firstCallHere for it, without --cache-dir.  "coldMs" and
/// "diskMs" are medians of so many `processes`.
Result<Json> firstCallRow(const std::vector<std::string> &words, unsigned processes, const FamilyCall &call);
std::string firstCallText(const Json &row);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_BENCHFIRSTCALL_H
