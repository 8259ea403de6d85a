//===- TuneReport.h - What `kiln tune` prints ---------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_TUNEREPORT_H
#define KILN_RUNTIME_TOOLS_TUNEREPORT_H

#include "runtime/tools/Report.h"
#include "runtime/tools/TuneCall.h"
#include "runtime/tune/Confirm.h"

namespace kiln::tools {

/// The space: its parameters, what each rule rejects, what is kept.
Json spaceJson(const tune::Space &space, const tune::Pruned &pruned);
void printSpace(const tune::Space &space, const tune::Pruned &pruned, bool withBest);

/// The sweep: its best configurations, failures, how it ended.  `usual`: the default's entry; null if the sweep has
/// none.
Json sweepJson(const tune::SweepResult &result, const tune::Entry *usual);
void printSweep(const tune::SweepResult &result, const tune::Entry *usual);

/// The best few, measured again in turn.
Json confirmedJson(const std::vector<tune::Confirmed> &confirmed);
void printConfirmed(const std::vector<tune::Confirmed> &confirmed);

/// What later calls take.
Json keptJson(const std::vector<TuneCall::Kept> &kept);
void printKept(const std::vector<TuneCall::Kept> &kept);

/// Why no configuration is good.
Status noGood(const tune::SweepResult &result);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_TUNEREPORT_H
