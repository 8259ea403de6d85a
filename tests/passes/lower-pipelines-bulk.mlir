// RUN: kiln-opt %s --kiln-lower-pipelines --cse --split-input-file | FileCheck %s

// Two mbarriers a slot; `full` takes one arrival, `empty` one of each warp.  One thread waits until a slot is empty,
// copies, arrives; all threads wait until it is full, and arrive when they have read it.  No barrier of the block.  The
// numbers go round with their phases, which flip where the number comes round.
// CHECK-LABEL: @ring
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
// CHECK: %[[FULL:.*]] = tile_gpu.local_alloc {alone} : !tile_gpu.mbarriers<3>
// CHECK: %[[EMPTY:.*]] = tile_gpu.local_alloc {alone} : !tile_gpu.mbarriers<3>
// CHECK: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_init %[[FULL]] arrivals 1 :
// CHECK-NEXT: tile_gpu.mbarrier_init %[[EMPTY]] arrivals 8 :
// CHECK-NEXT: }
// Before the loop: the first phase of `empty` is not waited for, but the one before it.
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: %[[S0:.*]] = tile_gpu.local_subview %[[B]][%c0_i32]
// CHECK-NEXT: tile_gpu.mbarrier_wait %[[EMPTY]][%c0_i32] phase %c1_i32 ready %[[S0]] :
// CHECK-NEXT: }
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: %[[S0:.*]] = tile_gpu.local_subview %[[B]][%c0_i32]
// CHECK-NEXT: tile_gpu.tensor_copy %[[MAP:.*]][%c0_i32, %c0_i32] to %[[S0]] dims [1, 0] counts %[[FULL]][%c0_i32] :
// CHECK-NEXT: }
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_arrive %[[FULL]][%c0_i32] phase %c0_i32 :
// CHECK-NEXT: }
// CHECK: tile_gpu.mbarrier_wait %[[EMPTY]][%c1_i32] phase %c1_i32 ready
// CHECK: tile_gpu.tensor_copy {{.*}} counts %[[FULL]][%c1_i32] :
// CHECK: tile_gpu.mbarrier_arrive %[[FULL]][%c1_i32] phase %c0_i32 :
// Carried: both numbers, then both phases.
// CHECK: %[[LAST:.*]]:4 = scf.for {{.*}} iter_args(%[[READ:.*]] = %c0_i32, %[[WRITE:.*]] = %c2_i32, %[[READPHASE:.*]] = %c0_i32, %[[WRITEPHASE:.*]] = %c0_i32)
// CHECK-NOT: tile_gpu.barrier
// CHECK: %[[NOW:.*]] = tile_gpu.local_subview %[[B]][%[[READ]]]
// CHECK-NEXT: tile_gpu.mbarrier_wait %[[FULL]][%[[READ]]] phase %[[READPHASE]] ready %[[NOW]] :
// CHECK-NEXT: tile_gpu.elected {
// CHECK-DAG: %[[THERE:.*]] = tile_gpu.local_subview %[[B]][%[[WRITE]]]
// CHECK-DAG: %[[BEFORE:.*]] = arith.xori %[[WRITEPHASE]], %c1_i32
// CHECK: tile_gpu.mbarrier_wait %[[EMPTY]][%[[WRITE]]] phase %[[BEFORE]] ready %[[THERE]] :
// CHECK-NEXT: }
// CHECK-NEXT: scf.if
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: %[[SLOT:.*]] = tile_gpu.local_subview %[[B]][%[[WRITE]]]
// CHECK-NEXT: tile_gpu.tensor_copy %[[MAP]][%c0_i32, %{{.*}}] to %[[SLOT]] dims [1, 0] counts %[[FULL]][%[[WRITE]]] :
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_arrive %[[FULL]][%[[WRITE]]] phase %[[WRITEPHASE]] :
// CHECK-NEXT: }
// CHECK: %[[W1:.*]] = arith.addi %[[WRITE]], %c1_i32
// CHECK: %[[WROUND:.*]] = arith.cmpi eq, %[[W1]], %c3_i32
// CHECK: %[[WRITES:.*]] = arith.select %[[WROUND]], %c0_i32, %[[W1]]
// CHECK: %[[WFLIP:.*]] = arith.xori %[[WRITEPHASE]], %c1_i32
// CHECK: %[[WRITESPHASE:.*]] = arith.select %[[WROUND]], %[[WFLIP]], %[[WRITEPHASE]]
// CHECK: tile_gpu.local_load %[[NOW]]
// CHECK: tile_gpu.mbarrier_arrive %[[EMPTY]][%[[READ]]] phase %[[READPHASE]] :
// CHECK: %[[R1:.*]] = arith.addi %[[READ]], %c1_i32
// CHECK: %[[RROUND:.*]] = arith.cmpi eq, %[[R1]], %c3_i32
// CHECK: %[[READS:.*]] = arith.select %[[RROUND]], %c0_i32, %[[R1]]
// CHECK: %[[RFLIP:.*]] = arith.xori %[[READPHASE]], %c1_i32
// CHECK: %[[READSPHASE:.*]] = arith.select %[[RROUND]], %[[RFLIP]], %[[READPHASE]]
// CHECK: scf.yield %[[READS]], %[[WRITES]], %[[READSPHASE]], %[[WRITESPHASE]]
// Two slots are committed and not waited for: all wait for them.  The mbarriers' bytes stay theirs: nobody ends them.
// CHECK: %[[D0:.*]] = tile_gpu.local_subview %[[B]][%[[LAST]]#0]
// CHECK: tile_gpu.mbarrier_wait %[[FULL]][%[[LAST]]#0] phase %[[LAST]]#2 ready %[[D0]] :
// CHECK: %[[N1:.*]] = arith.select %{{.*}}, %c0_i32
// CHECK: %[[P1:.*]] = arith.select %{{.*}}, %[[LAST]]#2
// CHECK: %[[D1:.*]] = tile_gpu.local_subview %[[B]][%[[N1]]]
// CHECK: tile_gpu.mbarrier_wait %[[FULL]][%[[N1]]] phase %[[P1]] ready %[[D1]] :
// CHECK-NOT: tile_gpu.mbarrier_
// CHECK-NOT: tile_gpu.async_
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[8,1], order=[1,0]>
#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
!p3 = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x64xbf16, #sh>>
func.func @ring(%x: !tile.ptr<bf16>, %n: i32, %k: i1, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile_gpu.test, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline bulk : !p3
  %a, %a0 = tile_gpu.acquire %p : !p3
  tile_gpu.tensor_copy %map[%c0, %c0] to %a0 dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  %b = tile_gpu.commit %a : !p3
  %c, %c2 = tile_gpu.acquire %b : !p3
  tile_gpu.tensor_copy %map[%c0, %c1] to %c2 dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  %d = tile_gpu.commit %c : !p3
  %e = scf.for %i = %c0 to %n step %c1 iter_args(%s = %d) -> (!p3) : i32 {
    %w, %now = tile_gpu.wait %s : !p3
    %f, %there = tile_gpu.acquire %w : !p3
    scf.if %k {
      tile_gpu.tensor_copy %map[%c0, %i] to %there dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
    }
    %g = tile_gpu.commit %f : !p3
    %y = tile_gpu.local_load %now : !tile_gpu.buffer<64x64xbf16, #sh> to tensor<64x64xbf16, #row>
    tile.print "y" %y : tensor<64x64xbf16, #row>
    %h = tile_gpu.release %g : !p3
    scf.yield %h : !p3
  }
  tile_gpu.drain %e : !p3
  return
}

