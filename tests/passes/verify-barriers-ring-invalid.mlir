// RUN: kiln-opt %s --kiln-verify-barriers

// A ring of two slots, and each way to get it wrong: lines left out or changed.

// Each warp says that the slot is empty, then reads it.
// RUN: sed -e 's,//EARLY,,' -e '/ ARRIVE-EMPTY$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=BEFORE-LAST-READ
// BEFORE-LAST-READ: error: this write to shared memory races with a read before it
// BEFORE-LAST-READ: note: the read
// BEFORE-LAST-READ: note: put a tile_gpu.barrier on this path

// Or before the product that reads it has ended.
// RUN: sed -e 's,//IN-FLIGHT,,' -e '/ ARRIVE-EMPTY$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=IN-FLIGHT
// IN-FLIGHT: error: this write to shared memory races with a read before it

// RUN: sed -e '/warpgroup_wait/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=NEVER-ENDS
// NEVER-ENDS: error: writes bytes that a product in flight may still read: wait for its group first
// NEVER-ENDS: note: no warpgroup_wait lies on this path

// RUN: sed -e 's,//LATE,,' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=READ-AFTER
// READ-AFTER: error: this write to shared memory races with a read before it

// Nobody says so.
// RUN: sed -e '/ ARRIVE-EMPTY$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=NEVER-EMPTY
// NEVER-EMPTY: error: waits for an arrival that never comes: phase 0 of mbarrier 0

// Nobody asks.
// RUN: sed -e '/ WAIT-EMPTY$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=NOT-ASKED
// NOT-ASKED: error: this write to shared memory races with a read before it

// The same of full slots.
// RUN: sed -e '/ ARRIVE-FULL$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=NEVER-FULL
// NEVER-FULL: error: waits for an arrival that never comes: phase 0 of mbarrier 1

// RUN: sed -e '/ WAIT-FULL$/d' -e '/ DRAIN$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=NOT-AWAITED
// NOT-AWAITED: error: reads bytes that a copy in flight may still write: wait for its mbarrier first
// NOT-AWAITED: note: the copy
// NOT-AWAITED: note: no mbarrier_wait on this path is for the phase that it counts to

// With the waits after the loop alone, who is fast takes an old phase for a new one.
// RUN: sed -e '/ WAIT-FULL$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=FORGOTTEN
// FORGOTTEN: error: waits for phase 0 of mbarrier 0, but not every thread has waited for the one before it

// One thread has waited, and all read.
// RUN: sed -e 's,//ALONE,,' -e '/ WAIT-FULL$/d' -e '/ DRAIN$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: reads bytes that a copy in flight may still write
// ALONE: note: the copy
// ALONE: note: only the elected thread waits here

// The copy counts to the mbarrier of the slot that is read.
// RUN: sed -e '/ COPY$/s,%full.%w.,%full[%r],' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=OTHER-SLOT
// OTHER-SLOT: error: reads bytes that a copy in flight may still write: wait for its mbarrier first

// The wait is for another slot.
// RUN: sed -e '/ WAIT-EMPTY$/s,%empty.%w.,%empty[%r],' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=OTHER-EMPTY
// OTHER-EMPTY: error: waits for an arrival that never comes: phase 0 of mbarrier 1

// The phase is never another.
// RUN: sed -e '/ NEXT$/s,%rp1,%rp,' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=PHASE-KEPT
// PHASE-KEPT: error: waits for an arrival that never comes: phase 0 of mbarrier 0
// PHASE-KEPT: error: arrives at phase 0 of mbarrier 0: after the arrivals before it, it is phase 1

// The first wait for an empty slot is for the phase before the first.
// RUN: sed -e '/ WAIT-EMPTY$/s,%free,%wp,' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=PHASE-SAME
// PHASE-SAME: error: waits for an arrival that never comes: phase 0 of mbarrier 1

// As many arrive as were said.
// RUN: sed -e '/ BEGIN-FULL$/s,arrivals 1,arrivals 4,' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=MANY-FULL
// MANY-FULL: error: one thread arrives at mbarrier 0, whose phases end with 4 arrivals
// MANY-FULL: note: begun here: make it 1

// RUN: sed -e '/ BEGIN-EMPTY$/s,arrivals 4,arrivals 1,' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=FEW-EMPTY
// FEW-EMPTY: error: each of 4 warps arrives at mbarrier 0, whose phases end with 1 arrivals
// FEW-EMPTY: note: begun here: make it 4

// RUN: sed -e '/ BEGIN-EMPTY$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=NOT-BEGUN
// NOT-BEGUN: error: waits for mbarrier 1, which no mbarrier_init before it begins

