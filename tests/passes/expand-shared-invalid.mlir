// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-expand-shared

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
func.func @no_target(%x: tensor<64x32xf32, #row>) {
  // expected-error @+2 {{the module names no target}}
  // expected-note @+1 {{give it tile_gpu.target}}
  %y = tile_gpu.convert_layout %x : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>
  return
}

// -----

#four = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#eight = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[8,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @warps_differ(%x: tensor<64x32xf32, #four>) {
    // expected-error @+2 {{L13}}
    // expected-note @+1 {{}}
    %y = tile_gpu.convert_layout %x : tensor<64x32xf32, #four> to tensor<64x32xf32, #eight>
    return
  }
}

// -----

module attributes {tile_gpu.target = "sm_80"} {
  func.func @no_layout(%x: tensor<512xf32>) -> f32 {
    // expected-error @+2 {{a tile has no layout}}
    // expected-note @+1 {{run assign-layouts first}}
    %s = tile.reduce(%x) {axis = 0 : i32} : tensor<512xf32> to f32 {
    ^bb0(%a: f32, %b: f32):
      tile.yield %a : f32
    }
    return %s : f32
  }
}

// -----

// The old value reaches the other threads as a tile.
module attributes {tile_gpu.target = "sm_80"} {
  func.func @twelve_warps(%p: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 12 : i32} {
    // expected-error @+2 {{a tile is spread over a power of two of warps, and 12 warps execute this (tile.num_warps)}}
    // expected-note @+1 {{use 1, 2, 4, 8, 16 or 32 warps}}
    %old = tile.atomic_rmw add relaxed gpu %p, %n : !tile.ptr<i32>
    tile.store %p, %old : !tile.ptr<i32>
    return
  }
}

// -----

// Rows of 16 bytes are too short for every swizzle.
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[32,1], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @narrow(%x: tensor<8x8xf16, #row>, %y: tensor<8x64xf16, #row>, %c: tensor<8x64xf32, #acc>) -> tensor<8x64xf32, #acc> attributes {tile_gpu.test} {
    // expected-error @+1 {{no buffer of shared memory for the operand 'tensor<8x8xf16}}
    %d = tile.dot %x, %y, %c : tensor<8x8xf16, #row>, tensor<8x64xf16, #row> to tensor<8x64xf32, #acc>
    return %d : tensor<8x64xf32, #acc>
  }
}
