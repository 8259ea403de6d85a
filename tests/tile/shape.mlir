// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

// CHECK-LABEL: func.func @shapes
func.func @shapes(%s: f32, %p: !tile.ptr<f16>, %a: tensor<64xf32>, %b: tensor<64x32xf32>) {
  // CHECK: tile.range 0 to 96 : tensor<96xi32>
  %0 = tile.range 0 to 96 : tensor<96xi32>
  // CHECK: tile.range -8 to 8 : tensor<16xi64>
  %1 = tile.range -8 to 8 : tensor<16xi64>
  // CHECK: tile.splat %{{.*}} : f32 to tensor<64x32xf32>
  %2 = tile.splat %s : f32 to tensor<64x32xf32>
  // CHECK: tile.splat %{{.*}} : !tile.ptr<f16> to tensor<64x!tile.ptr<f16>>
  %3 = tile.splat %p : !tile.ptr<f16> to tensor<64x!tile.ptr<f16>>
  // CHECK: tile.expand_dims %{{.*}} {axis = 1 : i32} : tensor<64xf32> to tensor<64x1xf32>
  %4 = tile.expand_dims %a {axis = 1 : i32} : tensor<64xf32> to tensor<64x1xf32>
  // CHECK: tile.broadcast %{{.*}} : tensor<64x1xf32> to tensor<64x32xf32>
  %5 = tile.broadcast %4 : tensor<64x1xf32> to tensor<64x32xf32>
  // CHECK: tile.transpose %{{.*}} [1, 0] : tensor<64x32xf32> to tensor<32x64xf32>
  %6 = tile.transpose %b [1, 0] : tensor<64x32xf32> to tensor<32x64xf32>
  // CHECK: tile.reshape %{{.*}} : tensor<64x32xf32> to tensor<2048xf32>
  %7 = tile.reshape %b : tensor<64x32xf32> to tensor<2048xf32>
  // CHECK: tile.join %{{.*}}, %{{.*}} : tensor<64xf32> to tensor<64x2xf32>
  %8 = tile.join %a, %a : tensor<64xf32> to tensor<64x2xf32>
  // CHECK: %{{.*}}, %{{.*}} = tile.split %{{.*}} : tensor<64x2xf32> to tensor<64xf32>
  %9, %10 = tile.split %8 : tensor<64x2xf32> to tensor<64xf32>
  return
}
