//===- MatrixOps.td - Matrix products of whole warpgroups -------------------===//
//
// wgmma: four warps multiply two tiles that lie in shared memory.  The hardware reads them by itself, past the threads'
// own loads and stores (the async proxy): lowering puts a fence after a store to a `tma` buffer, of several in a row after
// the last.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_MATRIX_OPS
#define KILN_TILE_GPU_MATRIX_OPS

include "compiler/tile_gpu/LocalOps.td"

def TileGpu_WarpgroupDotOp : TileGpu_Op<"warpgroup_dot",
    [TileGpu_Needs<"Wgmma">, DeclareOpInterfaceMethods<Tile_AccessOpInterface>,
     AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "Adds the product of two tiles in shared memory to a tile in registers";
  let description = [{
    ```mlir
    %d = tile_gpu.warpgroup_dot %a, %b, %c
       : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, tensor<64x64xf32, #wgmma>
    ```
    MxK by KxN.  The accumulator has an mma layout of version 3, both buffers have `tma` layouts with a swizzle.
    Elements are f16, bf16, or f32, of which the upper 19 bits are read (tf32); f32 lies with K contiguous.  The result
    is there when the operation is done, and the buffers may be written again after a barrier.  `fromZero`: the
    accumulator is zero, and not read.
  }];
  let arguments = (ins TileGpu_ReadFrom<TileGpu_SharedBuffer>:$lhs, TileGpu_ReadFrom<TileGpu_SharedBuffer>:$rhs,
                       Tile_NumberTile:$accumulator, UnitAttr:$fromZero);
  let results = (outs Tile_NumberTile:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $accumulator attr-dict `:` qualified(type($lhs)) `,` qualified(type($rhs)) `,` type($accumulator)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The instruction for such elements, f32 as tf32; its N is the layout's instrN.  Null: there is none.
    static const ::kiln::MatrixInstruction *instructionOf(::mlir::Type element);
  }];
}

#endif // KILN_TILE_GPU_MATRIX_OPS
