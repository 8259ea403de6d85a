//===- LayoutOps.td - Tiles change layout, and parts of tiles ---------------===//
#ifndef KILN_TILE_GPU_LAYOUT_OPS
#define KILN_TILE_GPU_LAYOUT_OPS

include "compiler/tile_gpu/TileGpuDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TileGpu_ConvertLayoutOp : TileGpu_Op<"convert_layout", [Pure]> {
  let summary = "The same tile in another layout";
  let description = [{
    ```mlir
    %y = tile_gpu.convert_layout %x : tensor<64x32xf32, #a> to tensor<64x32xf32, #b>
    ```
    Exists for every pair of layouts on every target; the planner (`compiler/layout/Planner.h`) decides how.  At stage
    tile one side may be without a layout: assign-layouts chooses it, as a rule the other side's.  So a conversion to a
    layout and one back to none are a hint: what is computed of the tile lies so, and what it is computed from.
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def TileGpu_PartOp : TileGpu_Op<"part", [Pure]> {
  let summary = "One of several equal parts of a tile along a dimension";
  let description = [{
    ```mlir
    %y = tile_gpu.part %x [1 of 4] along 1 : tensor<64x64xf16, #k> to tensor<64x16xf16, #k>
    ```
    Parts are numbered from 0.  Every thread has its part of each: the operation renames registers, and tiles of which
    that is not so are refused.
  }];
  let arguments = (ins Tile_Tile:$source, I64Attr:$index, I64Attr:$count, I64Attr:$dim);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $source ` ` `[` $index `of` $count `]` `along` $dim attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

#endif // KILN_TILE_GPU_LAYOUT_OPS
