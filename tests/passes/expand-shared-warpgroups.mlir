// RUN: kiln-opt %s --kiln-expand-shared | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>

module attributes {tile_gpu.target = "sm_90a"} {

// A tile and its transpose: stored once, where it is computed, and seen both ways.  The sum starts from zero.
// CHECK-LABEL: @once
// CHECK: %[[X:.*]] = arith.addf
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xf16, #tma>
// CHECK: tile_gpu.local_store %[[X]], %[[B]]
// CHECK: %[[T:.*]] = tile_gpu.local_transpose %[[B]] [1, 0]
// CHECK: tile_gpu.warpgroup_dot %[[T]], %[[B]], %{{.*}} {fromZero}
// CHECK: tile_gpu.warpgroup_dot %[[B]], %[[T]], %{{.*}} :
// CHECK-NOT: local_store
// CHECK: return
func.func @once(%y: tensor<64x64xf16, #row>) -> tensor<64x64xf32, #acc> {
  %x = arith.addf %y, %y : tensor<64x64xf16, #row>
  %t = tile.transpose %x [1, 0] : tensor<64x64xf16, #row> to tensor<64x64xf16, #turned>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %a = tile.dot %t, %x, %zero : tensor<64x64xf16, #turned>, tensor<64x64xf16, #row> to tensor<64x64xf32, #acc>
  %b = tile.dot %x, %t, %a : tensor<64x64xf16, #row>, tensor<64x64xf16, #turned> to tensor<64x64xf32, #acc>
  return %b : tensor<64x64xf32, #acc>
}
}
