// RUN: kiln-opt %s --kiln-accelerate-dot -split-input-file -verify-diagnostics

func.func @f(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x64xf32>) {
  // expected-error @+2 {{the module names no target}}
  // expected-note @+1 {{give it tile_gpu.target}}
  %0 = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16> to tensor<64x64xf32>
  return
}

// -----

module attributes {tile_gpu.target = "sm_80"} {
  func.func @twelve_warps(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x64xf32>)
      attributes {tile.num_warps = 12 : i32} {
    // expected-error @+2 {{a tile is spread over a power of two of warps, and 12 warps execute this (tile.num_warps)}}
    // expected-note @+1 {{use 1, 2, 4, 8, 16 or 32 warps}}
    %0 = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16> to tensor<64x64xf32>
    return
  }
}