// Barriers, after the mbarriers have begun and before they end.
// RUN: sed -e '/ BARRIER-BEGIN$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=BEGIN-SEEN
// BEGIN-SEEN: error: this read of shared memory races with a write before it

// RUN: sed -e '/ BARRIER-END$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=END-SEEN
// END-SEEN: error: this write to shared memory races with a read before it

// A copy counts to an mbarrier that ends.
// RUN: sed -e '/ DRAIN$/d' %s | not kiln-opt --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=NOT-DRAINED
// NOT-DRAINED: error: writes bytes that a copy in flight may still read: wait for its mbarrier first

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>

module attributes {tile_gpu.target = "sm_90a"} {
func.func @ring(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %acc = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<2>
  %empty = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<2>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<2> // BEGIN-FULL
    tile_gpu.mbarrier_init %empty arrivals 4 : !tile_gpu.mbarriers<2> // BEGIN-EMPTY
  }
  tile_gpu.barrier // BARRIER-BEGIN
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  scf.if %p0 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c0] to %a0 dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
    }
  }
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<2>
  }
  %end:4 = scf.for %i = %c0 to %n step %c1 iter_args(%r = %c0, %rp = %c0, %w = %c1, %wp = %c0)
      -> (i32, i32, i32, i32) : i32 {
    %ar = tile_gpu.local_subview %a[%r] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    %aw = tile_gpu.local_subview %a[%w] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    tile_gpu.mbarrier_wait %full[%r] phase %rp ready %ar : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma> // WAIT-FULL
    //ALONE tile_gpu.elected { tile_gpu.mbarrier_wait %full[%r] phase %rp ready %ar : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma> }
    %free = arith.xori %wp, %c1 : i32
    tile_gpu.elected {
      tile_gpu.mbarrier_wait %empty[%w] phase %free ready %aw : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma> // WAIT-EMPTY
    }
    %next = arith.addi %i, %c1 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      tile_gpu.elected {
        tile_gpu.tensor_copy %map[%c0, %next] to %aw dims [1, 0] counts %full[%w] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2> // COPY
      }
    }
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %full[%w] phase %wp : !tile_gpu.mbarriers<2> // ARRIVE-FULL
    }
    %p = tile_gpu.warpgroup_begin %acc : !tile_gpu.pending<tensor<64x64xf32, #acc>>
    %q = tile_gpu.warpgroup_dot %ar, %ar, %p : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.pending<tensor<64x64xf32, #acc>>
    //IN-FLIGHT tile_gpu.mbarrier_arrive %empty[%r] phase %rp : !tile_gpu.mbarriers<2>
    %d = tile_gpu.warpgroup_wait %q : tensor<64x64xf32, #acc>
    //EARLY tile_gpu.mbarrier_arrive %empty[%r] phase %rp : !tile_gpu.mbarriers<2>
    %l = tile_gpu.local_load %ar : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row> // READ
    tile_gpu.mbarrier_arrive %empty[%r] phase %rp : !tile_gpu.mbarriers<2> // ARRIVE-EMPTY
    //LATE %m = tile_gpu.local_load %ar : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
    %r1 = arith.addi %r, %c1 : i32
    %r2 = arith.cmpi eq, %r1, %c2 : i32
    %r3 = arith.select %r2, %c0, %r1 : i32
    %r4 = arith.extui %r2 : i1 to i32
    %rp1 = arith.xori %rp, %r4 : i32
    %w1 = arith.addi %w, %c1 : i32
    %w2 = arith.cmpi eq, %w1, %c2 : i32
    %w3 = arith.select %w2, %c0, %w1 : i32
    %w4 = arith.extui %w2 : i1 to i32
    %wp1 = arith.xori %wp, %w4 : i32
    scf.yield %r3, %rp1, %w3, %wp1 : i32, i32, i32, i32 // NEXT
  }
  %e0 = tile_gpu.local_subview %a[%end#0] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  tile_gpu.mbarrier_wait %full[%end#0] phase %end#1 ready %e0 : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma> // DRAIN
  //ALONE tile_gpu.elected { tile_gpu.mbarrier_wait %full[%end#0] phase %end#1 ready %e0 : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma> }
  tile_gpu.barrier // BARRIER-END
  tile_gpu.elected {
    tile_gpu.mbarrier_invalidate %full : !tile_gpu.mbarriers<2>
    tile_gpu.mbarrier_invalidate %empty : !tile_gpu.mbarriers<2>
  }
  return
}
}