// -----

// A slot that counts as waited for was full once; its release is an arrival like any other's.  The slot after it is
// written first.
// CHECK-LABEL: @holding
// CHECK: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_init %[[FULL:.*]] arrivals 1 :
// CHECK-NEXT: tile_gpu.mbarrier_init %[[EMPTY:.*]] arrivals 4 :
// CHECK-NEXT: }
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_arrive %[[FULL]][%c0_i32] phase %c0_i32 :
// CHECK-NEXT: }
// CHECK-NEXT: tile_gpu.mbarrier_wait %[[FULL]][%c0_i32] phase %c0_i32 :
// CHECK-NEXT: tile_gpu.elected {
// CHECK: tile_gpu.mbarrier_wait %[[EMPTY]][%c1_i32] phase %c1_i32 ready
// CHECK: tile_gpu.mbarrier_arrive %[[FULL]][%c1_i32] phase %c0_i32 :
// CHECK: tile_gpu.mbarrier_arrive %[[EMPTY]][%c0_i32] phase %c0_i32 :
// The first slot again: the phase in which it was released.
// CHECK-NEXT: tile_gpu.elected {
// CHECK: tile_gpu.mbarrier_wait %[[EMPTY]][%c0_i32] phase %c0_i32 ready
// CHECK: tile_gpu.mbarrier_arrive %[[FULL]][%c0_i32] phase %c1_i32 :
// The drain waits for both.
// CHECK: tile_gpu.mbarrier_wait %[[FULL]][%c1_i32] phase %c0_i32 ready
// CHECK: tile_gpu.mbarrier_wait %[[FULL]][%c0_i32] phase %c1_i32 ready
// CHECK-NOT: tile_gpu.mbarrier_invalidate
#sh = #tile_gpu.tma<swizzle=128>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #sh>>
func.func @holding() attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  %p = tile_gpu.pipeline bulk holding 1 : !p2
  %a, %a0 = tile_gpu.acquire %p : !p2
  %b = tile_gpu.commit %a : !p2
  %c = tile_gpu.release %b : !p2
  %d, %d0 = tile_gpu.acquire %c : !p2
  %e = tile_gpu.commit %d : !p2
  tile_gpu.drain %e : !p2
  return
}

