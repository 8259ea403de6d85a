// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-insert-barriers

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @no_place(%x: tensor<64x32xf32, #row>) {
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    // expected-error @+2 {{a buffer has no place in shared memory yet}}
    // expected-note @+1 {{run allocate-shared first}}
    tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    return
  }
}

// -----

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @control_flow(%x: tensor<64x32xf32, #row>, %i: i32) {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
    %c = arith.index_cast %i : i32 to index
    // expected-error @+1 {{'scf.index_switch' holds accesses to memory}}
    scf.index_switch %c
    case 0 {
      tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
      scf.yield
    }
    default {
      scf.yield
    }
    return
  }
}

// -----

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @beyond(%x: tensor<64x32xf32, #row>, %i: i32) {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[9000] x 64x32xf32, #sh>
    %s = tile_gpu.local_subview %a[%i] : !tile_gpu.buffer<[9000] x 64x32xf32, #sh>
    // expected-error @+2 {{a buffer ends at byte 73728000 of shared memory}}
    // expected-note @+1 {{use smaller or fewer buffers}}
    tile_gpu.local_store %x, %s : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    return
  }
}
