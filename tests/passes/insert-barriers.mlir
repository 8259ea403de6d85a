// RUN: kiln-opt %s --kiln-expand-shared --kiln-allocate-shared --kiln-insert-barriers --kiln-verify-barriers | FileCheck %s

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#one = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[1], order=[0]>
#back = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[1], order=[0]>

module attributes {tile_gpu.target = "sm_80"} {

// CHECK-LABEL: @convert
// CHECK: exchange_store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: exchange_load
// CHECK-NOT: barrier
// CHECK: return
func.func @convert(%x: tensor<64x32xf32, #row>) -> tensor<64x32xf32, #col> {
  %y = tile_gpu.convert_layout %x : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>
  return %y : tensor<64x32xf32, #col>
}

// Each thread reads what it wrote: no barrier.
// CHECK-LABEL: @own
// CHECK-NOT: barrier
// CHECK: return
func.func @own(%x: tensor<64x32xf32, #row>) -> tensor<64x32xf32, #row> {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #row>
  return %l : tensor<64x32xf32, #row>
}

// One warp: a barrier of the warp is enough.
// CHECK-LABEL: @lanes
// CHECK: local_store
// CHECK-NEXT: tile_gpu.warp_barrier
// CHECK-NEXT: local_load
// CHECK-NOT: tile_gpu.barrier
// CHECK: return
func.func @lanes(%x: tensor<512xf32, #one>) -> tensor<512xf32, #back> attributes {tile.num_warps = 1 : i32} {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<512xf32, #sh>
  tile_gpu.local_store %x, %a : tensor<512xf32, #one>, !tile_gpu.buffer<512xf32, #sh>
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<512xf32, #sh> to tensor<512xf32, #back>
  return %l : tensor<512xf32, #back>
}

// Written before a loop, read in it: one barrier, before the loop.
// CHECK-LABEL: @before_loop
// CHECK: local_store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: scf.for
// CHECK-NOT: barrier
// CHECK: return
func.func @before_loop(%x: tensor<64x32xf32, #row>, %z: tensor<64x32xf32, #col>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> tensor<64x32xf32, #col> : i32 {
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    %t = arith.addf %s, %l : tensor<64x32xf32, #col>
    scf.yield %t : tensor<64x32xf32, #col>
  }
  return
}

// A loop's next round writes what this one reads: the back edge needs a barrier too.
// CHECK-LABEL: @back_edge
// CHECK: scf.for
// CHECK: tile_gpu.barrier
// CHECK-NEXT: exchange_store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: exchange_load
// CHECK-NOT: barrier
// CHECK: return
func.func @back_edge(%x: tensor<64x32xf32, #row>, %z: tensor<64x32xf32, #col>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> tensor<64x32xf32, #col> : i32 {
    %l = tile_gpu.convert_layout %x : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>
    %t = arith.addf %s, %l : tensor<64x32xf32, #col>
    scf.yield %t : tensor<64x32xf32, #col>
  }
  return
}

// Two reductions in a loop: their scratches lie apart, and two barriers a round are enough.
// CHECK-LABEL: @two_reductions
// CHECK: scf.for
// CHECK-COUNT-2: tile_gpu.barrier
// CHECK-NOT: tile_gpu.barrier
// CHECK: return
func.func @two_reductions(%x: tensor<512xf32, #vec>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> tensor<512xf32, #vec> : i32 {
    %m = tile.reduce(%v) {axis = 0 : i32} : tensor<512xf32, #vec> to f32 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maximumf %a, %b : f32
      tile.yield %c : f32
    }
    %mt = tile.splat %m : f32 to tensor<512xf32, #vec>
    %d = arith.subf %v, %mt : tensor<512xf32, #vec>
    %s = tile.reduce(%d) {axis = 0 : i32} : tensor<512xf32, #vec> to f32 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %st = tile.splat %s : f32 to tensor<512xf32, #vec>
    %q = arith.divf %d, %st : tensor<512xf32, #vec>
    scf.yield %q : tensor<512xf32, #vec>
  }
  return
}

// Only the arm that reads waits.
// CHECK-LABEL: @arm
// CHECK: local_store
// CHECK-NEXT: scf.if
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: local_load
// CHECK-NOT: barrier
// CHECK: return
func.func @arm(%x: tensor<64x32xf32, #row>, %z: tensor<64x32xf32, #col>, %p: i1) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  %r = scf.if %p -> tensor<64x32xf32, #col> {
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    scf.yield %l : tensor<64x32xf32, #col>
  } else {
    scf.yield %z : tensor<64x32xf32, #col>
  }
  return
}

// Global memory: one argument's elements, stored by some threads and loaded by others.
// CHECK-LABEL: @global
// CHECK: tile.store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile.load
// CHECK-NOT: barrier
// CHECK: return
func.func @global(%x: !tile.ptr<f32>, %v: tensor<512xf32, #vec>, %i: tensor<512xi32, #vec>) {
  %s = tile.splat %x : !tile.ptr<f32> to tensor<512x!tile.ptr<f32>, #vec>
  %q = tile.addptr %s, %i : tensor<512x!tile.ptr<f32>, #vec>, tensor<512xi32, #vec>
  tile.store %s, %v : tensor<512x!tile.ptr<f32>, #vec>
  %l = tile.load %q : tensor<512x!tile.ptr<f32>, #vec>
  return
}

