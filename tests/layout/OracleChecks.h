//===- OracleChecks.h - The counts and descriptions of a plan, recomputed -===//
#ifndef KILN_TESTS_LAYOUT_ORACLECHECKS_H
#define KILN_TESTS_LAYOUT_ORACLECHECKS_H

#include "compiler/layout/ConversionPlan.h"
#include "compiler/layout/LinearLayout.h"
#include "compiler/target/Target.h"

#include <string>

namespace kiln::test {

/// Checks the sizes of lists and the ranges of indices.  The error, or nothing: then the plan can be run safely.
std::string checkPlanShape(const layout::ConversionPlan &plan, const layout::LinearLayout &source,
                           const layout::LinearLayout &destination);

/// Checks what a plan of good shape claims about itself: capabilities, counts against steps, cost against counts,
/// coordinates and offset basis against addresses.  A null target is the one that the plan names.
std::string checkPlanClaims(const layout::ConversionPlan &plan, const layout::LinearLayout &source,
                            const layout::LinearLayout &destination, const Target *target);

/// The cost formula of the layouts specification, section 3.8, on the counts of a plan.
double specifiedCost(const layout::ConversionPlan &plan);

} // namespace kiln::test

#endif // KILN_TESTS_LAYOUT_ORACLECHECKS_H
