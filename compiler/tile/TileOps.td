//===- TileOps.td - All operations of the tile dialect ---------------------===//
//
// One file a family; to add an operation, put it into the family's file (compiler/tile/README.md).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_OPS
#define KILN_TILE_OPS

include "compiler/tile/ProgramOps.td"
include "compiler/tile/ShapeOps.td"
include "compiler/tile/MemoryOps.td"
include "compiler/tile/ViewOps.td"
include "compiler/tile/ReduceOps.td"
include "compiler/tile/DotOps.td"
include "compiler/tile/CheckOps.td"
include "compiler/tile/PtxOps.td"

#endif // KILN_TILE_OPS
