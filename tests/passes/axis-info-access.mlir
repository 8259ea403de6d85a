// RUN: kiln-opt %s --kiln-assign-layouts --kiln-test-axis-info | FileCheck %s

// Widths of accesses: 16 bytes where address, mask and layout allow it.
// CHECK-LABEL: func.func @masked
func.func @masked(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 2 : i32}) attributes {tile.kernel} {
  %o = tile.range 0 to 1024 : tensor<1024xi32>
  %ns = tile.splat %n : i32 to tensor<1024xi32>
  %m = arith.cmpi slt, %o, %ns : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  // CHECK: tile.load {{.*}} {access = "4 along dimension 0"}
  %a = tile.load %xp : tensor<1024x!tile.ptr<f32>>
  // The bound is even: two elements are in bounds, or out, together.
  // CHECK: tile.load {{.*}} mask {{.*}} {access = "2 along dimension 0"}
  %b = tile.load %xp mask %m : tensor<1024x!tile.ptr<f32>>
  // CHECK: tile.load {{.*}} cache volatile {access = "1 along dimension 0"}
  %c = tile.load %xp cache volatile : tensor<1024x!tile.ptr<f32>>
  %s = arith.addf %a, %b : tensor<1024xf32>
  // Sums of f32 whose old values nobody asks for; other atomics act one by one.
  // CHECK: tile.atomic_rmw add {{.*}} {access = "4 along dimension 0"}
  %d = tile.atomic_rmw add relaxed gpu %xp, %s : tensor<1024x!tile.ptr<f32>>
  // CHECK: tile.atomic_rmw add {{.*}} {access = "1 along dimension 0"}
  %e = tile.atomic_rmw add relaxed gpu %xp, %s : tensor<1024x!tile.ptr<f32>>
  // CHECK: tile.atomic_rmw max {{.*}} {access = "1 along dimension 0"}
  %g = tile.atomic_rmw max relaxed gpu %xp, %e : tensor<1024x!tile.ptr<f32>>
  tile.store %xp, %c : tensor<1024x!tile.ptr<f32>>
  return
}

// Views: the base, the other strides and the first coordinate decide the alignment, the extent the bounds check.
// CHECK-LABEL: func.func @views
func.func @views(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %m: i64, %n: i64 {tile.divisibility = 16 : i32}, %s: i64 {tile.divisibility = 8 : i32}, %odd: i64, %k: i32) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i64
  %c0 = arith.constant 0 : i64
  %i0 = arith.constant 0 : i32
  %i64 = arith.constant 64 : i32
  %aligned = tile.make_view %x, extents [%m, %n], strides [%s, %c1] : !tile.view<32x64xf16>, i64
  // CHECK: tile.load_view {{.*}} {access = "8 along dimension 1"}
  scf.for %i = %i0 to %k step %i64 : i32 {
    %t = tile.load_view %aligned[%i0, %i] : !tile.view<32x64xf16>, i32 -> tensor<32x64xf16>
    tile.print "t" %t : tensor<32x64xf16>
  // CHECK: } {facts.arguments = ["c=1 v=64 k=1"]}
  }
  %stride = tile.make_view %x, extents [%m, %n], strides [%odd, %c1] : !tile.view<32x64xf16>, i64
  // CHECK: tile.load_view {{.*}} {access = "1 along dimension 0"}
  %u = tile.load_view %stride[%c0, %c0] : !tile.view<32x64xf16>, i64 -> tensor<32x64xf16>
  %extent = tile.make_view %x, extents [%m, %odd], strides [%s, %c1] : !tile.view<32x64xf16>, i64
  // CHECK: tile.load_view {{.*}} {access = "1 along dimension 0"}
  %v = tile.load_view %extent[%c0, %c0] : !tile.view<32x64xf16>, i64 -> tensor<32x64xf16>
  // Rows from an unknown one on: rows do not matter.
  %rows = tile.narrow_view %aligned[%m, %odd] {dim = 0 : i32} : !tile.view<32x64xf16>, i64
  // CHECK: tile.load_view {{.*}} {access = "8 along dimension 1"}
  %w = tile.load_view %rows[%c0, %c0] : !tile.view<32x64xf16>, i64 -> tensor<32x64xf16>
  %columns = tile.narrow_view %aligned[%c0, %odd] {dim = 1 : i32} : !tile.view<32x64xf16>, i64
  // CHECK: tile.load_view {{.*}} {access = "1 along dimension 0"}
  %z = tile.load_view %columns[%c0, %c0] : !tile.view<32x64xf16>, i64 -> tensor<32x64xf16>
  // A slice of a whole tensor: every fixed coordinate may be odd where its stride is a multiple.
  %whole = tile.make_view %x, extents [%m, %m, %m, %n], strides [%s, %s, %s, %c1] : !tile.view<1x32x1x64xf16>, i64
  %slice = tile.slice_view %whole[%odd, %odd] {dims = array<i32: 0, 2>} : !tile.view<1x32x1x64xf16>, i64 -> !tile.view<32x64xf16>
  // CHECK: tile.load_view {{.*}} {access = "8 along dimension 1"}
  %f = tile.load_view %slice[%c0, %c0] : !tile.view<32x64xf16>, i64 -> tensor<32x64xf16>
  %uneven = tile.make_view %x, extents [%m, %m, %m, %n], strides [%s, %s, %odd, %c1] : !tile.view<1x32x1x64xf16>, i64
  %bad = tile.slice_view %uneven[%odd, %odd] {dims = array<i32: 0, 2>} : !tile.view<1x32x1x64xf16>, i64 -> !tile.view<32x64xf16>
  // CHECK: tile.load_view {{.*}} {access = "1 along dimension 0"}
  %g = tile.load_view %bad[%c0, %c0] : !tile.view<32x64xf16>, i64 -> tensor<32x64xf16>
  %h = arith.addf %f, %g : tensor<32x64xf16>
  tile.print "h" %h : tensor<32x64xf16>
  %q = arith.addf %u, %v : tensor<32x64xf16>
  %r = arith.addf %w, %z : tensor<32x64xf16>
  tile.print "q" %q : tensor<32x64xf16>
  tile.print "r" %r : tensor<32x64xf16>
  return
}
