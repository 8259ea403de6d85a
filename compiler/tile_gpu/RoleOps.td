//===- RoleOps.td - Warps that do different things --------------------------===//
//
// A kernel is written, and proved, as one program: what one thread does alone stands in `elected`, where it comes in the
// order of all.  A kernel with copying warps (tile.copy_warps) has that thread in one of them, and the two meet where
// the text says so, at barriers and mbarriers.  `roles` is what becomes of it once barriers are proved: one program for
// the warps that copy, one for those that compute, each a part of the text in the same order.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_ROLE_OPS
#define KILN_TILE_GPU_ROLE_OPS

include "compiler/tile_gpu/TileGpuDialect.td"

def TileGpu_RolesOp : TileGpu_Op<"roles",
    [TileGpu_Needs<"Tma">, NoTerminator, RecursiveMemoryEffects]> {
  let summary = "What the warps that copy do, and what the others do";
  let description = [{
    ```mlir
    tile_gpu.roles copies registers 24 {
      tile_gpu.barrier
    } computes registers 240 {
      tile_gpu.barrier
    }
    ```
    `copies` is for the last warps of the block, as many as `tile.copy_warps` says, `computes` for those before them.  A
    barrier of the block is one of all of them.  `registers`: what a thread has from here on; the block's must not
    become more.
  }];
  let arguments = (ins OptionalAttr<I32Attr>:$copyRegisters, OptionalAttr<I32Attr>:$computeRegisters);
  let regions = (region SizedRegion<1>:$copies, SizedRegion<1>:$computes);
  let assemblyFormat = [{
    `copies` (`registers` $copyRegisters^)? $copies `computes` (`registers` $computeRegisters^)? $computes attr-dict
  }];
  let hasVerifier = 1;
}

#endif // KILN_TILE_GPU_ROLE_OPS
