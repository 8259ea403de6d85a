//===- TileGpuOps.td - All operations of the tile_gpu dialect ---------------===//
//
// One file a family; to add an operation, put it into the family's file (compiler/tile_gpu/README.md).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_OPS
#define KILN_TILE_GPU_OPS

include "compiler/tile_gpu/LayoutOps.td"
include "compiler/tile_gpu/LocalOps.td"
include "compiler/tile_gpu/MatrixOps.td"
include "compiler/tile_gpu/BarrierOps.td"
include "compiler/tile_gpu/AsyncOps.td"
include "compiler/tile_gpu/BulkOps.td"
include "compiler/tile_gpu/PipelineOps.td"
include "compiler/tile_gpu/MbarrierOps.td"
include "compiler/tile_gpu/ReduceOps.td"
include "compiler/tile_gpu/RoleOps.td"
include "compiler/tile_gpu/TensorMaps.td"

#endif // KILN_TILE_GPU_OPS
