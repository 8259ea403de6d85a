//===- TilePlanner.h - Conversions of tiles whose extents are m * 2^k ------===//
//
// Two layouts of one tile have the same core and the same repetitions (the core is a function of the shape alone), and
// repetition r of the source holds exactly what repetition r of the destination does.  So the core is planned once and
// its plan applied once a repetition: register r of repetition k is register k * (core registers) + r on either side.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LAYOUT_TILEPLANNER_H
#define KILN_LAYOUT_TILEPLANNER_H

#include "compiler/layout/Planner.h"
#include "compiler/layout/TileLayout.h"

namespace kiln::layout {

/// The core's plan, chosen for all repetitions, and what these use together: core.repetitions, in rounds of
/// core.perRound through scratch, where slab j of a round lies at byte j * core.scratchBytes.
struct TileConversionPlan {
  ConversionPlan core;
  std::uint64_t scratchBytes = 0; ///< perRound slabs
  unsigned barriers = 0;          ///< of the kind core.barrier, all rounds together
  std::uint64_t wavefronts = 0, conflicts = 0;
  unsigned shuffles = 0, selects = 0;
  std::uint64_t permutes = 0;
};

/// planConversion's diagnostics; L12 also if the tiles' extents differ.  `options.repetitions` is not read: the tiles
/// say it.
Result<TileConversionPlan> planTileConversion(const TileLayout &source, const TileLayout &destination,
                                              unsigned elementBits, const Target &target, const PlanOptions &options);
inline Result<TileConversionPlan> planTileConversion(const TileLayout &source, const TileLayout &destination,
                                                     unsigned elementBits, const Target &target,
                                                     std::uint64_t scratchBytes = defaultScratchBytes) {
  return planTileConversion(source, destination, elementBits, target, PlanOptions{.scratchBytes = scratchBytes});
}

} // namespace kiln::layout

#endif // KILN_LAYOUT_TILEPLANNER_H
