//===- Planner.h - The one answer to "how does this tensor change layout" --===//
//
// planConversion returns the cheapest legal plan, and in it the reason or the cost of everything that was not taken.
// There is a plan for every pair of layouts of equal shape, warps and blocks, on every target and for every scratch
// limit of at least one element.  Pure functions; a smaller scratch limit never gives a smaller cost.  What a target
// can do is asked of its capabilities, never of its name.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_PLANNER_H
#define KILN_LAYOUT_PLANNER_H

#include "compiler/layout/ConversionPlan.h"
#include "compiler/layout/LinearLayout.h"
#include "compiler/target/Target.h"

#include <optional>
#include <vector>

namespace kiln::layout {

constexpr std::uint64_t defaultScratchBytes = 48 * 1024;

struct PlanOptions {
  std::uint64_t scratchBytes = defaultScratchBytes;
  /// Only this strategy: a plan of it, or a failure with the reason why it does not apply.  For tests and experiments.
  std::optional<Strategy> force = std::nullopt;
  /// How often the conversion is done, one after the other, through the same scratch: the plan is the cheapest for all.
  unsigned repetitions = 1;
  /// The destination's registers are an instruction's operands, which wants them side by side: words that a load leaves
  /// apart have to be moved, and that is part of the cost.
  bool neighbours = false;
};

/// Diagnostics L04, L07, L12, L13, L16, L18 (warps or blocks beyond the hardware's), L19 (scratch below one element).
Result<ConversionPlan> planConversion(const LinearLayout &source, const LinearLayout &destination, unsigned elementBits,
                                      const Target &target, const PlanOptions &options);
inline Result<ConversionPlan> planConversion(const LinearLayout &source, const LinearLayout &destination,
                                             unsigned elementBits, const Target &target,
                                             std::uint64_t scratchBytes = defaultScratchBytes) {
  return planConversion(source, destination, elementBits, target, PlanOptions{.scratchBytes = scratchBytes});
}

/// Every legal plan: each shuffle schedule, each pair of access forms in each scope, the scalar exchange in each scope
/// that the limit allows.  For fuzzers; the plan of planConversion is among them (`rejected` is left empty here).
Result<std::vector<ConversionPlan>> planEveryConversion(const LinearLayout &source, const LinearLayout &destination,
                                                        unsigned elementBits, const Target &target,
                                                        std::uint64_t scratchBytes = defaultScratchBytes,
                                                        unsigned repetitions = 1);

} // namespace kiln::layout

#endif // KILN_LAYOUT_PLANNER_H
