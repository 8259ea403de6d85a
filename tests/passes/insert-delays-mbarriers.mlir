// RUN: kiln-opt %s --kiln-insert-delays="seed=7" --kiln-verify-barriers | FileCheck %s --check-prefixes=CHECK,SEED
// RUN: kiln-opt %s --kiln-insert-delays="warp=2 hand-off=2" | FileCheck %s --check-prefixes=CHECK,ONE

module attributes {tile_gpu.target = "sm_90a"} {

// At arrivals and waits, and around all that one thread does alone, if that hands something on.
// CHECK-LABEL: @handed_on
// SEED: tile_gpu.elected
// SEED-NEXT: mbarrier_init
// SEED-NEXT: }
// SEED-NEXT: tile_gpu.delay 0 seed 7
// SEED-NEXT: tile_gpu.barrier
// SEED-NEXT: tile_gpu.delay 1 seed 7
// SEED-NEXT: tile_gpu.delay 2 seed 7
// SEED-NEXT: mbarrier_arrive
// SEED-NEXT: tile_gpu.delay 3 seed 7
// SEED-NEXT: tile_gpu.delay 4 seed 7
// SEED-NEXT: tile_gpu.elected
// SEED-NEXT: mbarrier_wait
// SEED-NEXT: }
// SEED-NEXT: tile_gpu.delay 5 seed 7
// SEED-NEXT: tile_gpu.delay 6 seed 7
// SEED-NEXT: mbarrier_wait
// SEED-NEXT: tile_gpu.delay 7 seed 7
// ONE-NOT: delay
// ONE: tile_gpu.delay 2 warp 2
// ONE-NEXT: tile_gpu.elected
// ONE-NOT: delay
// CHECK: return
func.func @handed_on() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %b arrivals 4 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.barrier
  tile_gpu.mbarrier_arrive %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  tile_gpu.elected {
    tile_gpu.mbarrier_wait %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.mbarrier_wait %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  return
}

}
