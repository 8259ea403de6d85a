// RUN: kiln-opt %s --canonicalize | FileCheck %s --implicit-check-not=unrealized

// A part of an operand along K, and of a tile whose threads hold four rows.
// CHECK-LABEL: @parts
// CHECK: tile_gpu.part %{{.*}} [1 of 4] along 1 : tensor<64x64xf16, #[[K:.*]]> to tensor<64x16xf16, #[[K]]>
// CHECK: tile_gpu.part %{{.*}} [0 of 2] along 0 : tensor<128x8xf32, #[[R:.*]]> to tensor<64x8xf32, #[[R]]>
#k = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1]>>
#r = #tile_gpu.blocked<sizePerThread=[1,1], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @parts(%x: tensor<64x64xf16, #k>, %y: tensor<128x8xf32, #r>) -> (tensor<64x16xf16, #k>, tensor<64x8xf32, #r>) {
    %a = tile_gpu.part %x [1 of 4] along 1 : tensor<64x64xf16, #k> to tensor<64x16xf16, #k>
    %b = tile_gpu.part %y [0 of 2] along 0 : tensor<128x8xf32, #r> to tensor<64x8xf32, #r>
    return %a, %b : tensor<64x16xf16, #k>, tensor<64x8xf32, #r>
  }
}
