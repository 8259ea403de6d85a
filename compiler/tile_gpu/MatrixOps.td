//===- MatrixOps.td - Matrix products of whole warpgroups -------------------===//
//
// wgmma: four warps multiply two tiles that lie in shared memory.  The hardware reads them by itself, past the threads'
// own loads and stores (the async proxy): lowering puts a fence after a store to a `tma` buffer, of several in a row after
// the last, and after a wait for copies to such buffers.
//
// A product is waited for where it stands if it adds to a tile.  If it adds to pending sums it is in flight until a
// `warpgroup_wait`: each such product is a group of its own, and groups end in the order in which they were begun.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_MATRIX_OPS
#define KILN_TILE_GPU_MATRIX_OPS

include "compiler/tile_gpu/LocalOps.td"

def TileGpu_Pending : TypeDef<TileGpu_Dialect, "Pending"> {
  let mnemonic = "pending";
  let summary = "Sums that products in flight may still add to";
  let description = [{
    `!tile_gpu.pending<tensor<64x64xf32, #wgmma>>`: the registers of a tile that only `warpgroup_dot` and
    `warpgroup_wait` may touch.  There is one value of a kind at a time: each is used once, as the sums of the next
    product, by a wait or by a loop that carries it.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile);
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$tile),
                                                 [{ return $_get(tile.getContext(), tile); }]>];
  let skipDefaultBuilders = 1;
  let assemblyFormat = "`<` $tile `>`";
  let genVerifyDecl = 1;
}

/// The groups of each warpgroup's products.
def TileGpu_ProductGroups : Resource<"::kiln::tile_gpu::ProductGroups">;

def TileGpu_WarpgroupBeginOp : TileGpu_Op<"warpgroup_begin",
    [TileGpu_Needs<"Wgmma">, MemoryEffects<[MemWrite<TileGpu_ProductGroups>]>,
     TypesMatchWith<"the sums are the tile's registers", "sums", "tile", "::kiln::tile_gpu::tileOf($_self)">]> {
  let summary = "Gives a tile's registers to products in flight";
  let description = [{
    ```mlir
    %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<64x64xf32, #wgmma>>
    ```
  }];
  let arguments = (ins Tile_NumberTile:$tile);
  let results = (outs TileGpu_Pending:$sums);
  let assemblyFormat = "$tile attr-dict `:` qualified(type($sums))";
}

def TileGpu_WarpgroupWaitOp : TileGpu_Op<"warpgroup_wait",
    [TileGpu_Needs<"Wgmma">, MemoryEffects<[MemRead<TileGpu_ProductGroups>, MemWrite<TileGpu_SharedMemory>]>,
     DeclareOpInterfaceMethods<Tile_OrderOpInterface>,
     TypesMatchWith<"the result has the registers of the sums", "result", "sums",
                    "::kiln::tile_gpu::pendingOf($_self)">]> {
  let summary = "Waits for products in flight";
  let description = [{
    ```mlir
    %q = tile_gpu.warpgroup_wait %p leave 1 : !tile_gpu.pending<tensor<64x64xf32, #wgmma>>
    %d = tile_gpu.warpgroup_wait %q : tensor<64x64xf32, #wgmma>
    ```
    All products of this warpgroup but the last `leave` are done then, and the buffers of those that are may be written
    again after a barrier.  Where none is left in flight that adds to these sums, they are a tile again: all that are left
    have begun after those.  `keeping`: tiles that products read from registers, which hold them until here.
  }];
  let arguments = (ins TileGpu_Pending:$sums, Variadic<Tile_NumberTile>:$kept, DefaultValuedAttr<I32Attr, "0">:$leave);
  let results = (outs AnyTypeOf<[Tile_NumberTile, TileGpu_Pending]>:$result);
  let assemblyFormat = [{
    $sums (`keeping` $kept^ `:` type($kept))? (`leave` $leave^)? attr-dict `:` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def TileGpu_WarpgroupDotOp : TileGpu_Op<"warpgroup_dot",
    [TileGpu_Needs<"Wgmma">, DeclareOpInterfaceMethods<Tile_AccessOpInterface>,
     DeclareOpInterfaceMethods<Tile_OrderOpInterface>, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "Adds the product of two tiles, the right one in shared memory, to a tile in registers";
  let description = [{
    ```mlir
    %d = tile_gpu.warpgroup_dot %a, %b, %c
       : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, tensor<64x64xf32, #wgmma>
    ```
    MxK by KxN.  The accumulator has an mma layout of version 3, both buffers have `tma` layouts with a swizzle.
    Elements are f16, bf16, f8E4M3FN and f8E5M2 (these two mix), or f32, of which the upper 19 bits are read (tf32);
    what has no 16 bits lies with K contiguous.  The result
    is there when the operation is done, and the buffers may be written again after a barrier.  `fromZero`: the
    accumulator is zero, and not read.

    The left tile may be in registers, elements of 16 or 8 bits in the layout of operand 0 of the result
    (`dot<op=0, kWidth=2, parent=..>`), which a tile of 16 bits in the result's own layout often has.  It is kept there
    until the product is done.

    With pending sums (`!tile_gpu.pending<..>`) for an accumulator the product is begun and is a group of its own: sums
    and buffers are the hardware's until a `warpgroup_wait` that does not leave it in flight.
  }];
  let arguments = (ins AnyTypeOf<[TileGpu_SharedBuffer, Tile_NumberTile]>:$lhs, TileGpu_SharedBuffer:$rhs,
                       AnyTypeOf<[Tile_NumberTile, TileGpu_Pending]>:$accumulator, UnitAttr:$fromZero);
  let results = (outs AnyTypeOf<[Tile_NumberTile, TileGpu_Pending]>:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $accumulator attr-dict `:` qualified(type($lhs)) `,` qualified(type($rhs)) `,`
    qualified(type($accumulator))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The instruction for such elements, f32 as tf32; its N is the layout's instrN.  Null: there is none.
    static const ::kiln::MatrixInstruction *instructionOf(::mlir::Type element);
    /// lhs is a tile in registers.
    bool readsRegisters() { return ::llvm::isa<::mlir::RankedTensorType>(getLhs().getType()); }
    ::mlir::Type elementType() { return getRhs().getType().getElementType(); }
    /// The sums' tile, in flight or not.
    ::mlir::RankedTensorType tile() { return ::kiln::tile_gpu::tileOf(getType()); }
    /// It goes on until a warpgroup_wait.
    bool goesOn() { return ::llvm::isa<::kiln::tile_gpu::PendingType>(getType()); }
  }];
}

#endif // KILN_TILE_GPU_MATRIX_OPS
