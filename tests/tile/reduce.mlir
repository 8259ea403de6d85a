// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<64x32xf32>, %i: tensor<64x32xi32>, %v: tensor<8xf32>) {
  // CHECK: tile.reduce(%{{.*}}) {axis = 1 : i32} : tensor<64x32xf32> to tensor<64xf32> {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
  %0 = tile.reduce(%x) {axis = 1 : i32} : tensor<64x32xf32> to tensor<64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  // CHECK: %{{.*}}:2 = tile.reduce(%{{.*}}, %{{.*}}) {axis = 0 : i32} : tensor<64x32xf32>, tensor<64x32xi32> to tensor<32xf32>, tensor<32xi32> {
  %1, %2 = tile.reduce(%x, %i) {axis = 0 : i32} : tensor<64x32xf32>, tensor<64x32xi32> to tensor<32xf32>, tensor<32xi32> {
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %p = arith.cmpf ogt, %a, %b : f32
    %c = arith.select %p, %a, %b : f32
    %d = arith.select %p, %ai, %bi : i32
    tile.yield %c, %d : f32, i32
  }
  // CHECK: tile.reduce(%{{.*}}) {axis = 0 : i32} : tensor<8xf32> to f32 {
  %3 = tile.reduce(%v) {axis = 0 : i32} : tensor<8xf32> to f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  // CHECK: tile.scan(%{{.*}}) {axis = 0 : i32, reverse} : tensor<8xf32> {
  %4 = tile.scan(%v) {axis = 0 : i32, reverse} : tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  // CHECK: tile.any_row %{{.*}} : tensor<64xi1>
  %5 = arith.constant dense<true> : tensor<64xi1>
  %6 = tile.any_row %5 : tensor<64xi1>
  return
}
