//===- PeeledLoads.h - Loads next to a loop that continue its own ------------===//
//
// A loop that was rotated (delay-products) has the first round's load of one tile before it and the last one's of
// another after it.  They can flow through the loop's pipelines: the first in a slot before those of the loop's rounds,
// the last in the slot after them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_PIPELINES_PEELEDLOADS_H
#define KILN_PASSES_PIPELINES_PEELEDLOADS_H

#include "compiler/passes/pipelines/SlotBuffers.h"

namespace kiln {

/// A load before the loop, in its block, of the view of this load in the loop, for products that can read the same
/// buffer; whatever tile it loads.  Null: there is none, or memory is written between it and the loop.
tile::LoadViewOp loadBefore(mlir::scf::ForOp loop, const Stage &stage);

/// A load after the loop, in its block, of the tile that this load would load in the round after the last one.
tile::LoadViewOp loadAfter(mlir::scf::ForOp loop, const Stage &stage);

} // namespace kiln

#endif // KILN_PASSES_PIPELINES_PEELEDLOADS_H
