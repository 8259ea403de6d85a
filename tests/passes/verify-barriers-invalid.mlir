// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-verify-barriers

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @missing(%x: tensor<64x32xf32, #row>) {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
    // expected-note @+1 {{the write}}
    tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    // A barrier of the warp is too weak.
    tile_gpu.warp_barrier
    // expected-error @+2 {{this read of shared memory races with a write before it: different warps touch the same bytes, and no barrier of the block lies between}}
    // expected-note @+1 {{put a tile_gpu.barrier on this path}}
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    return
  }
}

// -----

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @back_edge(%x: tensor<64x32xf32, #row>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
    // expected-note @+1 {{the path goes into the loop's next round}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-error @+2 {{this write to shared memory races with a read before it}}
      // expected-note @+1 {{put a tile_gpu.barrier}}
      tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
      tile_gpu.barrier
      // expected-note @+1 {{the read}}
      %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    }
    return
  }
}

// -----

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @one_arm(%x: tensor<64x32xf32, #row>, %p: i1) {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
    // expected-note @+1 {{the write}}
    tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    // expected-note @+1 {{the path goes past the conditional}}
    scf.if %p {
      tile_gpu.barrier
    }
    // expected-error @+2 {{this read of shared memory races}}
    // expected-note @+1 {{put a tile_gpu.barrier}}
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    return
  }
}

// -----

// Two allocations at overlapping places are one memory: 512 bytes are four rows, which another warp holds.
#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @overlap(%x: tensor<64x32xf32, #row>) {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
    %b = tile_gpu.local_alloc {offset = 512 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
    // expected-note @+1 {{the write}}
    tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    // expected-error @+2 {{this write to shared memory races with a write before it}}
    // expected-note @+1 {{put a tile_gpu.barrier}}
    tile_gpu.local_store %x, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    return
  }
}

// -----

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @unknown_index(%x: tensor<64x32xf32, #row>, %i: i32, %j: i32) {
    %k = arith.addi %i, %j : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[2] x 64x32xf32, #sh>
    %s = tile_gpu.local_subview %a[%k] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>
    %t = tile_gpu.local_subview %a[%j] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>
    // expected-note @+1 {{the write}}
    tile_gpu.local_store %x, %s : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    // expected-error @+2 {{cannot be proved: whether different warps touch the same bytes here and in a write before it, with no barrier of the block between, depends on the index %}}
    // expected-note @+1 {{put a tile_gpu.barrier}}
    %l = tile_gpu.local_load %t : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    return
  }
}

// -----

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func private @helper()
  func.func @call() {
    // expected-error @+1 {{cannot be proved: what the called function does to shared memory is not known here}}
    call @helper() : () -> ()
    return
  }
}

// -----

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @no_place(%x: tensor<64x32xf32, #row>) {
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    // expected-error @+2 {{a buffer has no place in shared memory}}
    // expected-note @+1 {{run allocate-shared first}}
    tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    return
  }
}
