//===- CountersReport.h - Counters as text and JSON -----------------------===//
#ifndef KILN_RUNTIME_TOOLS_COUNTERSREPORT_H
#define KILN_RUNTIME_TOOLS_COUNTERSREPORT_H

#include "runtime/tools/Report.h"

#include "kiln/Counters.h"

#include <span>

namespace kiln::tools {

/// Launches that counted the same are one entry with their number.
Json toJson(std::span<const LaunchCounters> launches);
/// The same for a terminal, with a table by source line.
void printCounters(std::span<const LaunchCounters> launches);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_COUNTERSREPORT_H
