// RUN: kiln-opt %s --kiln-delay-products --canonicalize | FileCheck %s

#scores = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#sums = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=32>
#rows = #tile_gpu.slice<dim=1, parent=mma<version=3, warpsPerCTA=[4,1], instrN=64>>
#load = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[4,8], warpsPerCTA=[1,4], order=[0,1]>
!view = !tile.view<64x32xbf16>

module attributes {tile_gpu.target = "sm_90a"} {

// Scores, their powers, the values weighted by these: the last product is the next round's second one.  The conditional
// that rescales the sums and something else is two, and the one of the sums comes last and asks for the totals.
// CHECK-LABEL: @rescaled
// CHECK-SAME: %[[Q:[a-z0-9]*]]: tensor<64x32xbf16
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %[[N:.*]], %c0_i32 : i32
// CHECK: scf.if %[[SOME]] -> (tensor<64x1xf32
// CHECK: %[[K0:.*]] = tile.load_view %[[K:.*]][%c0_i32, %c0_i32]
// CHECK: %[[S0:.*]] = tile.dot %[[Q]]
// CHECK: %[[P0:.*]] = arith.truncf
// CHECK: %[[MORE:.*]] = arith.cmpi ugt, %{{.*}}, %c64_i32
// CHECK: %[[FROM:.*]] = arith.select %[[MORE]], %c64_i32, %[[N]]
// CHECK: %[[LOOP:.*]]:4 = scf.for %[[I:.*]] = %[[FROM]] to %[[N]] step %c64_i32 iter_args(%[[TOTAL:.*]] = %{{.*}}, %[[SUMS:.*]] = %{{.*}}, %[[J:.*]] = %c0_i32, %[[P:.*]] = %[[P0]])
// CHECK: tile.load_view %[[K]][%[[I]], %c0_i32]
// CHECK: %[[S:.*]] = tile.dot %[[Q]]
// CHECK-NEXT: %[[V:.*]] = tile.load_view %[[VALUES:.*]][%[[J]], %c0_i32]
// CHECK-NEXT: %[[GROWN:.*]] = tile.dot %[[P]], %[[V]], %[[SUMS]]
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt
// CHECK: %[[ANY:.*]] = tile.any_row %[[LARGE]] : tensor<64xi1
// CHECK: scf.if %[[ANY]] -> (tensor<64x1xf32
// CHECK-NOT: %[[GROWN]]
// CHECK: %[[NEXT:.*]] = arith.addf %{{.*}} : tensor<64x1xf32
// CHECK: %[[NONE:.*]] = arith.cmpf uno, %[[NEXT]], %[[NEXT]]
// CHECK: %[[ASK:.*]] = arith.ori %{{.*}}, %[[NONE]] : tensor<64x1xi1
// CHECK: %[[ANY2:.*]] = tile.any_row %[[ASK]] : tensor<64x1xi1
// CHECK: %[[SCALED:.*]] = scf.if %[[ANY2]] -> (tensor<64x32xf32
// CHECK: arith.mulf %[[GROWN]]
// Rounded last, when the product in flight has read what it multiplies.
// CHECK: %[[PN:.*]] = arith.truncf
// CHECK-NEXT: scf.yield %[[NEXT]], %[[SCALED]], %[[I]], %[[PN]]
// CHECK: }
// CHECK: %[[LAST:.*]] = tile.load_view %[[VALUES]][%[[LOOP]]#2, %c0_i32]
// CHECK: %[[OUT:.*]] = tile.dot %[[LOOP]]#3, %[[LAST]], %[[LOOP]]#1
// CHECK: scf.yield %[[LOOP]]#0, %[[OUT]]
// CHECK: } else {
  func.func @rescaled(%q: tensor<64x32xbf16, #load>, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32},
                      %n: i32, %stride: i32 {tile.divisibility = 16 : i32}) attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32, #scores>
    %start = arith.constant dense<0.0> : tensor<64x32xf32, #sums>
    %total = arith.constant dense<0.0> : tensor<64x1xf32, #scores>
    %limit = arith.constant dense<8.0> : tensor<64xf32, #rows>
    %half = arith.constant dense<0.5> : tensor<64x1xf32, #scores>
    %k = tile.make_view %kp, extents [%n, %c32], strides [%stride, %c1] : !view, i32
    %v = tile.make_view %vp, extents [%n, %c32], strides [%stride, %c1] : !view, i32
    %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%t = %total, %o = %start) -> (tensor<64x1xf32, #scores>, tensor<64x32xf32, #sums>) : i32 {
      %x = tile.load_view %k[%i, %c0] : !view, i32 -> tensor<64x32xbf16, #load>
      %y = tile.transpose %x [1, 0] : tensor<64x32xbf16, #load> to tensor<32x64xbf16, #turned>
      %s = tile.dot %q, %y, %none : tensor<64x32xbf16, #load>, tensor<32x64xbf16, #turned> to tensor<64x64xf32, #scores>
      %peak = tile.reduce(%s) {axis = 1 : i32} : tensor<64x64xf32, #scores> to tensor<64xf32, #rows> {
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        tile.yield %m : f32
      }
      %large = arith.cmpf ogt, %peak, %limit : tensor<64xf32, #rows>
      %some = tile.any_row %large : tensor<64xi1, #rows>
      %t1, %o1 = scf.if %some -> (tensor<64x1xf32, #scores>, tensor<64x32xf32, #sums>) {
        %which = tile.expand_dims %large {axis = 1 : i32} : tensor<64xi1, #rows> to tensor<64x1xi1, #scores>
        %one = arith.constant dense<1.0> : tensor<64x1xf32, #scores>
        %by = arith.select %which, %half, %one : tensor<64x1xi1, #scores>, tensor<64x1xf32, #scores>
        %t2 = arith.mulf %t, %by : tensor<64x1xf32, #scores>
        %wide = tile.broadcast %by : tensor<64x1xf32, #scores> to tensor<64x32xf32, #sums>
        %o2 = arith.mulf %o, %wide : tensor<64x32xf32, #sums>
        scf.yield %t2, %o2 : tensor<64x1xf32, #scores>, tensor<64x32xf32, #sums>
      } else {
        scf.yield %t, %o : tensor<64x1xf32, #scores>, tensor<64x32xf32, #sums>
      }
      %e = math.exp2 %s : tensor<64x64xf32, #scores>
      %sum = tile.reduce(%e) {axis = 1 : i32} : tensor<64x64xf32, #scores> to tensor<64xf32, #rows> {
      ^bb0(%a: f32, %b: f32):
        %m = arith.addf %a, %b : f32
        tile.yield %m : f32
      }
      %column = tile.expand_dims %sum {axis = 1 : i32} : tensor<64xf32, #rows> to tensor<64x1xf32, #scores>
      %t3 = arith.addf %t1, %column : tensor<64x1xf32, #scores>
      %p = arith.truncf %e : tensor<64x64xf32, #scores> to tensor<64x64xbf16, #scores>
      %w = tile.load_view %v[%i, %c0] : !view, i32 -> tensor<64x32xbf16, #load>
      %o3 = tile.dot %p, %w, %o1 : tensor<64x64xbf16, #scores>, tensor<64x32xbf16, #load> to tensor<64x32xf32, #sums>
      scf.yield %t3, %o3 : tensor<64x1xf32, #scores>, tensor<64x32xf32, #sums>
    }
    tile.print "total" %r#0 : tensor<64x1xf32, #scores>
    tile.print "sums" %r#1 : tensor<64x32xf32, #sums>
    return
  }

