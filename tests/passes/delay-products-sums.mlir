// RUN: kiln-opt %s --kiln-delay-products --canonicalize | FileCheck %s

#wide = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#sums = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=32>
#load = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[4,8], warpsPerCTA=[1,4], order=[0,1]>
#across = #tile_gpu.transposed<perm=[1,0], parent=mma<version=3, warpsPerCTA=[4,1], instrN=64>>
!view = !tile.view<64x32xbf16>

module attributes {tile_gpu.target = "sm_90a"} {

// The last product, of what warps exchange, is added to memory alone: it is made in the next round, after that one's
// first, of the carried tile, and added before that round's second product; once more after the loop.  The first round has none.
// CHECK-LABEL: @added
// CHECK-SAME: %[[K:[a-z0-9]*]]: tensor<64x32xbf16
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<64x64xbf16
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[I:.*]] = %c0_i32 to %[[N:.*]] step %c64_i32 iter_args(%[[O:.*]] = %{{.*}}, %[[X:.*]] = %[[ZERO]], %[[J:.*]] = %c0_i32)
// CHECK: tile.load_view
// CHECK: %[[S:.*]] = tile.dot %[[K]]
// CHECK-NEXT: %[[T:.*]] = tile.transpose %[[X]]
// CHECK-NEXT: %[[PART:.*]] = tile.dot %[[T]], %[[K]]
// CHECK: %[[IS:.*]] = arith.cmpi ne, %[[I]], %c0_i32
// CHECK: tile.splat %[[J]]
// CHECK: %[[FEW:.*]] = arith.cmpi slt
// CHECK: %[[BEFORE:.*]] = tile.splat %[[IS]] : i1
// CHECK: %[[MASK:.*]] = arith.andi %[[FEW]], %[[BEFORE]]
// CHECK: tile.atomic_rmw add relaxed gpu %{{.*}}, %[[PART]] mask %[[MASK]]
// CHECK: tile.dot
// CHECK-NOT: atomic
// CHECK: %[[Y:.*]] = arith.truncf
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[I]]
// CHECK: %[[T2:.*]] = tile.transpose %[[LOOP]]#1
// CHECK: %[[LAST:.*]] = tile.dot %[[T2]], %[[K]]
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[N]], %c0_i32
// CHECK: tile.splat %[[LOOP]]#2
// CHECK: tile.splat %[[ANY]] : i1
// CHECK: tile.atomic_rmw add relaxed gpu %{{.*}}, %[[LAST]] mask
  func.func @added(%k: tensor<64x32xbf16, #load>, %qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %to: tensor<64x32x!tile.ptr<f32>, #sums>,
                   %rows: tensor<64x32xi32, #sums>, %n: i32, %stride: i32 {tile.divisibility = 16 : i32}) attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32, #wide>
    %start = arith.constant dense<0.0> : tensor<64x32xf32, #sums>
    %q = tile.make_view %qp, extents [%n, %c32], strides [%stride, %c1] : !view, i32
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%o = %start) -> (tensor<64x32xf32, #sums>) : i32 {
      %x = tile.load_view %q[%i, %c0] : !view, i32 -> tensor<64x32xbf16, #load>
      %y = tile.transpose %x [1, 0] : tensor<64x32xbf16, #load> to tensor<32x64xbf16, #turned>
      %s = tile.dot %k, %y, %none : tensor<64x32xbf16, #load>, tensor<32x64xbf16, #turned> to tensor<64x64xf32, #wide>
      %p = arith.truncf %s : tensor<64x64xf32, #wide> to tensor<64x64xbf16, #wide>
      %d = tile.dot %p, %x, %o : tensor<64x64xbf16, #wide>, tensor<64x32xbf16, #load> to tensor<64x32xf32, #sums>
      %f = arith.mulf %s, %s : tensor<64x64xf32, #wide>
      %g = arith.truncf %f : tensor<64x64xf32, #wide> to tensor<64x64xbf16, #wide>
      %t = tile.transpose %g [1, 0] : tensor<64x64xbf16, #wide> to tensor<64x64xbf16, #across>
      %part = tile.dot %t, %k, %start : tensor<64x64xbf16, #across>, tensor<64x32xbf16, #load> to tensor<64x32xf32, #sums>
      %at = tile.splat %i : i32 to tensor<64x32xi32, #sums>
      %m = arith.cmpi slt, %at, %rows : tensor<64x32xi32, #sums>
      %a = tile.addptr %to, %at : tensor<64x32x!tile.ptr<f32>, #sums>, tensor<64x32xi32, #sums>
      %old = tile.atomic_rmw add relaxed gpu %a, %part mask %m : tensor<64x32x!tile.ptr<f32>, #sums>
      scf.yield %d : tensor<64x32xf32, #sums>
    }
    tile.print "sums" %r : tensor<64x32xf32, #sums>
    return
  }

