// RUN: kiln-opt %s | kiln-opt | FileCheck %s

module attributes {tile_gpu.target = "sm_90a"} {

// CHECK-LABEL: @registers
// CHECK: tile_gpu.roles copies registers 24 {
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: } computes registers 240 {
// CHECK-NEXT: tile_gpu.barrier
func.func @registers() attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} {
  tile_gpu.roles copies registers 24 {
    tile_gpu.barrier
  } computes registers 240 {
    tile_gpu.barrier
  }
  return
}

// CHECK-LABEL: @plain
// CHECK: tile_gpu.roles copies {
// CHECK: } computes {
func.func @plain() attributes {tile.kernel, tile.num_warps = 1 : i32, tile.copy_warps = 1 : i32} {
  tile_gpu.roles copies {
    tile_gpu.barrier
  } computes {
    tile_gpu.barrier
  }
  return
}
}
