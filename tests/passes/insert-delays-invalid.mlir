// RUN: not kiln-opt %s --kiln-insert-delays 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not kiln-opt %s --kiln-insert-delays="seed=1 warp=0 hand-off=0" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not kiln-opt %s --kiln-insert-delays="warp=1" 2>&1 | FileCheck %s --check-prefix=NOTHING

// NOTHING: error: kiln-insert-delays takes either a seed, or a warp and a hand-off
module attributes {tile_gpu.target = "sm_80"} {
func.func @one() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  tile_gpu.barrier
  return
}
}
