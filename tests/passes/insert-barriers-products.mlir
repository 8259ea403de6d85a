// RUN: kiln-opt %s --kiln-insert-barriers --kiln-verify-barriers | FileCheck %s

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[8,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[8,1], order=[1,0]>
#rows = #tile_gpu.tma<swizzle=128>
module attributes {tile_gpu.target = "sm_90a"} {
  // Products end in their order: the wait for the younger one has the older one's operands free, too.
  // CHECK-LABEL: @older
  // CHECK: warpgroup_wait
  // CHECK-NEXT: tile_gpu.barrier
  // CHECK-NEXT: local_store
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @older(%c: tensor<128x64xf32, #acc>, %x: tensor<64x64xbf16, #row>) attributes {tile.num_warps = 8 : i32} {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<128x64xbf16, #rows>
    %b = tile_gpu.local_alloc {offset = 16384 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %b2 = tile_gpu.local_alloc {offset = 24576 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %p2 = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %q = tile_gpu.warpgroup_dot %a, %b, %p : !tile_gpu.buffer<128x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %q2 = tile_gpu.warpgroup_dot %a, %b2, %p2 : !tile_gpu.buffer<128x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %d2 = tile_gpu.warpgroup_wait %q2 : tensor<128x64xf32, #acc>
    tile_gpu.local_store %x, %b : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #rows>
    %d = tile_gpu.warpgroup_wait %q : tensor<128x64xf32, #acc>
    return
  }

  // In a branch, too, with the older one before it.
  // CHECK-LABEL: @branch
  // CHECK: scf.if
  // CHECK: warpgroup_wait
  // CHECK-NEXT: tile_gpu.barrier
  // CHECK-NEXT: local_store
  // CHECK: return
  func.func @branch(%c: tensor<128x64xf32, #acc>, %x: tensor<64x64xbf16, #row>, %i: i1) attributes {tile.num_warps = 8 : i32} {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<128x64xbf16, #rows>
    %b = tile_gpu.local_alloc {offset = 16384 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %b2 = tile_gpu.local_alloc {offset = 24576 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %q = tile_gpu.warpgroup_dot %a, %b, %p : !tile_gpu.buffer<128x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<128x64xf32, #acc>>
    scf.if %i {
      %p2 = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<128x64xf32, #acc>>
      %q2 = tile_gpu.warpgroup_dot %a, %b2, %p2 : !tile_gpu.buffer<128x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<128x64xf32, #acc>>
      %d2 = tile_gpu.warpgroup_wait %q2 : tensor<128x64xf32, #acc>
      tile_gpu.local_store %x, %b : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #rows>
    }
    %d = tile_gpu.warpgroup_wait %q : tensor<128x64xf32, #acc>
    return
  }

  // One that was waited for is over: the barrier after that wait is enough.
  // CHECK-LABEL: @over
  // CHECK-COUNT-1: tile_gpu.barrier
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @over(%c: tensor<128x64xf32, #acc>, %x: tensor<64x64xbf16, #row>) attributes {tile.num_warps = 8 : i32} {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<128x64xbf16, #rows>
    %b = tile_gpu.local_alloc {offset = 16384 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %b2 = tile_gpu.local_alloc {offset = 24576 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %q = tile_gpu.warpgroup_dot %a, %b, %p : !tile_gpu.buffer<128x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %d = tile_gpu.warpgroup_wait %q : tensor<128x64xf32, #acc>
    tile_gpu.barrier
    %p2 = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %q2 = tile_gpu.warpgroup_dot %a, %b2, %p2 : !tile_gpu.buffer<128x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %d2 = tile_gpu.warpgroup_wait %q2 : tensor<128x64xf32, #acc>
    tile_gpu.local_store %x, %b : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #rows>
    return
  }
}
