//===- ReduceOps.td - Reductions, scans and gathers in steps ----------------===//
//
// What expand-shared makes of tile.reduce, tile.scan and tile.gather where several warps take part: a step inside each
// warp, an exchange through shared memory (a layout conversion like any other), a step inside each thread.  The plans
// after them are those of the layout library (compiler/layout/Reduction.h).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_REDUCE_OPS
#define KILN_TILE_GPU_REDUCE_OPS

include "compiler/tile_gpu/LocalOps.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

/// Sources and results as lists, a region that combines two scalars of each operand, one axis.
class TileGpu_CombineOp<string mnemonic, list<Trait> traits = []> : TileGpu_Op<mnemonic, !listconcat(traits,
    [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"::kiln::tile_gpu::YieldOp">])> {
  let results = (outs Variadic<Tile_NumberTile>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def TileGpu_ReducePartialOp : TileGpu_CombineOp<"reduce_partial"> {
  let summary = "Each warp's share of a reduction";
  let description = [{
    ```mlir
    %p = tile_gpu.reduce_partial(%x) {axis = 0 : i32} : tensor<512xf32, #v> to tensor<4xf32, #p> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile_gpu.yield %c : f32
    }
    ```
    Combines what the registers and lanes of a warp hold along `axis`.  The result has the shape without the axis, and a
    new last dimension that numbers the partial results; its layout is the source of the reduction plan's exchange.
  }];
  let arguments = (ins Variadic<Tile_NumberTile>:$sources, I32Attr:$axis);
}

def TileGpu_ScanPartialOp : TileGpu_CombineOp<"scan_partial"> {
  let summary = "Each warp's share of a scan, and the totals of its runs";
  let description = [{
    ```mlir
    %s, %t = tile_gpu.scan_partial(%x) {axis = 0 : i32}
        : tensor<512xf32, #v> to tensor<512xf32, #v>, tensor<4xf32, #p> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile_gpu.yield %c : f32
    }
    ```
    First the scanned operands, then the totals: the shape without the axis, and a last dimension that numbers the runs
    from the first on.  `reverse` as in tile.scan.
  }];
  let arguments = (ins Variadic<Tile_NumberTile>:$sources, I32Attr:$axis, UnitAttr:$reverse);
}

def TileGpu_ScanApplyOp : TileGpu_CombineOp<"scan_apply"> {
  let summary = "Combines each run of a scan with the totals of the runs before it";
  let description = [{
    ```mlir
    %r = tile_gpu.scan_apply(%s, %t) {axis = 0 : i32} : tensor<512xf32, #v>, tensor<4xf32, #q> to tensor<512xf32, #v> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile_gpu.yield %c : f32
    }
    ```
    %s and %t are results of tile_gpu.scan_partial, %t converted so that each thread holds all totals that it needs.
    With `before` %t is the result of tile_gpu.scan_before, in the layout that the totals had: of each run what comes
    before it.
  }];
  let arguments = (ins Variadic<Tile_NumberTile>:$sources, I32Attr:$axis, UnitAttr:$reverse, UnitAttr:$before);
}

def TileGpu_ScanBeforeOp : TileGpu_CombineOp<"scan_before"> {
  let summary = "What comes before each total";
  let description = [{
    ```mlir
    %b = tile_gpu.scan_before(%t) : tensor<64x32xf32, #t> to tensor<64x32xf32, #t> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile_gpu.yield %c : f32
    }
    ```
    Along the last dimension, each element is the combination of all elements before it; the first is undefined.  With
    `reverse` of all after it, and the last is undefined.  The last dimension lies in a thread's low registers and,
    above these, in neighbouring lanes.
  }];
  let arguments = (ins Variadic<Tile_NumberTile>:$sources, UnitAttr:$reverse);
}

def TileGpu_YieldOp : TileGpu_Op<"yield", [Pure, ReturnLike, Terminator,
    ParentOneOf<["::kiln::tile_gpu::ReducePartialOp", "::kiln::tile_gpu::ScanPartialOp",
                 "::kiln::tile_gpu::ScanApplyOp", "::kiln::tile_gpu::ScanBeforeOp"]>]> {
  let summary = "The combined values of a region";
  let description = [{
    ```mlir
    tile_gpu.yield %c : f32
    ```
  }];
  let arguments = (ins Variadic<Tile_Number>:$values);
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def TileGpu_GatherSharedOp : TileGpu_Op<"gather_shared", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Elements of a buffer picked along one dimension";
  let description = [{
    ```mlir
    %g = tile_gpu.gather_shared %b[%i] {axis = 1 : i32}
        : !tile_gpu.buffer<64x32xf32, #sh>, tensor<64x16xi32, #a> to tensor<64x16xf32, #a>
    ```
    tile.gather on a tile that lies in a buffer.  An index outside the buffer yields some element of it.
  }];
  let arguments = (ins TileGpu_ReadFrom<TileGpu_SharedBuffer>:$buffer, Tile_IndexTile:$indices, I32Attr:$axis);
  let results = (outs Tile_NumberTile:$result);
  let assemblyFormat = "$buffer `[` $indices `]` attr-dict `:` type($buffer) `,` type($indices) `to` type($result)";
  let hasVerifier = 1;
}

#endif // KILN_TILE_GPU_REDUCE_OPS
