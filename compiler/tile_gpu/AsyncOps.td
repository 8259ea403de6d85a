//===- AsyncOps.td - Asynchronous copies ------------------------------------===//
//
// From global to shared memory, while the threads go on (cp.async).  A copy may write its buffer at any time from the
// operation on.  `async_commit` closes a group: all that this thread has copied since the last one.  What a group
// copied is there for the thread that copied it after an `async_wait` for the group, and for other threads after a
// barrier after it.  Groups finish in the order of their commits.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_ASYNC_OPS
#define KILN_TILE_GPU_ASYNC_OPS

include "compiler/tile_gpu/LocalOps.td"

def TileGpu_Token : TypeDef<TileGpu_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "A group of asynchronous copies";
  let description = [{ `!tile_gpu.token`: no value at run time; says which group a wait is for. }];
}

/// The groups of each thread's copies.
def TileGpu_AsyncGroups : Resource<"::kiln::tile_gpu::AsyncGroups">;

class TileGpu_AsyncCopyLike<string mnemonic> : TileGpu_Op<mnemonic,
    [TileGpu_Needs<"CpAsync">, DeclareOpInterfaceMethods<Tile_AccessOpInterface>]>;

def TileGpu_AsyncCopyOp : TileGpu_AsyncCopyLike<"async_copy"> {
  let summary = "Begins to copy what pointers point to into a buffer";
  let description = [{
    ```mlir
    tile_gpu.async_copy %p, %b : tensor<64x32x!tile.ptr<f16>, #row>, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.async_copy %p, %b mask %m : tensor<64x32x!tile.ptr<f16>, #row>, !tile_gpu.buffer<64x32xf16, #sh>
    ```
    Where the mask is false nothing is read and zero is written.  The layout of the pointers says who copies what; runs
    of 4, 8 or 16 bytes that are contiguous in both memories go as one.
  }];
  let arguments = (ins Arg<Tile_PtrTile, "", [MemRead<Tile_GlobalMemory>]>:$pointer,
                       TileGpu_WrittenTo<TileGpu_SharedBuffer>:$buffer, Optional<Tile_MaskTile>:$mask);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def TileGpu_AsyncCopyViewOp : TileGpu_AsyncCopyLike<"async_copy_view"> {
  let summary = "Begins to copy a tile of a view into a buffer";
  let description = [{
    ```mlir
    tile_gpu.async_copy_view %v[%i, %j], %b by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    ```
    Elements outside the view are zero.  The layout after `by` says which thread copies what.
  }];
  let arguments = (ins Arg<Tile_View, "", [MemRead<Tile_GlobalMemory>]>:$view, Variadic<Tile_Index>:$coords,
                       TileGpu_WrittenTo<TileGpu_SharedBuffer>:$buffer, AnyAttr:$layout);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The tile that a load_view would give.
    ::mlir::RankedTensorType tile();
  }];
}

def TileGpu_AsyncCommitOp : TileGpu_Op<"async_commit",
    [TileGpu_Needs<"CpAsync">, MemoryEffects<[MemWrite<TileGpu_AsyncGroups>]>,
     DeclareOpInterfaceMethods<Tile_OrderOpInterface>]> {
  let summary = "Closes a group: all copies of this thread since the last commit";
  let description = [{
    ```mlir
    %t = tile_gpu.async_commit
    ```
    A group may be empty.
  }];
  let results = (outs TileGpu_Token:$token);
  let assemblyFormat = "attr-dict";
}

def TileGpu_AsyncWaitOp : TileGpu_Op<"async_wait",
    [TileGpu_Needs<"CpAsync">, AttrSizedOperandSegments,
     MemoryEffects<[MemRead<TileGpu_AsyncGroups>, MemWrite<TileGpu_SharedMemory>]>,
     DeclareOpInterfaceMethods<Tile_OrderOpInterface, ["leaveInFlight"]>]> {
  let summary = "Waits until this thread's part of some groups is there";
  let description = [{
    ```mlir
    tile_gpu.async_wait %t ready %b : !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.async_wait all                                               // groups
    ```
    `ready` names the buffers that those groups filled: other threads may read them after a barrier.  `groups`, how many
    of the last groups may still be in flight, is filled in by count-groups; one that is there already stays.
  }];
  let arguments = (ins Variadic<TileGpu_Token>:$tokens, TileGpu_WrittenTo<Variadic<TileGpu_SharedBuffer>>:$ready,
                       OptionalAttr<I32Attr>:$groups);
  let assemblyFormat = "($tokens^) : (`all`)? (`ready` $ready^ `:` qualified(type($ready)))? attr-dict";
  let hasVerifier = 1;
}

#endif // KILN_TILE_GPU_ASYNC_OPS
