// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-verify-barriers

// Products in flight read their operands until a wait that does not leave them, and other warpgroups' until a barrier
// after it.
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[8,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[8,1], order=[1,0]>
#rows = #tile_gpu.tma<swizzle=128>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @good(%c: tensor<128x64xf32, #acc>, %x: tensor<128x64xbf16, #row>) attributes {tile.num_warps = 8 : i32} {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<128x64xbf16, #rows>
    %b = tile_gpu.local_alloc {offset = 16384 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %q = tile_gpu.warpgroup_dot %a, %b, %p : !tile_gpu.buffer<128x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %d = tile_gpu.warpgroup_wait %q : tensor<128x64xf32, #acc>
    tile_gpu.barrier
    tile_gpu.local_store %x, %a : tensor<128x64xbf16, #row>, !tile_gpu.buffer<128x64xbf16, #rows>
    return
  }
}

// -----

// Without the wait.
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[8,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[8,1], order=[1,0]>
#rows = #tile_gpu.tma<swizzle=128>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_wait(%c: tensor<128x64xf32, #acc>, %x: tensor<128x64xbf16, #row>) attributes {tile.num_warps = 8 : i32} {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<128x64xbf16, #rows>
    %b = tile_gpu.local_alloc {offset = 16384 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<128x64xf32, #acc>>
    // expected-note @+1 {{the product}}
    %q = tile_gpu.warpgroup_dot %a, %b, %p : !tile_gpu.buffer<128x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<128x64xf32, #acc>>
    tile_gpu.barrier
    // expected-error @+2 {{writes bytes that a product in flight may still read: wait for its group first}}
    // expected-note @+1 {{no warpgroup_wait lies on this path}}
    tile_gpu.local_store %x, %a : tensor<128x64xbf16, #row>, !tile_gpu.buffer<128x64xbf16, #rows>
    %d = tile_gpu.warpgroup_wait %q : tensor<128x64xf32, #acc>
    return
  }
}

// -----

// A wait that leaves the product in flight.
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[8,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[8,1], order=[1,0]>
#rows = #tile_gpu.tma<swizzle=128>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @weak_wait(%c: tensor<128x64xf32, #acc>, %x: tensor<128x64xbf16, #row>) attributes {tile.num_warps = 8 : i32} {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<128x64xbf16, #rows>
    %b = tile_gpu.local_alloc {offset = 16384 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<128x64xf32, #acc>>
    // expected-note @+1 {{the product}}
    %q = tile_gpu.warpgroup_dot %a, %b, %p : !tile_gpu.buffer<128x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<128x64xf32, #acc>>
    // expected-note @+1 {{this wait leaves 1 groups in flight: the product's group has only 0 after it}}
    %r = tile_gpu.warpgroup_wait %q leave 1 : !tile_gpu.pending<tensor<128x64xf32, #acc>>
    tile_gpu.barrier
    // expected-error @+1 {{writes bytes that a product in flight may still read: wait for its group first}}
    tile_gpu.local_store %x, %a : tensor<128x64xbf16, #row>, !tile_gpu.buffer<128x64xbf16, #rows>
    %d = tile_gpu.warpgroup_wait %r : tensor<128x64xf32, #acc>
    return
  }
}

// -----

// Without the barrier: another warpgroup's product may read b still.
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[8,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[8,1], order=[1,0]>
#rows = #tile_gpu.tma<swizzle=128>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_barrier(%c: tensor<128x64xf32, #acc>, %x: tensor<64x64xbf16, #row>) attributes {tile.num_warps = 8 : i32} {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<128x64xbf16, #rows>
    %b = tile_gpu.local_alloc {offset = 16384 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<128x64xf32, #acc>>
    // expected-note @+1 {{the read}}
    %q = tile_gpu.warpgroup_dot %a, %b, %p : !tile_gpu.buffer<128x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<128x64xf32, #acc>>
    %d = tile_gpu.warpgroup_wait %q : tensor<128x64xf32, #acc>
    // expected-error @+2 {{this write to shared memory races with a read before it: different warps touch the same bytes}}
    // expected-note @+1 {{put a tile_gpu.barrier on this path}}
    tile_gpu.local_store %x, %b : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #rows>
    return
  }
}
