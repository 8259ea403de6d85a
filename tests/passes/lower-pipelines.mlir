// RUN: kiln-opt %s --kiln-lower-pipelines --canonicalize --cse --split-input-file | FileCheck %s

// A slot is acquired by its number alone; a wait waits for the oldest group and joins the block; what is copied in a
// conditional has its address there.
// CHECK-LABEL: @ring
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<[3] x 64x32xf16
// CHECK: %[[S0:.*]] = tile_gpu.local_subview %[[B]][%c0_i32]
// CHECK: tile_gpu.async_copy_view %{{.*}}, %[[S0]]
// CHECK: %[[T0:.*]] = tile_gpu.async_commit
// CHECK: %[[S1:.*]] = tile_gpu.local_subview %[[B]][%c1_i32]
// CHECK: tile_gpu.async_copy_view %{{.*}}, %[[S1]]
// CHECK: %[[T1:.*]] = tile_gpu.async_commit
// CHECK: %[[LAST:.*]]:4 = scf.for {{.*}} iter_args(%[[READ:.*]] = %c0_i32, %[[WRITE:.*]] = %c2_i32, %[[G0:.*]] = %[[T0]], %[[G1:.*]] = %[[T1]])
// CHECK: %[[NOW:.*]] = tile_gpu.local_subview %[[B]][%[[READ]]]
// CHECK-NEXT: tile_gpu.async_wait %[[G0]] ready %[[NOW]]
// CHECK-NEXT: tile_gpu.barrier
// CHECK: %[[READS:.*]] = arith.select %{{.*}}, %c0_i32
// CHECK: %[[WRITES:.*]] = arith.select %{{.*}}, %c0_i32
// CHECK: scf.if
// CHECK-NEXT: %[[THERE:.*]] = tile_gpu.local_subview %[[B]][%[[WRITE]]]
// CHECK-NEXT: tile_gpu.async_copy_view %{{.*}}, %[[THERE]]
// CHECK: %[[G2:.*]] = tile_gpu.async_commit
// CHECK: tile_gpu.local_load %[[NOW]]
// CHECK: scf.yield %[[READS]], %[[WRITES]], %[[G1]], %[[G2]]
// CHECK: tile_gpu.async_wait all
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @ring(%v: !tile.view<64x32xf16>, %n: i32, %k: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p3
  %a, %a0 = tile_gpu.acquire %p : !p3
  tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %b = tile_gpu.commit %a : !p3
  %c, %c2 = tile_gpu.acquire %b : !p3
  tile_gpu.async_copy_view %v[%c1, %c0], %c2 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %d = tile_gpu.commit %c : !p3
  %e = scf.for %i = %c0 to %n step %c1 iter_args(%s = %d) -> (!p3) : i32 {
    %w, %now = tile_gpu.wait %s : !p3
    %f, %there = tile_gpu.acquire %w : !p3
    scf.if %k {
      tile_gpu.async_copy_view %v[%i, %c0], %there by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %g = tile_gpu.commit %f : !p3
    %x = tile_gpu.local_load %now : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #row>
    tile.print "x" %x : tensor<64x32xf16, #row>
    %h = tile_gpu.release %g : !p3
    scf.yield %h : !p3
  }
  tile_gpu.drain %e : !p3
  return
}

// -----

// Two slots are waited for before the first is released; both sides of a conditional leave the same state; a pipeline
// may live inside of a loop that does not carry it.
// CHECK-LABEL: @held
// CHECK: scf.while
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<[2] x 64x32xf16
// CHECK: %[[X0:.*]] = tile_gpu.local_subview %[[B]][%c0_i32]
// CHECK: %[[T0:.*]] = tile_gpu.async_commit
// CHECK: %[[T1:.*]] = scf.if %{{.*}} -> (!tile_gpu.token) {
// CHECK: %[[Y:.*]] = tile_gpu.async_commit
// CHECK: scf.yield %[[Y]]
// CHECK: } else {
// CHECK: %[[Z:.*]] = tile_gpu.async_commit
// CHECK: scf.yield %[[Z]]
// CHECK: tile_gpu.async_wait %[[T0]] ready %[[X0]]
// CHECK: %[[X1:.*]] = tile_gpu.local_subview %[[B]][%c1_i32]
// CHECK: tile_gpu.async_wait %[[T1]] ready %[[X1]]
// CHECK: tile_gpu.local_load %[[X0]]
// CHECK: tile_gpu.local_load %[[X1]]
// CHECK: tile_gpu.async_wait all
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
func.func @held(%v: !tile.view<64x32xf16>, %k: i1) {
  %c0 = arith.constant 0 : i32
  scf.while : () -> () {
    scf.condition(%k)
  } do {
    %p = tile_gpu.pipeline : !p2
    %a, %a0 = tile_gpu.acquire %p : !p2
    tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %b = tile_gpu.commit %a : !p2
    %e = scf.if %k -> (!p2) {
      %c, %c2 = tile_gpu.acquire %b : !p2
      tile_gpu.async_copy_view %v[%c0, %c0], %c2 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
      %d = tile_gpu.commit %c : !p2
      scf.yield %d : !p2
    } else {
      %c, %c2 = tile_gpu.acquire %b : !p2
      %d = tile_gpu.commit %c : !p2
      scf.yield %d : !p2
    }
    %w, %x0 = tile_gpu.wait %e : !p2
    %u, %x1 = tile_gpu.wait %w : !p2
    %y0 = tile_gpu.local_load %x0 : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #row>
    %y1 = tile_gpu.local_load %x1 : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #row>
    tile.print "0" %y0 : tensor<64x32xf16, #row>
    tile.print "1" %y1 : tensor<64x32xf16, #row>
    %f = tile_gpu.release %u : !p2
    %g = tile_gpu.release %f : !p2
    tile_gpu.drain %g : !p2
    scf.yield
  }
  return
}