// After other programs: this round's sums are waited for when the product has begun, and those of the round before the
// last are counted.  After the loop the last two are.
// CHECK-LABEL: @ordered
// CHECK-SAME: %[[COUNTS:[a-z0-9]*]]: !tile.ptr<i32>
// CHECK: %[[LOOP:.*]]:4 = scf.for %[[I:.*]] = %c0_i32 to %{{.*}} iter_args(%{{.*}}, %{{.*}}, %[[J:.*]] = %c0_i32, %[[H:.*]] = %c0_i32)
// CHECK: tile.transpose
// CHECK: tile.transpose
// CHECK-NEXT: tile.dot
// CHECK-NEXT: %[[IS:.*]] = arith.cmpi ne, %[[J]], %c0_i32
// CHECK-NEXT: %[[NEXT:.*]] = tile.addptr %[[COUNTS]], %[[I]]
// CHECK-NEXT: %[[DONE:.*]] = tile.addptr %[[COUNTS]], %[[H]]
// CHECK: tile_gpu.count %[[DONE]] if %[[IS]] await %c32_i32 of %[[NEXT]] for %{{.*}} :
// CHECK: tile.atomic_rmw add relaxed gpu %{{[0-9a-z_]*}}, %{{[0-9a-z_]*}} mask %{{[0-9a-z_]*}} :
// CHECK-NOT: tile_gpu.count
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[I]], %[[J]]
// CHECK: %[[TWO:.*]] = arith.cmpi ne, %[[LOOP]]#2, %c0_i32
// CHECK-NEXT: %[[BUTONE:.*]] = tile.addptr %[[COUNTS]], %[[LOOP]]#3
// CHECK: tile_gpu.count %[[BUTONE]] if %[[TWO]] for
// CHECK: tile.atomic_rmw add
// CHECK: %[[LAST:.*]] = tile.addptr %[[COUNTS]], %[[LOOP]]#2
// CHECK: tile_gpu.count %[[LAST]] if %{{.*}} for
  func.func @ordered(%k: tensor<64x32xbf16, #load>, %qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %to: tensor<64x32x!tile.ptr<f32>, #sums>,
                   %rows: tensor<64x32xi32, #sums>, %counts: !tile.ptr<i32>, %n: i32, %stride: i32 {tile.divisibility = 16 : i32}) attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32, #wide>
    %start = arith.constant dense<0.0> : tensor<64x32xf32, #sums>
    %q = tile.make_view %qp, extents [%n, %c32], strides [%stride, %c1] : !view, i32
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%o = %start) -> (tensor<64x32xf32, #sums>) : i32 {
      %x = tile.load_view %q[%i, %c0] : !view, i32 -> tensor<64x32xbf16, #load>
      %y = tile.transpose %x [1, 0] : tensor<64x32xbf16, #load> to tensor<32x64xbf16, #turned>
      %s = tile.dot %k, %y, %none : tensor<64x32xbf16, #load>, tensor<32x64xbf16, #turned> to tensor<64x64xf32, #wide>
      %p = arith.truncf %s : tensor<64x64xf32, #wide> to tensor<64x64xbf16, #wide>
      %d = tile.dot %p, %x, %o : tensor<64x64xbf16, #wide>, tensor<64x32xbf16, #load> to tensor<64x32xf32, #sums>
      %f = arith.mulf %s, %s : tensor<64x64xf32, #wide>
      %g = arith.truncf %f : tensor<64x64xf32, #wide> to tensor<64x64xbf16, #wide>
      %t = tile.transpose %g [1, 0] : tensor<64x64xbf16, #wide> to tensor<64x64xbf16, #across>
      %part = tile.dot %t, %k, %start : tensor<64x64xbf16, #across>, tensor<64x32xbf16, #load> to tensor<64x32xf32, #sums>
      %at = tile.splat %i : i32 to tensor<64x32xi32, #sums>
      %m = arith.cmpi slt, %at, %rows : tensor<64x32xi32, #sums>
      %a = tile.addptr %to, %at : tensor<64x32x!tile.ptr<f32>, #sums>, tensor<64x32xi32, #sums>
      %count = tile.addptr %counts, %i : !tile.ptr<i32>, i32
      %old = tile.atomic_rmw add relaxed gpu %a, %part mask %m after %c32 of %count : tensor<64x32x!tile.ptr<f32>, #sums>
      scf.yield %d : tensor<64x32xf32, #sums>
    }
    tile.print "sums" %r : tensor<64x32xf32, #sums>
    return
  }

