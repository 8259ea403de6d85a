#include "compiler/layout/TilePlanner.h"

#include "compiler/layout/Checks.h"

#include <algorithm>

namespace kiln::layout {

Result<TileConversionPlan> planTileConversion(const TileLayout &source, const TileLayout &destination,
                                              unsigned elementBits, const Target &target, const PlanOptions &options) {
  if (!(source.tile() == destination.tile()))
    return Status::invalid("L12: a conversion cannot change the shape; the source has " + shapeText(source.shape()) +
                               ", the destination " + shapeText(destination.shape()),
                           "reshape first, or give both layouts the tensor's shape");
  TileConversionPlan plan;
  KILN_ASSIGN(plan.core, planConversion(source.core(), destination.core(), elementBits, target, options));
  plan.repetitions = source.repetitions();
  if (plan.core.passes) {
    std::uint64_t slabs = plan.core.passes == 1 ? options.scratchBytes / plan.core.scratchBytes : 1;
    plan.perRound = static_cast<unsigned>(std::clamp<std::uint64_t>(slabs, 1, plan.repetitions));
    // Rounds of one pass: store, barrier, load, with a barrier between; a cluster ends with one more.
    bool cluster = plan.core.barrier == Barrier::Cluster;
    plan.barriers = 2 * plan.core.passes * plan.rounds() - (cluster ? 0 : 1);
    plan.scratchBytes = plan.perRound * plan.core.scratchBytes;
  } else {
    plan.perRound = plan.repetitions;
  }
  plan.cost = plan.core.cost * plan.repetitions;
  plan.wavefronts = plan.core.wavefronts * plan.repetitions;
  plan.conflicts = plan.core.conflicts * plan.repetitions;
  plan.shuffles = plan.core.shuffles * plan.repetitions;
  plan.selects = plan.core.selects * plan.repetitions;
  plan.permutes = plan.core.permutes * plan.repetitions;
  return plan;
}

} // namespace kiln::layout
