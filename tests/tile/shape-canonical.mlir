// RUN: kiln-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @of_splat
// CHECK-NEXT: %[[S:.*]] = tile.splat %arg0 : f32 to tensor<32x64xf32>
// CHECK-NEXT: return %[[S]]
func.func @of_splat(%s: f32) -> tensor<32x64xf32> {
  %0 = tile.splat %s : f32 to tensor<64xf32>
  %1 = tile.expand_dims %0 {axis = 1 : i32} : tensor<64xf32> to tensor<64x1xf32>
  %2 = tile.broadcast %1 : tensor<64x1xf32> to tensor<64x32xf32>
  %3 = tile.transpose %2 [1, 0] : tensor<64x32xf32> to tensor<32x64xf32>
  return %3 : tensor<32x64xf32>
}

// CHECK-LABEL: func.func @constant_splat
// CHECK: arith.constant dense<2.000000e+00> : tensor<8xf32>
func.func @constant_splat() -> tensor<8xf32> {
  %c = arith.constant 2.0 : f32
  %0 = tile.splat %c : f32 to tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @twice
// CHECK-NEXT: tile.broadcast %arg0 : tensor<1x1xf32> to tensor<8x4xf32>
// CHECK-NEXT: return %{{.*}}, %arg1
func.func @twice(%a: tensor<1x1xf32>, %b: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = tile.broadcast %a : tensor<1x1xf32> to tensor<8x1xf32>
  %1 = tile.broadcast %0 : tensor<8x1xf32> to tensor<8x4xf32>
  %2 = tile.transpose %b [1, 0] : tensor<8x4xf32> to tensor<4x8xf32>
  %3 = tile.transpose %2 [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>
  return %1, %3 : tensor<8x4xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: func.func @split_of_join
// CHECK-NEXT: return %arg1, %arg0
func.func @split_of_join(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = tile.join %a, %b : tensor<8xf32> to tensor<8x2xf32>
  %1, %2 = tile.split %0 : tensor<8x2xf32> to tensor<8xf32>
  return %2, %1 : tensor<8xf32>, tensor<8xf32>
}
