// RUN: kiln-opt %s --split-input-file --kiln-assign-layouts | FileCheck %s

// Accesses of one shape share the widest layout: 8 halves a thread, and so 8 floats.
// CHECK: #[[$W:.*]] = #tile_gpu.blocked<sizePerThread=[8], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
// CHECK-LABEL: func.func @widest
// CHECK: tile.load {{.*}} : tensor<1024x!tile.ptr<f16>, #[[$W]]>
// CHECK-NOT: convert_layout
// CHECK: tile.store {{.*}} : tensor<1024x!tile.ptr<f32>, #[[$W]]>
func.func @widest(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %o = tile.range 0 to 1024 : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f16> to tensor<1024x!tile.ptr<f16>>
  %xp = tile.addptr %xs, %o : tensor<1024x!tile.ptr<f16>>, tensor<1024xi32>
  %v = tile.load %xp : tensor<1024x!tile.ptr<f16>>
  %w = arith.extf %v : tensor<1024xf16> to tensor<1024xf32>
  %ys = tile.splat %y : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  %yp = tile.addptr %ys, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %yp, %w : tensor<1024x!tile.ptr<f32>>
  return
}

// -----

// Nothing is known of the bound: neighbours go to neighbouring lanes, since the mask may split every vector.
// CHECK: #tile_gpu.blocked<sizePerThread=[1]
// CHECK-LABEL: func.func @unknown_bound
func.func @unknown_bound(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32) attributes {tile.kernel} {
  %o = tile.range 0 to 1024 : tensor<1024xi32>
  %ns = tile.splat %n : i32 to tensor<1024xi32>
  %m = arith.cmpi slt, %o, %ns : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %v = tile.load %xp mask %m : tensor<1024x!tile.ptr<f32>>
  tile.store %xp, %v mask %m : tensor<1024x!tile.ptr<f32>>
  return
}

// -----

