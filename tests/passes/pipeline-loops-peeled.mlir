// RUN: kiln-opt %s --kiln-pipeline-loops --split-input-file | FileCheck %s

// The first keys' load, before the loop, and the last values', after it, flow through the pipelines of the loop's own.  The
// first is there first, whatever the trip count, and gives its slot back when its scores are looked at; the round that
// the loop does not have copies the last.  Pipelines end where the block does.
// CHECK-LABEL: @rotated
// CHECK-SAME: %[[N:[a-z0-9]*]]: i32, %{{[a-z0-9]*}}: i32 {tile.divisibility = 16 : i32}, %[[MK:[a-z0-9]*]]: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 1,
// CHECK-SAME: %[[MV:[a-z0-9]*]]: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 2,
// CHECK: tile.load_view
// CHECK-NOT: tile.load_view
// CHECK: %[[K:.*]] = tile_gpu.pipeline bulk : !tile_gpu.pipeline<2, !tile_gpu.buffer<"k":
// CHECK-NEXT: %[[V:.*]] = tile_gpu.pipeline bulk : !tile_gpu.pipeline<2, !tile_gpu.buffer<"v":
// CHECK-NEXT: %[[KA0:.*]], %[[KB0:.*]] = tile_gpu.acquire %[[K]]
// CHECK-NEXT: tile_gpu.tensor_copy %[[MK]][%c0_i32, %c0_i32] to %[[KB0]]
// CHECK-NEXT: %[[K0:.*]] = tile_gpu.commit %[[KA0]]
// CHECK-NEXT: %[[ROUND:.*]] = arith.cmpi slt, %c64_i32, %[[N]]
// CHECK-NEXT: %[[KA1:.*]], %[[KB1:.*]] = tile_gpu.acquire %[[K0]]
// CHECK-NEXT: scf.if %[[ROUND]]
// CHECK-NEXT: tile_gpu.tensor_copy %[[MK]][%c0_i32, %c64_i32] to %[[KB1]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[K1:.*]] = tile_gpu.commit %[[KA1]]
// CHECK-NEXT: %[[VA0:.*]], %[[VB0:.*]] = tile_gpu.acquire %[[V]]
// CHECK-NEXT: tile_gpu.tensor_copy %[[MV]][%c0_i32, %c0_i32] to %[[VB0]]
// CHECK-NEXT: %[[V0:.*]] = tile_gpu.commit %[[VA0]]
// CHECK-NEXT: %[[KW0:.*]], %[[KF:.*]] = tile_gpu.wait %[[K1]]
// CHECK-NEXT: %[[FIRST:.*]] = tile_gpu.local_load %[[KF]]
// CHECK-NEXT: tile.transpose %[[FIRST]]
// CHECK-NEXT: %[[S0:.*]] = tile.dot
// CHECK-NEXT: math.exp2 %[[S0]]
// CHECK-NEXT: %[[K2:.*]] = tile_gpu.release %[[KW0]]
// CHECK: %[[LOOP:.*]]:6 = scf.for %[[I:.*]] = %c64_i32 to %[[N]] step %c64_i32 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %c0_i32, %{{.*}} = %{{.*}}, %[[KS:.*]] = %[[K2]], %[[VS:.*]] = %[[V0]], %[[J:.*]] = %c64_i32)
// CHECK: %[[KW:.*]], %{{.*}} = tile_gpu.wait %[[KS]]
// CHECK-NEXT: %[[VW:.*]], %{{.*}} = tile_gpu.wait %[[VS]]
// CHECK: %[[LATER:.*]] = arith.addi %[[I]], %c64_i32
// CHECK: %[[KA:.*]], %[[KB:.*]] = tile_gpu.acquire %[[KW]]
// CHECK-NEXT: scf.if
// CHECK-NEXT: tile_gpu.tensor_copy %[[MK]][%c0_i32, %[[LATER]]] to %[[KB]]
// CHECK: %[[KC:.*]] = tile_gpu.commit %[[KA]]
// CHECK: %[[KR:.*]] = tile_gpu.release %[[KC]]
// CHECK-NEXT: %[[VA:.*]], %[[VB:.*]] = tile_gpu.acquire %[[VW]]
// CHECK-NEXT: tile_gpu.tensor_copy %[[MV]][%c0_i32, %[[J]]] to %[[VB]]
// CHECK-NEXT: %[[VC:.*]] = tile_gpu.commit %[[VA]]
// CHECK: %[[VR:.*]] = tile_gpu.release %[[VC]]
// CHECK: scf.yield %{{.*}}, %[[I]], %{{.*}}, %[[KR]], %[[VR]], %[[LATER]]
// CHECK: }
// CHECK-NEXT: tile_gpu.drain %[[LOOP]]#3
// CHECK-NEXT: %[[VLAST:.*]], %[[VL:.*]] = tile_gpu.wait %[[LOOP]]#4
// CHECK-NEXT: %[[LAST:.*]] = tile_gpu.local_load %[[VL]]
// CHECK-NEXT: %[[O:.*]] = tile.dot %[[LOOP]]#2, %[[LAST]], %[[LOOP]]#0
// CHECK-NEXT: tile.print "sum" %[[O]]
// CHECK-NEXT: %[[VEND:.*]] = tile_gpu.release %[[VLAST]]
// CHECK-NEXT: tile_gpu.drain %[[VEND]]
// CHECK-NEXT: }
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @rotated(%qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "k"}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "v"},
                     %op: !tile.ptr<bf16>, %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %qv = tile.make_view %qp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %qv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %kv = tile.make_view %kp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %vv = tile.make_view %vp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %ov = tile.make_view %op, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %k0 = tile.load_view %kv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %t0 = tile.transpose %k0 [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
      %s0 = tile.dot %q, %t0, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
      %e0 = math.exp2 %s0 : tensor<64x64xf32, #mma>
      %p0 = arith.truncf %e0 : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
      %r:3 = scf.for %i = %c64 to %n step %c64 iter_args(%acc = %zero, %j = %c0, %p = %p0) -> (tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>) : i32 {
        %k = tile.load_view %kv[%i, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %t = tile.transpose %k [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
        %x = tile.dot %q, %t, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
        %v = tile.load_view %vv[%j, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %d = tile.dot %p, %v, %acc : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
        %e = math.exp2 %x : tensor<64x64xf32, #mma>
        %w = arith.truncf %e : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #mma>
        scf.yield %g, %i, %w : tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>
      }
      %last = tile.load_view %vv[%r#1, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %o = tile.dot %r#2, %last, %r#0 : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      tile.print "sum" %o : tensor<64x64xf32, #mma>
    }
    return
  }
}

// -----

// Three slots: two rounds ahead, the values' copy asks whether the round before it exists.
// CHECK-LABEL: @two_ahead
// CHECK-SAME: %[[N:[a-z0-9]*]]: i32, %{{[a-z0-9]*}}: i32 {tile.divisibility = 16 : i32}, %[[MK:[a-z0-9]*]]: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 1,
// CHECK-SAME: %[[MV:[a-z0-9]*]]: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 2,
// CHECK: %[[ROUND0:.*]] = arith.cmpi slt, %c64_i32, %[[N]]
// CHECK: %[[ROUND1:.*]] = arith.andi %[[ROUND0]]
// CHECK: tile_gpu.acquire
// CHECK-NEXT: scf.if %[[ROUND0]]
// CHECK-NEXT: tile_gpu.tensor_copy %[[MK]]
// CHECK: tile_gpu.acquire
// CHECK-NEXT: tile_gpu.tensor_copy %[[MV]]
// CHECK: tile_gpu.acquire
// CHECK-NEXT: scf.if %[[ROUND1]]
// CHECK-NEXT: tile_gpu.tensor_copy %[[MK]]
// CHECK: tile_gpu.acquire
// CHECK-NEXT: scf.if %[[ROUND0]]
// CHECK-NEXT: tile_gpu.tensor_copy %[[MV]]
// CHECK: scf.for %[[I:.*]] = %c64_i32
// CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %[[I]]
// CHECK-NEXT: %[[TWO:.*]] = arith.constant 128
// CHECK-NEXT: %[[THIS:.*]] = arith.cmpi ugt, %[[LEFT]], %[[TWO]]
// CHECK: %[[LEFT1:.*]] = arith.subi %[[N]], %[[I]]
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 64
// CHECK-NEXT: %[[BEFORE:.*]] = arith.cmpi ugt, %[[LEFT1]], %[[ONE]]
// CHECK: scf.if %[[THIS]]
// CHECK: tile_gpu.tensor_copy %[[MK]]
// CHECK: scf.if %[[BEFORE]]
// CHECK: tile_gpu.tensor_copy %[[MV]]
// CHECK: scf.yield
// CHECK: }
// CHECK: tile_gpu.wait
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @two_ahead(%qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "k"}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "v"},
                     %op: !tile.ptr<bf16>, %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %qv = tile.make_view %qp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %qv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %kv = tile.make_view %kp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %vv = tile.make_view %vp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %ov = tile.make_view %op, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %k0 = tile.load_view %kv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %t0 = tile.transpose %k0 [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
      %s0 = tile.dot %q, %t0, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
      %e0 = math.exp2 %s0 : tensor<64x64xf32, #mma>
      %p0 = arith.truncf %e0 : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
      %r:3 = scf.for %i = %c64 to %n step %c64 iter_args(%acc = %zero, %j = %c0, %p = %p0) -> (tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>) : i32 {
        %k = tile.load_view %kv[%i, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %t = tile.transpose %k [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
        %x = tile.dot %q, %t, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
        %v = tile.load_view %vv[%j, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %d = tile.dot %p, %v, %acc : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
        %e = math.exp2 %x : tensor<64x64xf32, #mma>
        %w = arith.truncf %e : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #mma>
        scf.yield %g, %i, %w : tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>
      }
      %last = tile.load_view %vv[%r#1, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %o = tile.dot %r#2, %last, %r#0 : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      tile.print "sum" %o : tensor<64x64xf32, #mma>
    }
    return
  }
}

// -----

// Memory is written between the load and the loop: the pipelines begin after that.  The last load is taken all the same.
// CHECK-LABEL: @written_before
// CHECK: scf.if
// CHECK: tile.load_view
// CHECK: tile.store_view
// CHECK: tile_gpu.pipeline bulk
// CHECK-NOT: tile_gpu.wait
// CHECK: scf.for
// CHECK: scf.yield
// CHECK: }
// CHECK-NEXT: tile_gpu.drain
// CHECK-NEXT: tile_gpu.wait
// CHECK-NOT: tile.load_view
// CHECK: return
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @written_before(%qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "k"}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "v"},
                     %op: !tile.ptr<bf16>, %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %qv = tile.make_view %qp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %qv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %kv = tile.make_view %kp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %vv = tile.make_view %vp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %ov = tile.make_view %op, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %k0 = tile.load_view %kv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %t0 = tile.transpose %k0 [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
      %s0 = tile.dot %q, %t0, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
      %e0 = math.exp2 %s0 : tensor<64x64xf32, #mma>
      %p0 = arith.truncf %e0 : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
      tile.store_view %ov[%c0, %c0], %p0 : !view, i32, tensor<64x64xbf16, #mma>
      %r:3 = scf.for %i = %c64 to %n step %c64 iter_args(%acc = %zero, %j = %c0, %p = %p0) -> (tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>) : i32 {
        %k = tile.load_view %kv[%i, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %t = tile.transpose %k [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
        %x = tile.dot %q, %t, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
        %v = tile.load_view %vv[%j, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %d = tile.dot %p, %v, %acc : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
        %e = math.exp2 %x : tensor<64x64xf32, #mma>
        %w = arith.truncf %e : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #mma>
        scf.yield %g, %i, %w : tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>
      }
      %last = tile.load_view %vv[%r#1, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %o = tile.dot %r#2, %last, %r#0 : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      tile.print "sum" %o : tensor<64x64xf32, #mma>
    }
    return
  }
}

// -----

// After the loop alike: the pipelines end there.  The first load is taken all the same.
// CHECK-LABEL: @written_after
// CHECK: tile_gpu.pipeline bulk
// CHECK: tile_gpu.wait
// CHECK: scf.for
// CHECK: scf.yield
// CHECK: }
// CHECK-NEXT: tile_gpu.drain
// CHECK-NEXT: tile_gpu.drain
// CHECK-NEXT: tile.store_view
// CHECK-NEXT: tile.load_view
// CHECK-NOT: tile_gpu.wait
// CHECK: return
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @written_after(%qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "k"}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "v"},
                     %op: !tile.ptr<bf16>, %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %qv = tile.make_view %qp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %qv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %kv = tile.make_view %kp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %vv = tile.make_view %vp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %ov = tile.make_view %op, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %k0 = tile.load_view %kv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %t0 = tile.transpose %k0 [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
      %s0 = tile.dot %q, %t0, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
      %e0 = math.exp2 %s0 : tensor<64x64xf32, #mma>
      %p0 = arith.truncf %e0 : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
      %r:3 = scf.for %i = %c64 to %n step %c64 iter_args(%acc = %zero, %j = %c0, %p = %p0) -> (tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>) : i32 {
        %k = tile.load_view %kv[%i, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %t = tile.transpose %k [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
        %x = tile.dot %q, %t, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
        %v = tile.load_view %vv[%j, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %d = tile.dot %p, %v, %acc : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
        %e = math.exp2 %x : tensor<64x64xf32, #mma>
        %w = arith.truncf %e : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #mma>
        scf.yield %g, %i, %w : tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>
      }
      tile.store_view %ov[%c0, %c0], %r#2 : !view, i32, tensor<64x64xbf16, #mma>
      %last = tile.load_view %vv[%r#1, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %o = tile.dot %r#2, %last, %r#0 : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      tile.print "sum" %o : tensor<64x64xf32, #mma>
    }
    return
  }
}

// -----

// The load after the loop is not of the tile that another round would load.
// CHECK-LABEL: @elsewhere
// CHECK: scf.for
// CHECK: scf.yield
// CHECK: }
// CHECK-NEXT: tile_gpu.drain
// CHECK-NEXT: tile_gpu.drain
// CHECK-NEXT: tile.load_view
// CHECK-NOT: tile_gpu.wait
// CHECK: return
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @elsewhere(%qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "k"}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "v"},
                     %op: !tile.ptr<bf16>, %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %qv = tile.make_view %qp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %qv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %kv = tile.make_view %kp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %vv = tile.make_view %vp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %ov = tile.make_view %op, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %k0 = tile.load_view %kv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %t0 = tile.transpose %k0 [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
      %s0 = tile.dot %q, %t0, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
      %e0 = math.exp2 %s0 : tensor<64x64xf32, #mma>
      %p0 = arith.truncf %e0 : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
      %r:3 = scf.for %i = %c64 to %n step %c64 iter_args(%acc = %zero, %j = %c0, %p = %p0) -> (tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>) : i32 {
        %k = tile.load_view %kv[%i, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %t = tile.transpose %k [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
        %x = tile.dot %q, %t, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
        %v = tile.load_view %vv[%j, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %d = tile.dot %p, %v, %acc : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
        %e = math.exp2 %x : tensor<64x64xf32, #mma>
        %w = arith.truncf %e : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #mma>
        scf.yield %g, %i, %w : tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>
      }
      %last = tile.load_view %vv[%c64, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %o = tile.dot %r#2, %last, %r#0 : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      tile.print "sum" %o : tensor<64x64xf32, #mma>
    }
    return
  }
}

// -----

// The load before the loop is of another view than the loop's.
// CHECK-LABEL: @another_view
// CHECK: scf.if
// CHECK: tile.load_view
// CHECK: tile.dot
// CHECK: tile_gpu.pipeline bulk
// CHECK-NOT: tile_gpu.wait
// CHECK: scf.for
// CHECK: scf.yield
// CHECK: }
// CHECK-NEXT: tile_gpu.drain
// CHECK-NEXT: tile_gpu.wait
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @another_view(%qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "k"}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "v"},
                     %op: !tile.ptr<bf16>, %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %qv = tile.make_view %qp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %qv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %kv = tile.make_view %kp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %vv = tile.make_view %vp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %ov = tile.make_view %op, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %k0 = tile.load_view %ov[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %t0 = tile.transpose %k0 [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
      %s0 = tile.dot %q, %t0, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
      %e0 = math.exp2 %s0 : tensor<64x64xf32, #mma>
      %p0 = arith.truncf %e0 : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
      %r:3 = scf.for %i = %c64 to %n step %c64 iter_args(%acc = %zero, %j = %c0, %p = %p0) -> (tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>) : i32 {
        %k = tile.load_view %kv[%i, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %t = tile.transpose %k [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
        %x = tile.dot %q, %t, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
        %v = tile.load_view %vv[%j, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %d = tile.dot %p, %v, %acc : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
        %e = math.exp2 %x : tensor<64x64xf32, #mma>
        %w = arith.truncf %e : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #mma>
        scf.yield %g, %i, %w : tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>
      }
      %last = tile.load_view %vv[%r#1, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %o = tile.dot %r#2, %last, %r#0 : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      tile.print "sum" %o : tensor<64x64xf32, #mma>
    }
    return
  }
}

// -----

// Keys and values of one tensor: the load before the loop is one pipeline's only.
// CHECK-LABEL: @same
// CHECK: tile_gpu.pipeline bulk
// CHECK: tile_gpu.pipeline bulk
// CHECK: scf.for
// CHECK: tile_gpu.drain
// CHECK: tile_gpu.drain
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @same(%qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "k"}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "v"},
                     %op: !tile.ptr<bf16>, %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %qv = tile.make_view %qp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %qv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %kv = tile.make_view %kp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %vv = tile.make_view %vp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %ov = tile.make_view %op, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %k0 = tile.load_view %kv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %t0 = tile.transpose %k0 [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
      %s0 = tile.dot %q, %t0, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
      %e0 = math.exp2 %s0 : tensor<64x64xf32, #mma>
      %p0 = arith.truncf %e0 : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
      %r:3 = scf.for %i = %c64 to %n step %c64 iter_args(%acc = %zero, %j = %c0, %p = %p0) -> (tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>) : i32 {
        %k = tile.load_view %kv[%i, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %t = tile.transpose %k [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
        %x = tile.dot %q, %t, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
        %v = tile.load_view %kv[%j, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %d = tile.dot %p, %v, %acc : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
        %e = math.exp2 %x : tensor<64x64xf32, #mma>
        %w = arith.truncf %e : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #mma>
        scf.yield %g, %i, %w : tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>
      }
      %last = tile.load_view %kv[%r#1, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %o = tile.dot %r#2, %last, %r#0 : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      tile.print "sum" %o : tensor<64x64xf32, #mma>
    }
    return
  }
}

// -----

// Loads of two tensors before the loop, the second one's coordinate computed after the first: moved before both.
// CHECK-LABEL: func.func
// CHECK: arith.muli
// CHECK: tile_gpu.pipeline bulk
// CHECK: scf.for
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @rotated(%qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "k"}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "v"},
                     %op: !tile.ptr<bf16>, %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %qv = tile.make_view %qp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %qv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %kv = tile.make_view %kp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %vv = tile.make_view %vp, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %ov = tile.make_view %op, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %k0 = tile.load_view %kv[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %t0 = tile.transpose %k0 [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
      %s0 = tile.dot %q, %t0, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
      %e0 = math.exp2 %s0 : tensor<64x64xf32, #mma>
      %p0 = arith.truncf %e0 : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
      %x0 = arith.muli %n, %n : i32
      %v0 = tile.load_view %vv[%x0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %o0 = tile.dot %p0, %v0, %zero : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      %r:3 = scf.for %i = %c64 to %n step %c64 iter_args(%acc = %o0, %j = %c0, %p = %p0) -> (tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>) : i32 {
        %k = tile.load_view %kv[%i, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %t = tile.transpose %k [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
        %x = tile.dot %q, %t, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
        %v = tile.load_view %vv[%j, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
        %d = tile.dot %p, %v, %acc : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
        %e = math.exp2 %x : tensor<64x64xf32, #mma>
        %w = arith.truncf %e : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #mma>
        scf.yield %g, %i, %w : tensor<64x64xf32, #mma>, i32, tensor<64x64xbf16, #mma>
      }
      %last = tile.load_view %vv[%r#1, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %o = tile.dot %r#2, %last, %r#0 : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      tile.print "sum" %o : tensor<64x64xf32, #mma>
    }
    return
  }
}
