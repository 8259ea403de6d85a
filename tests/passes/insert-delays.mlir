// RUN: kiln-opt %s --kiln-insert-delays="seed=7" | FileCheck %s --check-prefixes=CHECK,SEED
// RUN: kiln-opt %s --kiln-insert-delays="warp=2 hand-off=1" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: kiln-opt %s --kiln-insert-delays="warp=0 hand-off=2" | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: kiln-opt %s --kiln-insert-delays="warp=4 hand-off=0" | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: kiln-opt %s --kiln-insert-delays="seed=7" --kiln-verify-barriers --kiln-lower-tiles | FileCheck %s --check-prefix=LOWER

module attributes {tile_gpu.target = "sm_80"} {

// CHECK-LABEL: @two
// SEED: tile_gpu.delay 0 seed 7
// SEED-NEXT: tile_gpu.barrier
// SEED-NEXT: tile_gpu.delay 1 seed 7
// SEED: scf.for
// SEED-NEXT: tile_gpu.delay 2 seed 7
// SEED-NEXT: tile_gpu.warp_barrier
// SEED-NEXT: tile_gpu.delay 3 seed 7
// ONE-NOT: delay
// ONE: scf.for
// ONE-NEXT: tile_gpu.delay 1 warp 2
// ONE-NEXT: tile_gpu.warp_barrier
// ONE-NOT: delay
// NONE-NOT: delay
// LOWER-LABEL: @two
// LOWER-COUNT-4: nvvm.nanosleep
func.func @two(%n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  tile_gpu.barrier
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile_gpu.warp_barrier
  }
  return
}

}
