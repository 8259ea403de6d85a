//===- PipelineStates.h - What is known of a pipeline where it is lowered -----===//
//
// For lower-pipelines: the slots of a pipeline in the kernel's terms, whose turn they are, and which of these numbers
// loops and conditionals carry.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_PIPELINES_PIPELINESTATES_H
#define KILN_PASSES_PIPELINES_PIPELINESTATES_H

#include "compiler/tile_gpu/TileGpu.h"

#include <string>

namespace kiln {

/// The slots of one pipeline.
struct Ring {
  tile_gpu::PipelineType type;
  llvm::SmallVector<mlir::Value> buffers; ///< of all slots
  mlir::Value full, empty;                ///< mbarriers, one a slot, of a bulk pipeline
  bool once = false;                      ///< a block has them once
  bool single = false; ///< the slot that is filled next follows from the one that is read next, and is not carried

  bool isBulk() const { return bool(full); }
};

/// A slot's number, and in a bulk pipeline its phase.
struct Turn {
  mlir::Value slot, phase;
};

/// Of a pipeline, where some operation gives it.
struct RingState {
  const Ring *ring = nullptr;
  Turn read, write; ///< the oldest slot that was not released, the next to be committed
  /// Of what was committed and not waited for, the oldest first; not of bulk copies.
  llvm::SmallVector<mlir::Value> groups;
  unsigned acquired = 0, committed = 0, waited = 0; ///< slots in the producer's hands, in nobody's, in the consumer's

  unsigned taken() const { return acquired + committed + waited; }
  /// Another that a loop or a conditional may carry in its place.
  bool sameShape(const RingState &o) const {
    return ring == o.ring && committed == o.committed && acquired == o.acquired && waited == o.waited;
  }
  /// What is carried.
  llvm::SmallVector<mlir::Value> values() const {
    if (ring->single)
      return {read.slot, read.phase};
    llvm::SmallVector<mlir::Value> out = {read.slot, write.slot};
    if (ring->isBulk())
      out.append({read.phase, write.phase});
    out.append(groups);
    return out;
  }
  RingState with(mlir::ValueRange values) const {
    RingState out = *this;
    out.read.slot = values[0];
    if (ring->single) {
      out.read.phase = values[1];
      out.write = {};
      return out;
    }
    out.write.slot = values[1];
    if (ring->isBulk()) {
      out.read.phase = values[2];
      out.write.phase = values[3];
    } else {
      out.groups.assign(values.begin() + 2, values.end());
    }
    return out;
  }
  std::string text() const {
    return std::to_string(acquired) + " acquired, " + std::to_string(committed) + " committed, " +
           std::to_string(waited) + " waited for";
  }
};

} // namespace kiln

#endif // KILN_PASSES_PIPELINES_PIPELINESTATES_H
