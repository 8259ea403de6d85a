//===- SlotBuffers.h - Where staged loads lie in the slots of pipelines ------===//
//
// For pipeline-loops: the buffer of each staged load, and how many slots fit into shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_PIPELINES_SLOTBUFFERS_H
#define KILN_PASSES_PIPELINES_SLOTBUFFERS_H

#include "compiler/passes/pipelines/StagedLoads.h"
#include "compiler/passes/pipelines/TensorCopies.h"
#include "compiler/passes/shared/WarpgroupOperands.h"

#include <vector>

namespace kiln {

/// A staged load and its buffers.
struct Stage {
  StagedLoad staged;
  tile_gpu::BufferType type; ///< of one slot
  uint64_t bytes = 0;
  bool inPlace = false;           ///< products of warpgroups read the slot by themselves
  tile_gpu::BufferType mapped;    ///< of a tile that threads read: as a tensor map would lay it, if that is as cheap
  std::optional<TensorCopy> bulk; ///< how the copy engine copies it

  /// Of a tile that is read in place.
  llvm::SmallVector<WarpgroupOperand> products() const { return *warpgroupOperands(staged.load->getResult(0)); }
  /// Where the copy engine puts the tile; null: nowhere.
  tile_gpu::BufferType bulkType() const { return inPlace ? type : mapped; }
  /// The first operation of the load's block that uses the tile, itself or by what is inside of it; null: none.
  mlir::Operation *firstReader() const;
  /// The first product there that reads the tile, or what threads make of it; else what reads it first.
  mlir::Operation *firstProduct() const;
};

struct SlotBuffers {
  std::vector<Stage> stages;
  unsigned count = 0; ///< of slots
  /// Loads that got no buffers, and why.
  llvm::SmallVector<std::pair<mlir::Operation *, std::string>> dropped;

  /// Loads that products and conversions take need buffers; the others have what is left, in program order.  False if
  /// there is nothing to stage, or if two slots of what needs them do not fit, which `why` says.
  bool choose(llvm::ArrayRef<StagedLoad> loads, unsigned wanted, const Target &target, std::string &why);

  /// Tiles with the same answer share a pipeline: those that one product reads first.  Numbers that only threads read
  /// go with the tiles of the last product before that: one mbarrier less to wait for.
  mlir::Operation *sharing(const Stage &stage) const;
};

} // namespace kiln

#endif // KILN_PASSES_PIPELINES_SLOTBUFFERS_H
