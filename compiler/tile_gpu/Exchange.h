//===- Exchange.h - The plan of exchange_store and exchange_load ------------===//
//
// Both ops of an exchange name the two layouts and the size of the scratch; the plan follows from these alone, so
// barriers, their proof and the lowering read the same one.
//
// A pass of the ops is one store, one barrier and one load.  There are rounds() * core.passes of them: repetitions of
// the tile go through scratch in rounds, and if the core itself needs several passes a round is one repetition.  Within
// a pass repetition `first + j` uses the slab at byte j * core.scratchBytes of the scratch.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_EXCHANGE_H
#define KILN_TILE_GPU_EXCHANGE_H

#include "compiler/layout/TilePlanner.h"
#include "compiler/tile_gpu/TileGpu.h"

namespace kiln::tile_gpu {

/// Of an access of `op` that has an exchange step.  The planner's diagnostics, and a failure if the plan needs no
/// shared memory, needs another block's, or if the scratch is not of its size.
Result<layout::TileConversionPlan> exchangePlan(mlir::Operation *op, const tile::MemoryAccess &access);
/// Of the only access of an exchange_store or exchange_load.
Result<layout::TileConversionPlan> exchangePlan(mlir::Operation *op);

inline unsigned exchangePasses(const layout::TileConversionPlan &plan) {
  return plan.core.rounds() * plan.core.passes;
}

struct ExchangePass {
  unsigned corePass = 0;    ///< pass of the core's plan
  unsigned first = 0;       ///< first repetition
  unsigned repetitions = 0; ///< how many
};
/// pass < exchangePasses(plan)
ExchangePass exchangePass(const layout::TileConversionPlan &plan, unsigned pass);

} // namespace kiln::tile_gpu

#endif // KILN_TILE_GPU_EXCHANGE_H
