//===- SharedExpansion.h - Operations as stores and loads of shared memory --===//
//
// Each function rewrites one operation of a kernel so that what it does to shared memory is explicit: local_alloc,
// exchange_store, exchange_load, local_store, gather_shared.  Barriers are insert-barriers' work.  Failures are
// reported at the operation.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_SHARED_SHAREDEXPANSION_H
#define KILN_PASSES_SHARED_SHAREDEXPANSION_H

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {

/// A conversion whose plan, within `budget` bytes of scratch, goes through shared memory becomes scratch and exchanges;
/// any other stays.  The operation is gone if it was rewritten.
mlir::LogicalResult expandConversion(tile_gpu::ConvertLayoutOp op, uint64_t budget);

/// The inverse: the conversion whose exchanges use this scratch, in their place.  Null, and nothing changed, if the
/// scratch is not used as expandConversion uses it.
tile_gpu::ConvertLayoutOp collapseConversion(tile_gpu::LocalAllocOp scratch);

/// A reduction across warps becomes a reduction inside each warp, a conversion of the partial results and a reduction
/// inside each thread.  One inside the warps stays, its result in the layout that the operand's layout gives.
mlir::LogicalResult expandReduce(tile::ReduceOp op);

/// The same for scans; one along an axis that the layout does not hold in a permutation is done in another layout.
mlir::LogicalResult expandScan(tile::ScanOp op);

/// Buffers that gathers in loops read, stored once before the loops that only read them: one for each source and loop,
/// as long as there is room for what is alive all that time.
struct GatherBuffers {
  llvm::DenseMap<std::pair<mlir::Value, mlir::Operation *>, mlir::Value> of;
  llvm::DenseMap<mlir::Operation *, uint64_t> bytes; ///< by function: of all buffers that are there already
};

/// The source goes to a buffer, elements are read from there.
mlir::LogicalResult expandGather(tile::GatherOp op, GatherBuffers &buffers);

/// Products of warpgroups: each operand goes to a buffer once for all products of a block that read it, however
/// transposed, in the layout that is cheapest to store.
mlir::LogicalResult expandWarpgroupDots(mlir::func::FuncOp f);

/// An atomic operation after those of other programs becomes a wait for these, the operation, and the count of one
/// more.
mlir::LogicalResult expandOrder(tile::AtomicRmwOp op);

/// An atomic operation whose result several warps (of a scalar: all threads) need: the threads that act write it to a
/// buffer from which all read it.
mlir::LogicalResult expandAtomic(mlir::Operation *op);

} // namespace kiln

#endif // KILN_PASSES_SHARED_SHAREDEXPANSION_H
