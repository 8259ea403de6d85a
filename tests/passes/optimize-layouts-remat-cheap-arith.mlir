// RUN: kiln-opt %s --kiln-optimize-layouts | FileCheck %s --implicit-check-not=convert_layout

#a = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#b = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>

// Offsets and a mask cost a few instructions: they are computed in both layouts.
// CHECK-LABEL: func.func @offsets
// CHECK-COUNT-2: arith.cmpi
module attributes {tile_gpu.target = "sm_80"} {
  func.func @offsets(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %q: tensor<1024x!tile.ptr<i1>, #b>, %start: i32, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %r = tile.range 0 to 1024 : tensor<1024xi32, #a>
    %s = tile.splat %start : i32 to tensor<1024xi32, #a>
    %o = arith.addi %r, %s : tensor<1024xi32, #a>
    %ns = tile.splat %n : i32 to tensor<1024xi32, #a>
    %m = arith.cmpi slt, %o, %ns : tensor<1024xi32, #a>
    %xs = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>, #a>
    %xp = tile.addptr %xs, %o : tensor<1024x!tile.ptr<f32>, #a>, tensor<1024xi32, #a>
    %zero = arith.constant dense<0.0> : tensor<1024xf32, #a>
    tile.store %xp, %zero mask %m cache volatile : tensor<1024x!tile.ptr<f32>, #a>
    %c = tile_gpu.convert_layout %m : tensor<1024xi1, #a> to tensor<1024xi1, #b>
    tile.store %q, %c cache volatile : tensor<1024x!tile.ptr<i1>, #b>
    return
  }
}
