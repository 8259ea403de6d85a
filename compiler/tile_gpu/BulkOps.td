//===- BulkOps.td - What the copy engine adds to global memory --------------===//
//
// From shared to global memory, while the threads go on (cp.reduce.async.bulk).  The engine may read its buffer at any
// time from `bulk_add` on, and add to memory later still.  Each bulk_add is a group of its own, of the thread that began
// it; groups end in the order in which they were begun.  After a `bulk_wait` that thread knows that the buffer was read,
// other threads after a barrier after it.
//
// The engine reads past the threads' own stores (the async proxy): its buffers have `tma` layouts, and lowering puts a
// fence after a store to one.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_BULK_OPS
#define KILN_TILE_GPU_BULK_OPS

include "compiler/tile_gpu/LocalOps.td"

/// The groups of each thread's sums.
def TileGpu_BulkGroups : Resource<"::kiln::tile_gpu::BulkGroups">;

def TileGpu_BulkAddOp : TileGpu_Op<"bulk_add",
    [TileGpu_Needs<"Tma">, MemoryEffects<[MemWrite<TileGpu_BulkGroups>]>,
     DeclareOpInterfaceMethods<Tile_AccessOpInterface>, DeclareOpInterfaceMethods<Tile_OrderOpInterface>]> {
  let summary = "Begins to add a buffer to what pointers point to, by the copy engine";
  let description = [{
    ```mlir
    tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x1024xf32, #tma>, tensor<4x1024x!tile.ptr<f32>, #acc>
    tile_gpu.bulk_add %b, %p mask %m : !tile_gpu.buffer<4x1024xf32, #tma>, tensor<4x1024x!tile.ptr<f32>, #acc>
    ```
    As `tile.atomic_rmw add relaxed gpu` of the tile that the buffer holds.  What a warp has by the layout of the pointers
    goes in runs that are contiguous in the buffer, 16 bytes at least; they must be contiguous in memory too, and masked
    as a whole.  For each run one lane of its warp begins, so a buffer that each warp stores its own part of needs
    barriers of the warp, no others.  A `tma` layout without a swizzle keeps runs whole.
  }];
  let arguments = (ins TileGpu_ReadFrom<TileGpu_SharedBuffer>:$buffer,
                       Arg<Tile_PtrTile, "", [MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>:$pointer,
                       Optional<Tile_MaskTile>:$mask);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What the copy engine takes at least, at multiples of as many bytes.
    static constexpr uint32_t leastBytes = 16;
    /// The most neighbours along `dim` that a warp has together, in the layout of the pointers and in the buffer.
    static uint32_t runOf(const ::kiln::layout::TileLayout &pointers, const ::kiln::layout::SharedTile &buffer,
                          unsigned dim);
    /// The dimension along which the buffer's elements are contiguous.
    unsigned runDim();
  }];
}

def TileGpu_BulkWaitOp : TileGpu_Op<"bulk_wait",
    [TileGpu_Needs<"Tma">, MemoryEffects<[MemWrite<TileGpu_BulkGroups>, MemWrite<TileGpu_SharedMemory>]>,
     DeclareOpInterfaceMethods<Tile_OrderOpInterface>]> {
  let summary = "Waits until all that this thread has begun to add was read, or was added";
  let description = [{
    ```mlir
    tile_gpu.bulk_wait read   // the buffers may be written again, by other threads after a barrier
    tile_gpu.bulk_wait        // the sums are in memory, too
    ```
    A kernel ends after a wait: its shared memory is another's then.
  }];
  let arguments = (ins UnitAttr:$read);
  let assemblyFormat = "(`read` $read^)? attr-dict";
}

#endif // KILN_TILE_GPU_BULK_OPS
