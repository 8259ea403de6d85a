//===- MbarrierOps.td - Barriers in shared memory, and copies by tensor maps --===//
//
// An mbarrier counts arrivals; when all of a phase have come, the next phase begins.  Phases are numbered 0, 1, 0, 1, ..:
// an arrival says which it belongs to, a wait which it waits for.  What was done before an arrival comes before what is
// done after a wait for its phase.  The phase before the first, number 1, counts as over.
//
// The copy engine (TMA) copies a tile by a tensor map, and counts the bytes to an mbarrier: its phase is over once all
// have arrived and all bytes are there.
//
// Who arrives: one thread inside of `elected`, outside each warp once.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_MBARRIER_OPS
#define KILN_TILE_GPU_MBARRIER_OPS

include "compiler/tile_gpu/LocalOps.td"
include "compiler/tile_gpu/TensorMaps.td"

/// How far each mbarrier is.
def TileGpu_MbarrierPhases : Resource<"::kiln::tile_gpu::MbarrierPhases">;

class TileGpu_MbarrierOpLike<string mnemonic, list<Trait> traits = []> : TileGpu_Op<mnemonic, !listconcat(traits,
    [TileGpu_Needs<"Mbarrier">, MemoryEffects<[MemWrite<TileGpu_MbarrierPhases>, MemWrite<TileGpu_SharedMemory>]>,
     DeclareOpInterfaceMethods<Tile_AccessOpInterface>])>;

def TileGpu_ElectedOp : TileGpu_Op<"elected",
    [TileGpu_Needs<"Tma">, SingleBlock, NoTerminator, RecursiveMemoryEffects]> {
  let summary = "What one thread of the block does alone";
  let description = [{
    ```mlir
    tile_gpu.elected {
      tile_gpu.mbarrier_wait %empty[%s] phase %p ready %b : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<128x64xbf16, #tma>
      tile_gpu.tensor_copy %map[%i, %j] to %b dims [1, 0] counts %full[%s]
        : !tile_gpu.buffer<128x64xbf16, #tma>, !tile_gpu.mbarriers<2>
    }
    ```
    It is the same thread everywhere.  Operations on mbarriers, copies by tensor maps, counts, conditionals with these,
    and what is computed for them; no other accesses to memory.  What follows each other at once becomes one, and a
    conditional whose arm is one goes inside.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def TileGpu_MbarrierInitOp : TileGpu_MbarrierOpLike<"mbarrier_init"> {
  let summary = "Begins the first phase of mbarriers, all of them";
  let description = [{
    ```mlir
    tile_gpu.mbarrier_init %b arrivals 8 : !tile_gpu.mbarriers<3>
    ```
    `arrivals` end a phase.  Inside of `elected`.
  }];
  let arguments = (ins TileGpu_WrittenTo<TileGpu_Mbarriers>:$barriers, I32Attr:$arrivals);
  let assemblyFormat = "$barriers `arrivals` $arrivals attr-dict `:` qualified(type($barriers))";
  let hasVerifier = 1;
}

def TileGpu_MbarrierInvalidateOp : TileGpu_MbarrierOpLike<"mbarrier_invalidate"> {
  let summary = "Ends mbarriers: their bytes may hold something else";
  let description = [{
    ```mlir
    tile_gpu.mbarrier_invalidate %b : !tile_gpu.mbarriers<3>
    ```
    Inside of `elected`.
  }];
  let arguments = (ins TileGpu_WrittenTo<TileGpu_Mbarriers>:$barriers);
  let assemblyFormat = "$barriers attr-dict `:` qualified(type($barriers))";
  let hasVerifier = 1;
}

def TileGpu_MbarrierArriveOp
    : TileGpu_MbarrierOpLike<"mbarrier_arrive", [DeclareOpInterfaceMethods<Tile_OrderOpInterface>]> {
  let summary = "Arrives at a phase of an mbarrier and goes on";
  let description = [{
    ```mlir
    tile_gpu.mbarrier_arrive %b[%s] phase %p : !tile_gpu.mbarriers<3>
    ```
    Each warp once, after all of its lanes; inside of `elected` the one thread.  `phase`, 0 or 1, is a statement: which
    phase an arrival belongs to follows from how many came before.
  }];
  let arguments = (ins TileGpu_ReadFrom<TileGpu_Mbarriers>:$barriers, I32:$number, I32:$phase);
  let assemblyFormat = "$barriers `[` $number `]` `phase` $phase attr-dict `:` qualified(type($barriers))";
}

def TileGpu_MbarrierWaitOp
    : TileGpu_MbarrierOpLike<"mbarrier_wait", [DeclareOpInterfaceMethods<Tile_OrderOpInterface>]> {
  let summary = "Waits until a phase of an mbarrier is over";
  let description = [{
    ```mlir
    tile_gpu.mbarrier_wait %b[%s] phase %p ready %k : !tile_gpu.mbarriers<3>, !tile_gpu.buffer<64x32xf16, #sh>
    ```
    Every thread; inside of `elected` the one thread.  `ready` names buffers: what others did to them came before their
    arrivals or counts to the mbarrier, so that they may be read, or written, from here on.
  }];
  let arguments = (ins TileGpu_ReadFrom<TileGpu_Mbarriers>:$barriers, I32:$number, I32:$phase,
                       Variadic<TileGpu_SharedBuffer>:$ready);
  let assemblyFormat = [{
    $barriers `[` $number `]` `phase` $phase (`ready` $ready^)? attr-dict `:`
    qualified(type($barriers)) (`,` qualified(type($ready))^)?
  }];
  let hasVerifier = 1;
}

def TileGpu_TensorCopyOp : TileGpu_Op<"tensor_copy",
    [TileGpu_Needs<"Tma">, AttrSizedOperandSegments, DeclareOpInterfaceMethods<Tile_AccessOpInterface>,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Begins to copy a tile of a tensor into a buffer, by its map";
  let description = [{
    ```mlir
    tile_gpu.tensor_copy %map[%i, %j] to %b dims [1, 0] counts %full[%s]
      : !tile_gpu.buffer<128x64xbf16, #tma>, !tile_gpu.mbarriers<2>
    ```
    The tile that begins at these coordinates, the contiguous dimension first; elements outside the tensor are zero, or
    the map's `fill`.
    `dims`: which dimension of the tensor each one of the buffer is; of the others it takes one coordinate.  The buffer
    has one or two dimensions and a `tma` layout with the map's swizzle; as many boxes of the map as fit fill it.

    The bytes count to the phase of the mbarrier that the next arrival of the copying thread belongs to.  Copies into an
    acquired slot of a pipeline get their mbarrier by lower-pipelines.
  }];
  let arguments = (ins TileGpu_TensorMap:$map, Variadic<I32>:$coords, TileGpu_SharedBuffer:$buffer,
                       DenseI32ArrayAttr:$dims, Optional<TileGpu_Mbarriers>:$barriers, Optional<I32>:$number);
  let assemblyFormat = [{
    $map `[` $coords `]` `to` $buffer `dims` $dims (`counts` $barriers^ `[` $number `]`)? attr-dict `:`
    qualified(type($buffer)) (`,` qualified(type($barriers))^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What the launcher makes the map of; null if the map is no argument with a recipe.
    ::kiln::tile_gpu::TensorMapRecipeAttr recipe();
  }];
}

#endif // KILN_TILE_GPU_MBARRIER_OPS