// A view tells its unit dimension: here the first one.  96 = 3 * 32 is three times a tile of 32.
// CHECK: #[[$V:.*]] = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
// CHECK-LABEL: func.func @view
// CHECK: tile.load_view {{.*}} -> tensor<64x96xf16, #[[$V]]>
// CHECK: tile.store_view {{.*}}, tensor<64x96xf16, #[[$V]]>
func.func @view(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %m: i64 {tile.divisibility = 16 : i32}, %n: i64, %s: i64 {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i64
  %c0 = arith.constant 0 : i64
  %v = tile.make_view %x, extents [%m, %n], strides [%c1, %s] : !tile.view<64x96xf16, unit = 0>, i64
  %t = tile.load_view %v[%c0, %c0] : !tile.view<64x96xf16, unit = 0>, i64 -> tensor<64x96xf16>
  tile.store_view %v[%c0, %c0], %t : !tile.view<64x96xf16, unit = 0>, i64, tensor<64x96xf16>
  return
}

// -----

// What the author wrote stays, and spreads.
// CHECK: #[[$A:.*]] = #tile_gpu.blocked<sizePerThread=[2], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
// CHECK-LABEL: func.func @anchor
// CHECK: tile.range 0 to 1024 : tensor<1024xi32, #[[$A]]>
// CHECK: tile.print "o = " {{.*}} : tensor<1024x1xi32
#anchor = #tile_gpu.blocked<sizePerThread=[2], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
func.func @anchor() attributes {tile.kernel} {
  %o = tile.range 0 to 1024 : tensor<1024xi32, #anchor>
  %e = tile.expand_dims %o {axis = 1 : i32} : tensor<1024xi32, #anchor> to tensor<1024x1xi32>
  tile.print "o = " %e : tensor<1024x1xi32>
  return
}

// -----

// A tile that a loop carries has the layout of what is added to it; its start, a constant, has no say.
// CHECK: #[[$L:.*]] = #tile_gpu.blocked<sizePerThread=[1,4]
// CHECK-LABEL: func.func @loop
// CHECK: arith.constant dense<0.000000e+00> : tensor<16x64xf32, #[[$L]]>
// CHECK: scf.for {{.*}} -> (tensor<16x64xf32, #[[$L]]>)
// CHECK-NOT: convert_layout
// CHECK: tile.reduce{{.*}} : tensor<16x64xf32, #[[$L]]> to tensor<16xf32, #
func.func @loop(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %m: i64, %n: i64 {tile.divisibility = 16 : i32}, %s: i64 {tile.divisibility = 16 : i32}, %k: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %d1 = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %v = tile.make_view %x, extents [%m, %n], strides [%s, %d1] : !tile.view<16x64xf32>, i64
  %sum = scf.for %i = %c0 to %k step %c16 iter_args(%acc = %zero) -> (tensor<16x64xf32>) : i32 {
    %t = tile.load_view %v[%i, %c0] : !tile.view<16x64xf32>, i32 -> tensor<16x64xf32>
    %a = arith.addf %acc, %t : tensor<16x64xf32>
    scf.yield %a : tensor<16x64xf32>
  }
  %r = tile.reduce(%sum) {axis = 1 : i32} : tensor<16x64xf32> to tensor<16xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.print "sum = " %r : tensor<16xf32>
  return
}

// -----

// Every operation that changes shapes, branches and loops with conditions: all tiles get layouts.
// CHECK-LABEL: func.func @shapes
// CHECK-NOT: : tensor<{{[0-9x]*}}x{{[fi][0-9]+}}>
func.func @shapes(%s: f32, %n: i32) attributes {tile.kernel} {
  %x = tile.splat %s : f32 to tensor<64x32xf32>
  %e = math.exp %x : tensor<64x32xf32>
  %t = tile.transpose %e [1, 0] : tensor<64x32xf32> to tensor<32x64xf32>
  %r = tile.reshape %t : tensor<32x64xf32> to tensor<2048xf32>
  %j = tile.join %r, %r : tensor<2048xf32> to tensor<2048x2xf32>
  %a, %b = tile.split %j : tensor<2048x2xf32> to tensor<2048xf32>
  %i = tile.range 0 to 2048 : tensor<2048xi32>
  %g = tile.gather %a[%i] {axis = 0 : i32} : tensor<2048xf32>, tensor<2048xi32>
  %c0 = arith.constant 0 : i32
  %c = arith.cmpi slt, %n, %c0 : i32
  %q = scf.if %c -> (tensor<2048xf32>) {
    scf.yield %g : tensor<2048xf32>
  } else {
    %z = arith.constant dense<1.0> : tensor<2048xf32>
    scf.yield %z : tensor<2048xf32>
  }
  %w, %k = scf.while (%u = %q, %v = %n) : (tensor<2048xf32>, i32) -> (tensor<2048xf32>, i32) {
    %go = arith.cmpi slt, %v, %c0 : i32
    scf.condition(%go) %u, %v : tensor<2048xf32>, i32
  } do {
  ^bb0(%u: tensor<2048xf32>, %v: i32):
    %u2 = arith.addf %u, %b : tensor<2048xf32>
    scf.yield %u2, %v : tensor<2048xf32>, i32
  }
  %sc = tile.scan(%w) {axis = 0 : i32} : tensor<2048xf32> {
  ^bb0(%p: f32, %o: f32):
    %sum = arith.addf %p, %o : f32
    tile.yield %sum : f32
  }
  tile.print "x = " %sc : tensor<2048xf32>
  return
}

// -----

// What is scanned along the rows, in halves of them: a thread has four rows side by side.  The tile that is added, of
// the same shape, lies the same.
// CHECK: #[[$S:.*]] = #tile_gpu.blocked<sizePerThread=[4,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
// CHECK-LABEL: func.func @scanned
// CHECK: tile.load_view {{.*}} -> tensor<64x64xf16, #[[$S]]>
// CHECK: tile.load_view {{.*}} -> tensor<64x64xf16, #[[$S]]>
// CHECK: tile.store_view {{.*}}, tensor<64x64xf16, #[[$S]]>
func.func @scanned(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f16> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %xv = tile.make_view %x, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xf16>, i64
  %yv = tile.make_view %y, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xf16>, i64
  %xt = tile.load_view %xv[%c0, %c0] : !tile.view<64x64xf16>, i64 -> tensor<64x64xf16>
  %yt = tile.load_view %yv[%c0, %c0] : !tile.view<64x64xf16>, i64 -> tensor<64x64xf16>
  %halves = tile.reshape %xt : tensor<64x64xf16> to tensor<2x32x64xf16>
  %sums = tile.scan(%halves) {axis = 1 : i32} : tensor<2x32x64xf16> {
  ^bb0(%a: f16, %b: f16):
    %c = arith.addf %a, %b : f16
    tile.yield %c : f16
  }
  %rows = tile.reshape %sums : tensor<2x32x64xf16> to tensor<64x64xf16>
  %out = arith.addf %rows, %yt : tensor<64x64xf16>
  tile.store_view %yv[%c0, %c0], %out : !tile.view<64x64xf16>, i64, tensor<64x64xf16>
  return
}

// -----

// Along the vectors a thread's elements lie side by side anyway.
// CHECK: #[[$R:.*]] = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
// CHECK-LABEL: func.func @scanned_rows
// CHECK: tile.load_view {{.*}} -> tensor<64x64xf16, #[[$R]]>
func.func @scanned_rows(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %xv = tile.make_view %x, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xf16>, i64
  %xt = tile.load_view %xv[%c0, %c0] : !tile.view<64x64xf16>, i64 -> tensor<64x64xf16>
  %sums = tile.scan(%xt) {axis = 1 : i32} : tensor<64x64xf16> {
  ^bb0(%a: f16, %b: f16):
    %c = arith.addf %a, %b : f16
    tile.yield %c : f16
  }
  tile.store_view %xv[%c0, %c0], %sums : !tile.view<64x64xf16>, i64, tensor<64x64xf16>
  return
}

// -----

// Numbers that only addresses of a larger tile are made of, here the row that a table gives each row, lie as these do:
// each thread reads those of its own addresses, and none are exchanged.
// CHECK: #[[$C:.*]] = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
// CHECK-LABEL: func.func @rows_of_a_table
// CHECK: tile.load {{.*}} : tensor<64x1x!tile.ptr<i32>, #[[$C]]>
// CHECK-NOT: convert_layout
// CHECK: tile.load {{.*}} : tensor<64x64x!tile.ptr<f16>, #[[$C]]>
func.func @rows_of_a_table(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %table: !tile.ptr<i32>, %stride: i64 {tile.divisibility = 8 : i32}) attributes {tile.kernel} {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %rows = tile.expand_dims %r {axis = 1 : i32} : tensor<64xi32> to tensor<64x1xi32>
  %ts = tile.splat %table : !tile.ptr<i32> to tensor<64x1x!tile.ptr<i32>>
  %tp = tile.addptr %ts, %rows : tensor<64x1x!tile.ptr<i32>>, tensor<64x1xi32>
  %listed = tile.load %tp : tensor<64x1x!tile.ptr<i32>>
  %row = arith.extsi %listed : tensor<64x1xi32> to tensor<64x1xi64>
  %ss = tile.splat %stride : i64 to tensor<64x1xi64>
  %offset = arith.muli %row, %ss : tensor<64x1xi64>
  %xs = tile.splat %x : !tile.ptr<f16> to tensor<64x1x!tile.ptr<f16>>
  %xr = tile.addptr %xs, %offset : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi64>
  %xb = tile.broadcast %xr : tensor<64x1x!tile.ptr<f16>> to tensor<64x64x!tile.ptr<f16>>
  %c = tile.range 0 to 64 : tensor<64xi32>
  %columns = tile.expand_dims %c {axis = 0 : i32} : tensor<64xi32> to tensor<1x64xi32>
  %cb = tile.broadcast %columns : tensor<1x64xi32> to tensor<64x64xi32>
  %xp = tile.addptr %xb, %cb : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %v = tile.load %xp : tensor<64x64x!tile.ptr<f16>>
  tile.print "v = " %v : tensor<64x64xf16>
  return
}
