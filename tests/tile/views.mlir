// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

// CHECK-LABEL: func.func @views
func.func @views(%p: !tile.ptr<f16>, %m: i64, %n: i64, %i: i32) {
  %one = arith.constant 1 : i64
  // CHECK: tile.make_view %{{.*}}, extents [%{{.*}}, %{{.*}}], strides [%{{.*}}, %{{.*}}] : !tile.view<64x32xf16>, i64
  %v = tile.make_view %p, extents [%m, %n], strides [%n, %one] : !tile.view<64x32xf16>, i64
  // CHECK: !tile.view<64x32xf16, unit = 0>
  %t = tile.make_view %p, extents [%m, %n], strides [%one, %m] : !tile.view<64x32xf16, unit = 0>, i64
  // CHECK: !tile.view<64x32xf16, unit = none>
  %u = tile.make_view %p, extents [%m, %n], strides [%m, %m] : !tile.view<64x32xf16, unit = none>, i64
  // CHECK: tile.narrow_view %{{.*}}[%{{.*}}, %{{.*}}] {dim = 0 : i32} : !tile.view<64x32xf16>, i32
  %w = tile.narrow_view %v[%i, %i] {dim = 0 : i32} : !tile.view<64x32xf16>, i32
  // CHECK: tile.load_view %{{.*}}[%{{.*}}, %{{.*}}] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16>
  %x = tile.load_view %w[%i, %i] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16>
  // CHECK: tile.store_view %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} cache streaming : !tile.view<64x32xf16, unit = 0>, i32, tensor<64x32xf16>
  tile.store_view %t[%i, %i], %x cache streaming : !tile.view<64x32xf16, unit = 0>, i32, tensor<64x32xf16>
  // CHECK: tile.slice_view %{{.*}}[%{{.*}}, %{{.*}}] {dims = array<i32: 0, 2>} : !tile.view<1x64x1x32xf16>, i32 -> !tile.view<64x32xf16>
  %narrowest = tile.make_view %p, extents [%m, %n, %n], strides [%m, %n, %one] : !tile.view<1x64x1xf16>, i64
  %whole = tile.make_view %p, extents [%m, %m, %n, %n], strides [%n, %n, %n, %one] : !tile.view<1x64x1x32xf16>, i64
  %slice = tile.slice_view %whole[%i, %i] {dims = array<i32: 0, 2>} : !tile.view<1x64x1x32xf16>, i32 -> !tile.view<64x32xf16>
  // The unit dimension moves up, and is none where it is fixed.
  // CHECK: -> !tile.view<1x64xf16, unit = none>
  %column = tile.slice_view %narrowest[%i] {dims = array<i32: 2>} : !tile.view<1x64x1xf16>, i32 -> !tile.view<1x64xf16, unit = none>
  return
}
