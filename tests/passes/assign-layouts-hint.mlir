// RUN: kiln-opt %s --split-input-file --canonicalize --cse --kiln-assign-layouts --canonicalize | FileCheck %s
// A conversion to a layout and back to none is a hint: canonicalisation leaves it, and tiles before and after lie so,
// as far as they are not bound by addresses.

// CHECK: #[[$ROW:.*]] = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
// CHECK: #[[$A:.*]] = #tile_gpu.blocked<sizePerThread=[64,1], threadsPerWarp=[1,32], warpsPerCTA=[1,4], order=[0,1]>
// CHECK: #[[$S:.*]] = #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[64,1], threadsPerWarp=[1,32], warpsPerCTA=[1,4], order=[0,1]>>
// CHECK-LABEL: func.func @load
// CHECK: %[[T:.*]] = tile.load_view {{.*}} -> tensor<64x32xf16, #[[$ROW]]>
// CHECK: %[[H:.*]] = tile_gpu.convert_layout %[[T]] : tensor<64x32xf16, #[[$ROW]]> to tensor<64x32xf16, #[[$A]]>
// CHECK-NOT: convert_layout
// CHECK: arith.extf %[[H]] : tensor<64x32xf16, #[[$A]]> to tensor<64x32xf32, #[[$A]]>
// CHECK: tile.reduce({{.*}} : tensor<64x32xf32, #[[$A]]> to tensor<32xf32, #[[$S]]>
#a = #tile_gpu.blocked<sizePerThread=[64,1], threadsPerWarp=[1,32], warpsPerCTA=[1,4], order=[0,1]>
func.func @load(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %v = tile.make_view %x, extents [%n, %n], strides [%n, %c1] : !tile.view<64x32xf16>, i32
  %t = tile.load_view %v[%c0, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16>
  %there = tile_gpu.convert_layout %t : tensor<64x32xf16> to tensor<64x32xf16, #a>
  %h = tile_gpu.convert_layout %there : tensor<64x32xf16, #a> to tensor<64x32xf16>
  %f = arith.extf %h : tensor<64x32xf16> to tensor<64x32xf32>
  %r = tile.reduce(%f) {axis = 0 : i32} : tensor<64x32xf32> to tensor<32xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tile.yield %s : f32
  }
  tile.print "r" %r : tensor<32xf32>
  return
}

// -----

// A constant has a hint too; what is computed of it, and so the tile that a loop carries.
// CHECK: #[[$A:.*]] = #tile_gpu.blocked<sizePerThread=[2,4], threadsPerWarp=[8,4], warpsPerCTA=[2,2], order=[1,0]>
// CHECK-LABEL: func.func @constant
// CHECK: arith.constant dense<0.000000e+00> : tensor<64x32xf32, #[[$A]]>
// CHECK-NOT: convert_layout
// CHECK: scf.for {{.*}} -> (tensor<64x32xf32, #[[$A]]>)
// CHECK-NOT: convert_layout
#b = #tile_gpu.blocked<sizePerThread=[2,4], threadsPerWarp=[8,4], warpsPerCTA=[2,2], order=[1,0]>
func.func @constant(%n: i32, %y: f32) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %there = tile_gpu.convert_layout %zero : tensor<64x32xf32> to tensor<64x32xf32, #b>
  %h = tile_gpu.convert_layout %there : tensor<64x32xf32, #b> to tensor<64x32xf32>
  %ys = tile.splat %y : f32 to tensor<64x32xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %h) -> (tensor<64x32xf32>) : i32 {
    %next = arith.addf %s, %ys : tensor<64x32xf32>
    scf.yield %next : tensor<64x32xf32>
  }
  tile.print "sum" %sum : tensor<64x32xf32>
  return
}
