#include "compiler/layout/TilePlanner.h"

#include "compiler/layout/Checks.h"

namespace kiln::layout {

Result<TileConversionPlan> planTileConversion(const TileLayout &source, const TileLayout &destination,
                                              unsigned elementBits, const Target &target, const PlanOptions &options) {
  if (!(source.tile() == destination.tile()))
    return Status::invalid("L12: a conversion cannot change the shape; the source has " + shapeText(source.shape()) +
                               ", the destination " + shapeText(destination.shape()),
                           "reshape first, or give both layouts the tensor's shape");
  TileConversionPlan plan;
  PlanOptions all = options;
  all.repetitions = source.repetitions();
  KILN_ASSIGN(plan.core, planConversion(source.core(), destination.core(), elementBits, target, all));
  if (plan.core.passes) {
    // Rounds of one pass: store, barrier, load, with a barrier between; a cluster ends with one more.
    bool cluster = plan.core.barrier == Barrier::Cluster;
    plan.barriers = 2 * plan.core.passes * plan.core.rounds() - (cluster ? 0 : 1);
    plan.scratchBytes = plan.core.perRound * plan.core.scratchBytes;
  }
  const unsigned repetitions = plan.core.repetitions;
  plan.wavefronts = plan.core.wavefronts * repetitions;
  plan.conflicts = plan.core.conflicts * repetitions;
  plan.shuffles = plan.core.shuffles * repetitions;
  plan.selects = plan.core.selects * repetitions;
  plan.permutes = plan.core.permutes * repetitions;
  return plan;
}

} // namespace kiln::layout
