// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

// CHECK-LABEL: func.func @products
func.func @products(%a: tensor<64x32xbf16>, %b: tensor<32x16xbf16>, %c: tensor<64x16xf32>, %p: tensor<64x32xf32>,
                    %q: tensor<32x16xf32>, %i: tensor<2x8x16xi8>, %j: tensor<2x16x8xi8>, %k: tensor<2x8x8xi32>,
                    %x: tensor<16x32xf8E4M3FN>, %y: tensor<32x8xf8E5M2>, %z: tensor<16x8xf32>) {
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x32xbf16>, tensor<32x16xbf16> to tensor<64x16xf32>
  %0 = tile.dot %a, %b, %c : tensor<64x32xbf16>, tensor<32x16xbf16> to tensor<64x16xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x32xf32>, tensor<32x16xf32> to tensor<64x16xf32>
  %1 = tile.dot %p, %q, %c precision ieee : tensor<64x32xf32>, tensor<32x16xf32> to tensor<64x16xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} precision tf32x3 : tensor<64x32xf32>, tensor<32x16xf32> to tensor<64x16xf32>
  %2 = tile.dot %p, %q, %c precision tf32x3 : tensor<64x32xf32>, tensor<32x16xf32> to tensor<64x16xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8x16xi8>, tensor<2x16x8xi8> to tensor<2x8x8xi32>
  %3 = tile.dot %i, %j, %k : tensor<2x8x16xi8>, tensor<2x16x8xi8> to tensor<2x8x8xi32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E5M2> to tensor<16x8xf32>
  %4 = tile.dot %x, %y, %z : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E5M2> to tensor<16x8xf32>
  return
}