// -----

// The copies of a block into a slot are one thread's together, after the last of them, and count to the same mbarrier.
// CHECK-LABEL: @together
// CHECK: %[[A:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<"a": [2] x 64x64xbf16
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<"b": [2] x 64x64xbf16
// CHECK: %[[FULL:.*]] = tile_gpu.local_alloc {alone} : !tile_gpu.mbarriers<2>
// CHECK: tile_gpu.mbarrier_wait {{.*}} ready %{{.*}}, %{{.*}} : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<"a": 64x64xbf16, #tma>, !tile_gpu.buffer<"b": 64x64xbf16, #tma>
// CHECK-NEXT: }
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: %[[SA:.*]] = tile_gpu.local_subview %[[A]][%c0_i32]
// CHECK-NEXT: %[[SB:.*]] = tile_gpu.local_subview %[[B]][%c0_i32]
// CHECK-NEXT: tile_gpu.tensor_copy %[[MAP:.*]][%[[I:.*]], %[[I]]] to %[[SB]] dims [1, 0] counts %[[FULL]][%c0_i32] :
// CHECK-NEXT: tile_gpu.tensor_copy %[[MAP]][%[[I]], %[[NEXT]]] to %[[SA]] dims [1, 0] counts %[[FULL]][%c0_i32] :
// CHECK-NEXT: }
// CHECK-NEXT: }
#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
!two = !tile_gpu.pipeline<2, !tile_gpu.buffer<"a": 64x64xbf16, #sh>, !tile_gpu.buffer<"b": 64x64xbf16, #sh>>
func.func @together(%x: !tile.ptr<bf16>, %n: i32, %k: i1, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  %p = tile_gpu.pipeline bulk : !two
  %q, %a, %b = tile_gpu.acquire %p : !two
  scf.if %k {
    tile_gpu.tensor_copy %map[%n, %n] to %b dims [1, 0] : !tile_gpu.buffer<"b": 64x64xbf16, #sh>
    %next = arith.addi %n, %n : i32
    tile_gpu.tensor_copy %map[%n, %next] to %a dims [1, 0] : !tile_gpu.buffer<"a": 64x64xbf16, #sh>
  }
  %c = tile_gpu.commit %q : !two
  tile_gpu.drain %c : !two
  return
}

// -----

// A pipeline of a loop's round ends its mbarriers: the next round makes them anew.
// CHECK-LABEL: @eachRound
// CHECK: scf.for
// CHECK: %[[FULL:.*]] = tile_gpu.local_alloc : !tile_gpu.mbarriers<2>
// CHECK: %[[EMPTY:.*]] = tile_gpu.local_alloc : !tile_gpu.mbarriers<2>
// CHECK: tile_gpu.elected {
// CHECK: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_invalidate %[[FULL]] :
// CHECK-NEXT: tile_gpu.mbarrier_invalidate %[[EMPTY]] :
// CHECK-NEXT: }
#sh = #tile_gpu.tma<swizzle=128>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #sh>>
func.func @eachRound(%n: i32) attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.pipeline bulk : !p2
    tile_gpu.drain %p : !p2
  }
  return
}
