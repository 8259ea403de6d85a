//===- SharedAccesses.h - For operations that state accesses to shared memory -===//
#ifndef KILN_TILE_GPU_SHAREDACCESSES_H
#define KILN_TILE_GPU_SHAREDACCESSES_H

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln::tile_gpu {

/// Of a buffer or scratch by the threads that `tile` names; without a tile by any thread, of any byte.
inline tile::MemoryAccess sharedRead(mlir::Value memory, mlir::Type tile = {}) {
  tile::MemoryAccess out;
  out.resource = SharedMemory::get();
  out.memory = memory;
  out.reads = true;
  out.tile = llvm::cast_if_present<mlir::RankedTensorType>(tile);
  return out;
}

inline tile::MemoryAccess sharedWrite(mlir::Value memory, mlir::Type tile = {}) {
  tile::MemoryAccess out = sharedRead(memory, tile);
  out.reads = false;
  out.writes = true;
  return out;
}

} // namespace kiln::tile_gpu

#endif // KILN_TILE_GPU_SHAREDACCESSES_H
