//===- Explain.h - Plans as text and as JSON -------------------------------===//
//
// What moves, how, what it costs, what it needs, and why every other strategy was not taken.  Texts are for people and
// may change; the JSON keys are those of the plan's fields and are stable.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_EXPLAIN_H
#define KILN_LAYOUT_EXPLAIN_H

#include "compiler/layout/LocalAccess.h"
#include "compiler/layout/Reduction.h"
#include "compiler/layout/TilePlanner.h"

#include <string>

namespace kiln::layout {

std::string explain(const ConversionPlan &plan);
std::string explain(const TileConversionPlan &plan);
std::string explain(const LocalAccessPlan &plan);
/// Also the order in which partial results are combined, on which the last bits of a float result depend.
std::string explain(const ReductionPlan &plan);

/// One JSON object, no line breaks.  Masks are numbers; directions and columns are arrays of them.
std::string toJson(const ConversionPlan &plan);
std::string toJson(const TileConversionPlan &plan);
std::string toJson(const LocalAccessPlan &plan);

} // namespace kiln::layout

#endif // KILN_LAYOUT_EXPLAIN_H
