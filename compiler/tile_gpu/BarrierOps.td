//===- BarrierOps.td - Threads wait for each other --------------------------===//
#ifndef KILN_TILE_GPU_BARRIER_OPS
#define KILN_TILE_GPU_BARRIER_OPS

include "compiler/tile_gpu/LocalOps.td"

class TileGpu_BarrierLike<string mnemonic> : TileGpu_Op<mnemonic,
    [MemoryEffects<[MemWrite<TileGpu_SharedMemory>, MemRead<TileGpu_SharedMemory>, MemWrite<Tile_GlobalMemory>,
                    MemRead<Tile_GlobalMemory>]>, DeclareOpInterfaceMethods<Tile_OrderOpInterface>]>;

def TileGpu_BarrierOp : TileGpu_BarrierLike<"barrier"> {
  let summary = "All threads of the block wait for each other; memory is ordered among them";
  let description = [{
    ```mlir
    tile_gpu.barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def TileGpu_WarpBarrierOp : TileGpu_BarrierLike<"warp_barrier"> {
  let summary = "The lanes of each warp wait for each other; memory is ordered among them";
  let description = [{
    ```mlir
    tile_gpu.warp_barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def TileGpu_NamedBarrierOp : TileGpu_BarrierLike<"named_barrier"> {
  let summary = "`threads` threads wait at barrier `id`";
  let description = [{
    ```mlir
    tile_gpu.named_barrier 1, threads 128
    ```
    Barriers 1 to 15; 0 is `tile_gpu.barrier`'s.  `threads` is a multiple of 32.
  }];
  let arguments = (ins I32Attr:$id, I32Attr:$threads);
  let assemblyFormat = "$id `,` `threads` $threads attr-dict";
  let hasVerifier = 1;
}

def TileGpu_NamedArriveOp : TileGpu_BarrierLike<"named_arrive"> {
  let summary = "Counts as arrived at barrier `id` and goes on";
  let description = [{
    ```mlir
    tile_gpu.named_arrive 1, threads 128
    ```
  }];
  let arguments = (ins I32Attr:$id, I32Attr:$threads);
  let assemblyFormat = "$id `,` `threads` $threads attr-dict";
  let hasVerifier = 1;
}

def TileGpu_CounterPtr : Arg<Tile_Ptr, "", [MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>;
def TileGpu_OrderedPtr : Arg<Tile_PtrLike, "", [MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>;

def TileGpu_AwaitOp : TileGpu_Op<"await", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Goes on when so many programs have accessed the elements";
  let description = [{
    ```mlir
    tile_gpu.await %n of %counter for %p : !tile.ptr<i32>, tensor<64x32x!tile.ptr<f32>, #row>
    ```
    One thread reads until the counter is `n` or more and acquires (scope gpu); the others know it after a barrier, which
    insert-barriers puts before their accesses to what `p` comes from.  Nothing is read if `n` is 0 or less.
  }];
  let arguments = (ins I32:$before, TileGpu_CounterPtr:$counter, TileGpu_OrderedPtr:$pointer);
  let assemblyFormat = "$before `of` $counter `for` $pointer attr-dict `:` type($counter) `,` type($pointer)";
  let hasVerifier = 1;
}

def TileGpu_CountOp : TileGpu_Op<"count", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "This program has accessed the elements";
  let description = [{
    ```mlir
    tile_gpu.count %counter if %is for %p : !tile.ptr<i32>, tensor<64x32x!tile.ptr<f32>, #row>
    tile_gpu.count %counter if %is await %n of %next for %p
      : !tile.ptr<i32>, tensor<64x32x!tile.ptr<f32>, #row>, !tile.ptr<i32>
    ```
    One thread adds 1 to the counter and releases (scope gpu) what all did to what `p` comes from: before it
    insert-barriers puts a barrier.  Then it waits, as `await` does, for accesses after the barrier of the next count:
    one fence serves both, and others go on meanwhile.
  }];
  let arguments = (ins TileGpu_CounterPtr:$counter, I1:$counts, Optional<I32>:$before,
                       Arg<Optional<Tile_Ptr>, "", [MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>:$next,
                       TileGpu_OrderedPtr:$pointer);
  let assemblyFormat = [{
    $counter `if` $counts (`await` $before^ `of` $next)? `for` $pointer attr-dict
    `:` type($counter) `,` type($pointer) (`,` type($next)^)?
  }];
  let hasVerifier = 1;
}

/// When warps arrive somewhere.
def TileGpu_Time : Resource<"::kiln::tile_gpu::Time">;

/// Warpgroups take turns: memory is not ordered by it.
class TileGpu_TurnLike<string mnemonic>
    : TileGpu_Op<mnemonic, [TileGpu_Needs<"Wgmma">, MemoryEffects<[MemWrite<TileGpu_Time>]>]> {
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def TileGpu_TurnsBeginOp : TileGpu_TurnLike<"turns_begin"> {
  let summary = "The block's warpgroups take turns from here on; the first one is first";
  let description = [{
    ```mlir
    tile_gpu.turns_begin
    ```
    Two warpgroups or more.  Until `turns_end` the named barriers 1, 2, .. are the turns', one a warpgroup.
  }];
}

def TileGpu_TurnTakeOp : TileGpu_TurnLike<"turn_take"> {
  let summary = "Waits until it is this warpgroup's turn";
  let description = [{
    ```mlir
    tile_gpu.turn_take
    ```
    What stands from here to `turn_pass` the warpgroups do one after the other: while one computes, the matrix unit is
    the next one's.
  }];
}

def TileGpu_TurnPassOp : TileGpu_TurnLike<"turn_pass"> {
  let summary = "The turn is the next warpgroup's";
  let description = [{
    ```mlir
    tile_gpu.turn_pass
    ```
  }];
}

def TileGpu_TurnsEndOp : TileGpu_TurnLike<"turns_end"> {
  let summary = "No more turns";
  let description = [{
    ```mlir
    tile_gpu.turns_end
    ```
  }];
}

def TileGpu_DelayOp : TileGpu_Op<"delay", [MemoryEffects<[MemWrite<TileGpu_Time>]>]> {
  let summary = "Some warps sleep for a while";
  let description = [{
    ```mlir
    tile_gpu.delay 3 seed 7   // at hand-off 3 each warp of each block sleeps up to 4 us, by a hash of all these and 7
    tile_gpu.delay 3 warp 1   // at hand-off 3 warp 1 sleeps 200 us
    ```
    It changes when warps arrive somewhere and nothing else: what differs with it was a race before.
  }];
  let arguments = (ins I32Attr:$point, OptionalAttr<I64Attr>:$seed, OptionalAttr<I32Attr>:$warp);
  let assemblyFormat = "$point (`seed` $seed^)? (`warp` $warp^)? attr-dict";
  let hasVerifier = 1;
}

#endif // KILN_TILE_GPU_BARRIER_OPS
