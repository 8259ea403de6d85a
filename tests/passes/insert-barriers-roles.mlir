// RUN: kiln-opt %s --kiln-insert-barriers | FileCheck %s
// RUN: kiln-opt %s --kiln-insert-barriers --kiln-verify-barriers -o /dev/null

// Where warps copy, a barrier that only those that compute need is a named one of theirs.
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#other = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[1,4], order=[1,0]>
!buffer = !tile_gpu.buffer<64x64xbf16, #tma>

module attributes {tile_gpu.target = "sm_90a"} {

// CHECK-LABEL: @theirs
// CHECK: tile_gpu.local_store
// CHECK-NEXT: tile_gpu.named_barrier 15, threads 128
// CHECK-NEXT: tile_gpu.local_load
func.func @theirs() attributes {tile.kernel, tile.num_warps = 4 : i32, tile.copy_warps = 4 : i32} {
  %v = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !buffer
  tile_gpu.local_store %v, %a : tensor<64x64xbf16, #row>, !buffer
  %l = tile_gpu.local_load %a : !buffer to tensor<64x64xbf16, #other>
  return
}

// Its author uses 15.
// CHECK-LABEL: @taken
// CHECK: tile_gpu.local_store
// CHECK-NEXT: tile_gpu.named_barrier 14, threads 128
// CHECK-NEXT: tile_gpu.local_load
func.func @taken() attributes {tile.kernel, tile.num_warps = 4 : i32, tile.copy_warps = 4 : i32} {
  %v = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !buffer
  tile_gpu.named_barrier 15, threads 64
  tile_gpu.local_store %v, %a : tensor<64x64xbf16, #row>, !buffer
  %l = tile_gpu.local_load %a : !buffer to tensor<64x64xbf16, #other>
  return
}

// What the one thread copies there next has to come after the store of all.
// CHECK-LABEL: @copied
// CHECK: tile_gpu.local_store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile_gpu.elected
func.func @copied(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) attributes {tile.kernel, tile.num_warps = 4 : i32, tile.copy_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !buffer
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.local_store %v, %a : tensor<64x64xbf16, #row>, !buffer
  tile_gpu.elected {
    tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts %full[%c0] : !buffer, !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.mbarrier_wait %full[%c0] phase %c0 ready %a : !tile_gpu.mbarriers<1>, !buffer
  return
}

// One warp that computes meets the one that copies at a barrier of the block.
// CHECK-LABEL: @one_warp
// CHECK: tile_gpu.elected
// CHECK: tile_gpu.barrier
// CHECK-NEXT: tile_gpu.mbarrier_arrive
func.func @one_warp(%n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32, tile.copy_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  tile_gpu.mbarrier_wait %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  return
}
}