// The same elements by the same threads, and elements of another argument: no barrier.
// CHECK-LABEL: @global_own
// CHECK-NOT: barrier
// CHECK: return
func.func @global_own(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %i: tensor<512xi32, #vec>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = tile.splat %x : !tile.ptr<f32> to tensor<512x!tile.ptr<f32>, #vec>
  %p = tile.addptr %s, %i : tensor<512x!tile.ptr<f32>, #vec>, tensor<512xi32, #vec>
  %t = tile.splat %y : !tile.ptr<f32> to tensor<512x!tile.ptr<f32>, #vec>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %l = tile.load %p : tensor<512x!tile.ptr<f32>, #vec>
    tile.store %p, %l : tensor<512x!tile.ptr<f32>, #vec>
    %o = tile.load %t : tensor<512x!tile.ptr<f32>, #vec>
  }
  return
}

// Addresses that differ from round to round: the next round's load waits for this one's store.
// CHECK-LABEL: @global_rounds
// CHECK: scf.for
// CHECK: tile_gpu.barrier
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.store
// CHECK-NOT: barrier
// CHECK: return
func.func @global_rounds(%x: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %b = tile.addptr %x, %k : !tile.ptr<f32>, i32
    %p = tile.splat %b : !tile.ptr<f32> to tensor<512x!tile.ptr<f32>, #vec>
    %l = tile.load %p : tensor<512x!tile.ptr<f32>, #vec>
    tile.store %p, %l : tensor<512x!tile.ptr<f32>, #vec>
  }
  return
}

// An address that control flow chose: of either argument.
// CHECK-LABEL: @global_either
// CHECK: tile.store
// CHECK: tile_gpu.barrier
// CHECK-NEXT: tile.load %arg1
// CHECK-NOT: barrier
// CHECK: tile.load %arg2
// CHECK: return
func.func @global_either(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %z: !tile.ptr<f32>, %c: i1, %v: f32) {
  %p = scf.if %c -> !tile.ptr<f32> {
    scf.yield %x : !tile.ptr<f32>
  } else {
    scf.yield %y : !tile.ptr<f32>
  }
  tile.store %p, %v : !tile.ptr<f32>
  %l = tile.load %y : !tile.ptr<f32>
  %m = tile.load %z : !tile.ptr<f32>
  return
}

// One warp: a barrier of the warp.
// CHECK-LABEL: @global_lanes
// CHECK: tile.store
// CHECK-NEXT: tile_gpu.warp_barrier
// CHECK-NEXT: tile.load
// CHECK-NOT: tile_gpu.barrier
// CHECK: return
func.func @global_lanes(%x: !tile.ptr<f32>, %v: f32) attributes {tile.num_warps = 1 : i32} {
  tile.store %x, %v : !tile.ptr<f32>
  %l = tile.load %x : !tile.ptr<f32>
  return
}

// A release comes after, an acquire before all other accesses; relaxed operations order nothing.
// CHECK-LABEL: @release_acquire
// CHECK: tile.store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile.atomic_rmw add acq_rel
// CHECK: tile_gpu.barrier
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.atomic_rmw add relaxed
// CHECK-NOT: barrier
// CHECK: return
func.func @release_acquire(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %z: !tile.ptr<i32>, %v: i32) {
  tile.store %x, %v : !tile.ptr<i32>
  %old = tile.atomic_rmw add acq_rel gpu %y, %v : !tile.ptr<i32>
  %l = tile.load %z : !tile.ptr<i32>
  %new = tile.atomic_rmw add relaxed gpu %y, %v : !tile.ptr<i32>
  return
}

// What is counted comes before the count, of this memory alone, and nothing has to come after it.  Sums wait for all
// threads to know that the wait is over.
// CHECK-LABEL: @counted
// CHECK: tile.atomic_rmw
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile_gpu.count
// CHECK-NEXT: tile.atomic_rmw
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile_gpu.await
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile.atomic_rmw
// CHECK-NOT: barrier
// CHECK: tile_gpu.count
// CHECK-NOT: barrier
// CHECK: return
func.func @counted(%p: tensor<512x!tile.ptr<i32>, #vec>, %v: tensor<512xi32, #vec>, %c: !tile.ptr<i32>, %x: !tile.ptr<i32>, %q: !tile.ptr<i32>, %n: i32, %is: i1) {
  %0 = tile.atomic_rmw add relaxed gpu %p, %v : tensor<512x!tile.ptr<i32>, #vec>
  tile.store %x, %n : !tile.ptr<i32>
  tile_gpu.count %c if %is for %p : !tile.ptr<i32>, tensor<512x!tile.ptr<i32>, #vec>
  %1 = tile.atomic_rmw add relaxed gpu %p, %v : tensor<512x!tile.ptr<i32>, #vec>
  tile_gpu.await %n of %c for %p : !tile.ptr<i32>, tensor<512x!tile.ptr<i32>, #vec>
  %2 = tile.atomic_rmw add relaxed gpu %p, %v : tensor<512x!tile.ptr<i32>, #vec>
  tile_gpu.count %c if %is for %q : !tile.ptr<i32>, !tile.ptr<i32>
  return
}

}
