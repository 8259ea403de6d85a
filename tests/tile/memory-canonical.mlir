// RUN: kiln-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @constant_masks
// CHECK-NEXT: tile.load %arg0 : tensor<8x!tile.ptr<f32>>
// CHECK-NEXT: tile.store %arg0, %arg1 : tensor<8x!tile.ptr<f32>>
// CHECK-NEXT: return %{{.*}}, %arg1
func.func @constant_masks(%p: tensor<8x!tile.ptr<f32>>, %v: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %on = arith.constant dense<true> : tensor<8xi1>
  %off = arith.constant dense<false> : tensor<8xi1>
  %0 = tile.load %p mask %on : tensor<8x!tile.ptr<f32>>
  %1 = tile.load %p mask %off other %v : tensor<8x!tile.ptr<f32>>
  tile.store %p, %v mask %on : tensor<8x!tile.ptr<f32>>
  tile.store %p, %v mask %off : tensor<8x!tile.ptr<f32>>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @no_offset
// CHECK-NEXT: return %arg0
func.func @no_offset(%p: tensor<8x!tile.ptr<f32>>) -> tensor<8x!tile.ptr<f32>> {
  %zero = arith.constant dense<0> : tensor<8xi32>
  %0 = tile.addptr %p, %zero : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  return %0 : tensor<8x!tile.ptr<f32>>
}

// A load that nobody uses may go; a volatile one may not.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT: tile.load %arg0 cache volatile
// CHECK-NEXT: return
func.func @unused(%p: !tile.ptr<f32>) {
  %0 = tile.load %p : !tile.ptr<f32>
  %1 = tile.load %p cache volatile : !tile.ptr<f32>
  return
}
