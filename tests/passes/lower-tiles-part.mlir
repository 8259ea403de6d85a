// RUN: kiln-opt %s --kiln-lower-tiles --canonicalize | FileCheck %s

// A part is a renaming: the second half of a thread's rows, of its columns, and of K of an operand (register by register
// as the matrix unit takes them).
#rows = #tile_gpu.blocked<sizePerThread=[1,1], threadsPerWarp=[4,8], warpsPerCTA=[1,1], order=[1,0]>
#columns = #tile_gpu.blocked<sizePerThread=[2,1], threadsPerWarp=[8,4], warpsPerCTA=[1,1], order=[0,1]>
#k = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[1,1], instrN=16>>
module attributes {tile_gpu.target = "sm_80"} {
  // CHECK-LABEL: @rows(
  // CHECK-SAME: %{{[^:]*}}: f32, %{{[^:]*}}: f32, %[[A:[^:]*]]: f32, %[[B:[^:]*]]: f32)
  // CHECK-NEXT: return %[[A]], %[[B]] : f32, f32
  func.func @rows(%x: tensor<16x8xf32, #rows>) -> tensor<8x8xf32, #rows> attributes {tile.num_warps = 1 : i32} {
    %y = tile_gpu.part %x [1 of 2] along 0 : tensor<16x8xf32, #rows> to tensor<8x8xf32, #rows>
    return %y : tensor<8x8xf32, #rows>
  }

  // CHECK-LABEL: @columns(
  // CHECK-SAME: %{{[^:]*}}: f32, %{{[^:]*}}: f32, %[[A:[^:]*]]: f32, %[[B:[^:]*]]: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32)
  // CHECK-NEXT: return %[[A]], %[[B]] : f32, f32
  func.func @columns(%x: tensor<16x16xf32, #columns>) -> tensor<16x4xf32, #columns> attributes {tile.num_warps = 1 : i32} {
    %y = tile_gpu.part %x [1 of 4] along 1 : tensor<16x16xf32, #columns> to tensor<16x4xf32, #columns>
    return %y : tensor<16x4xf32, #columns>
  }

  // CHECK-LABEL: @k(
  // CHECK-SAME: %{{[^:]*}}: f16, %{{[^:]*}}: f16, %{{[^:]*}}: f16, %{{[^:]*}}: f16, %[[A:[^:]*]]: f16, %[[B:[^:]*]]: f16, %[[C:[^:]*]]: f16, %[[D:[^:]*]]: f16)
  // CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[D]] : f16, f16, f16, f16
  func.func @k(%x: tensor<32x8xf16, #k>) -> tensor<16x8xf16, #k> attributes {tile.num_warps = 1 : i32} {
    %y = tile_gpu.part %x [1 of 2] along 0 : tensor<32x8xf16, #k> to tensor<16x8xf16, #k>
    return %y : tensor<16x8xf16, #k>
  }
}
