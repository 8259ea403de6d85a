// RUN: kiln-opt %s -canonicalize | FileCheck %s
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[4,1]>

// CHECK-LABEL: func.func @there_and_back
// CHECK-NEXT: return %arg0
func.func @there_and_back(%x: tensor<64x32xf16, #row>) -> tensor<64x32xf16, #row> {
  %0 = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #mma>
  %1 = tile_gpu.convert_layout %0 : tensor<64x32xf16, #mma> to tensor<64x32xf16, #row>
  return %1 : tensor<64x32xf16, #row>
}

// CHECK-LABEL: func.func @generators
// CHECK-NOT: convert_layout
func.func @generators(%s: f16) -> (tensor<64x32xf16, #mma>, tensor<64x32xf16, #mma>) {
  %0 = tile.splat %s : f16 to tensor<64x32xf16, #row>
  %1 = tile_gpu.convert_layout %0 : tensor<64x32xf16, #row> to tensor<64x32xf16, #mma>
  %2 = arith.constant dense<1.0> : tensor<64x32xf16, #row>
  %3 = tile_gpu.convert_layout %2 : tensor<64x32xf16, #row> to tensor<64x32xf16, #mma>
  return %1, %3 : tensor<64x32xf16, #mma>, tensor<64x32xf16, #mma>
}