// A right tile that threads make of what is loaded is made in its own round, and carried as the left one is: after the
// products have begun.
// CHECK-LABEL: @made
// CHECK: %[[Q0:.*]] = arith.truncf
// CHECK: %[[M0:.*]] = arith.addf %{{.*}} : tensor<64x32xbf16
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[SUMS:.*]] = %{{.*}}, %[[M:.*]] = %[[M0]], %[[P:.*]] = %[[Q0]])
// CHECK: tile.dot
// CHECK-NEXT: %[[GROWN:.*]] = tile.dot %[[P]], %[[M]], %[[SUMS]]
// CHECK-NEXT: %[[V:.*]] = tile.load_view %{{.*}}[%[[I]], %c0_i32]
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[V]], %[[V]]
// CHECK: %[[PN:.*]] = arith.truncf
// CHECK-NEXT: scf.yield %[[GROWN]], %[[NEXT]], %[[PN]]
// CHECK: }
// CHECK-NOT: tile.load_view
// CHECK: tile.dot %[[LOOP]]#2, %[[LOOP]]#1, %[[LOOP]]#0
  func.func @made(%q: tensor<64x32xbf16, #load>, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32},
                  %n: i32, %stride: i32 {tile.divisibility = 16 : i32}) attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32, #scores>
    %start = arith.constant dense<0.0> : tensor<64x32xf32, #sums>
    %k = tile.make_view %kp, extents [%n, %c32], strides [%stride, %c1] : !view, i32
    %v = tile.make_view %vp, extents [%n, %c32], strides [%stride, %c1] : !view, i32
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%o = %start) -> (tensor<64x32xf32, #sums>) : i32 {
      %x = tile.load_view %k[%i, %c0] : !view, i32 -> tensor<64x32xbf16, #load>
      %y = tile.transpose %x [1, 0] : tensor<64x32xbf16, #load> to tensor<32x64xbf16, #turned>
      %s = tile.dot %q, %y, %none : tensor<64x32xbf16, #load>, tensor<32x64xbf16, #turned> to tensor<64x64xf32, #scores>
      %e = math.exp2 %s : tensor<64x64xf32, #scores>
      %p = arith.truncf %e : tensor<64x64xf32, #scores> to tensor<64x64xbf16, #scores>
      %w = tile.load_view %v[%i, %c0] : !view, i32 -> tensor<64x32xbf16, #load>
      %z = arith.addf %w, %w : tensor<64x32xbf16, #load>
      %d = tile.dot %p, %z, %o : tensor<64x64xbf16, #scores>, tensor<64x32xbf16, #load> to tensor<64x32xf32, #sums>
      scf.yield %d : tensor<64x32xf32, #sums>
    }
    tile.print "sums" %r : tensor<64x32xf32, #sums>
    return
  }

