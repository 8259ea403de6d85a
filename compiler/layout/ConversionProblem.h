//===- ConversionProblem.h - A conversion, checked and classified ---------===//
//
// What every strategy needs to know: the two layouts, the element width, the target, and how far data has to travel.
// The level is the smallest l such that the source's inner inputs (1 register, 2 +lane, 3 +warp, 4 +block) can produce
// every destination basis in place; no choice among replicated copies, linear or not, does better.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_CONVERSIONPROBLEM_H
#define KILN_LAYOUT_CONVERSIONPROBLEM_H

#include "compiler/layout/ConversionPlan.h"
#include "compiler/layout/LinearLayout.h"
#include "compiler/target/Target.h"

namespace kiln::layout {

/// Refers to the layouts and the target that it was made from.
struct ConversionProblem {
  const LinearLayout *source = nullptr, *destination = nullptr;
  const Target *target = nullptr;
  unsigned elementBits = 0;
  unsigned storageBytes = 0, logBytes = 0;
  unsigned warps = 1, blocks = 1;
  unsigned repetitions = 1; ///< of these layouts, that move alike one after the other: what costs are of
  bool neighbours = false;  ///< PlanOptions::neighbours
  unsigned level = 1;
  ConversionClass cls = ConversionClass::None;
  /// Level 1 only: columns destination register bit -> source register, the part that lanes and warps do not change.
  Columns registerSource;

  /// Diagnostics L04, L07, L12, L13, L16, L18.
  static Result<ConversionProblem> create(const LinearLayout &source, const LinearLayout &destination,
                                          unsigned elementBits, const Target &target, unsigned repetitions = 1);

  /// Fields of the plan that do not depend on the strategy.
  ConversionPlan emptyPlan(Strategy strategy) const;
};

/// L07 unless the layout covers its tensor, L04 unless it has the lanes of a warp.  `name`: "source", for messages.
Status checkDistributedSide(const char *name, const LinearLayout &layout);

} // namespace kiln::layout

#endif // KILN_LAYOUT_CONVERSIONPROBLEM_H
