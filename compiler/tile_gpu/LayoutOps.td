//===- LayoutOps.td - Tiles change layout -----------------------------------===//
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
    tile one side may be without a layout: assign-layouts chooses it.
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

#endif // KILN_TILE_GPU_LAYOUT_OPS