// What the loop loads may be what it adds to: the product stays.
// CHECK-LABEL: @same
// CHECK: scf.for
// CHECK: tile.load_view
// CHECK: tile.dot
// CHECK: tile.dot
// CHECK: tile.dot
// CHECK: tile.atomic_rmw
// CHECK-NEXT: scf.yield
// CHECK-NOT: tile.dot
  func.func @same(%k: tensor<64x32xbf16, #load>, %qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %sp: !tile.ptr<f32>,
                  %n: i32, %stride: i32 {tile.divisibility = 16 : i32}) attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32, #wide>
    %start = arith.constant dense<0.0> : tensor<64x32xf32, #sums>
    %q = tile.make_view %qp, extents [%n, %c32], strides [%stride, %c1] : !view, i32
    %to = tile.splat %sp : !tile.ptr<f32> to tensor<64x32x!tile.ptr<f32>, #sums>
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%o = %start) -> (tensor<64x32xf32, #sums>) : i32 {
      %x = tile.load_view %q[%i, %c0] : !view, i32 -> tensor<64x32xbf16, #load>
      %b = tile.load %sp : !tile.ptr<f32>
      %y = tile.transpose %x [1, 0] : tensor<64x32xbf16, #load> to tensor<32x64xbf16, #turned>
      %s = tile.dot %k, %y, %none : tensor<64x32xbf16, #load>, tensor<32x64xbf16, #turned> to tensor<64x64xf32, #wide>
      %c = tile.splat %b : f32 to tensor<64x64xf32, #wide>
      %e = arith.addf %s, %c : tensor<64x64xf32, #wide>
      %p = arith.truncf %e : tensor<64x64xf32, #wide> to tensor<64x64xbf16, #wide>
      %d = tile.dot %p, %x, %o : tensor<64x64xbf16, #wide>, tensor<64x32xbf16, #load> to tensor<64x32xf32, #sums>
      %t = tile.transpose %p [1, 0] : tensor<64x64xbf16, #wide> to tensor<64x64xbf16, #across>
      %part = tile.dot %t, %k, %start : tensor<64x64xbf16, #across>, tensor<64x32xbf16, #load> to tensor<64x32xf32, #sums>
      %old = tile.atomic_rmw add relaxed gpu %to, %part : tensor<64x32x!tile.ptr<f32>, #sums>
      scf.yield %d : tensor<64x32xf32, #sums>
    }
    tile.print "sums" %r : tensor<64x32xf32, #sums>
    return
  }
}