// Nothing else in the round is multiplied: the product has nothing to go on next to.
// CHECK-LABEL: @alone
// CHECK: scf.for
// CHECK: tile.load_view
// CHECK: arith.truncf
// CHECK: tile.dot
// CHECK-NEXT: scf.yield
  func.func @alone(%e: tensor<64x64xf32, #scores>, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32,
                   %stride: i32 {tile.divisibility = 16 : i32}) attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %start = arith.constant dense<0.0> : tensor<64x32xf32, #sums>
    %v = tile.make_view %vp, extents [%n, %c32], strides [%stride, %c1] : !view, i32
    %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%o = %start, %x = %e) -> (tensor<64x32xf32, #sums>, tensor<64x64xf32, #scores>) : i32 {
      %w = tile.load_view %v[%i, %c0] : !view, i32 -> tensor<64x32xbf16, #load>
      %p = arith.truncf %x : tensor<64x64xf32, #scores> to tensor<64x64xbf16, #scores>
      %y = arith.addf %x, %x : tensor<64x64xf32, #scores>
      %d = tile.dot %p, %w, %o : tensor<64x64xbf16, #scores>, tensor<64x32xbf16, #load> to tensor<64x32xf32, #sums>
      scf.yield %d, %y : tensor<64x32xf32, #sums>, tensor<64x64xf32, #scores>
    }
    tile.print "sums" %r#0 : tensor<64x32xf32, #sums>
    return
  }

// The loop writes memory: what it loads a round later may be something else.
// CHECK-LABEL: @writes
// CHECK: scf.for
// CHECK: tile.dot
// CHECK: tile.store_view
// CHECK: tile.dot
// CHECK-NEXT: scf.yield
  func.func @writes(%q: tensor<64x32xbf16, #load>, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32},
                    %sp: !tile.ptr<bf16>, %n: i32, %stride: i32 {tile.divisibility = 16 : i32}) attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32, #scores>
    %start = arith.constant dense<0.0> : tensor<64x32xf32, #sums>
    %k = tile.make_view %kp, extents [%n, %c32], strides [%stride, %c1] : !view, i32
    %v = tile.make_view %vp, extents [%n, %c32], strides [%stride, %c1] : !view, i32
    %out = tile.make_view %sp, extents [%c64, %n], strides [%stride, %c1] : !tile.view<64x64xbf16>, i32
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%o = %start) -> (tensor<64x32xf32, #sums>) : i32 {
      %x = tile.load_view %k[%i, %c0] : !view, i32 -> tensor<64x32xbf16, #load>
      %y = tile.transpose %x [1, 0] : tensor<64x32xbf16, #load> to tensor<32x64xbf16, #turned>
      %s = tile.dot %q, %y, %none : tensor<64x32xbf16, #load>, tensor<32x64xbf16, #turned> to tensor<64x64xf32, #scores>
      %p = arith.truncf %s : tensor<64x64xf32, #scores> to tensor<64x64xbf16, #scores>
      tile.store_view %out[%c0, %i], %p : !tile.view<64x64xbf16>, i32, tensor<64x64xbf16, #scores>
      %w = tile.load_view %v[%i, %c0] : !view, i32 -> tensor<64x32xbf16, #load>
      %d = tile.dot %p, %w, %o : tensor<64x64xbf16, #scores>, tensor<64x32xbf16, #load> to tensor<64x32xf32, #sums>
      scf.yield %d : tensor<64x32xf32, #sums>
    }
    tile.print "sums" %r : tensor<64x32xf32, #sums>
    return
  }
}
