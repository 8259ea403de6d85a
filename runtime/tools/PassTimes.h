//===- PassTimes.h - How long every pass of a compile took ------------------===//
#ifndef KILN_RUNTIME_TOOLS_PASSTIMES_H
#define KILN_RUNTIME_TOOLS_PASSTIMES_H

#include "runtime/tools/Report.h"

namespace kiln::tools {

/// A table on standard error of a compile's metadata ("passes"): the slowest first, those of less than a thousandth of
/// the whole in one row.
void printPassTimes(const Json &metadata);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_PASSTIMES_H
