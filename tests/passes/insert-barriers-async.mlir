// RUN: kiln-opt %s --kiln-count-groups --kiln-insert-barriers --kiln-verify-barriers | FileCheck %s

#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#one = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[1,1], order=[1,0]>
#other = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[4,8], warpsPerCTA=[1,1], order=[0,1]>

module attributes {tile_gpu.target = "sm_80"} {

// Three slots: the barrier that is there is enough for both buffers.
// CHECK-LABEL: @pipelined
// CHECK: scf.for
// CHECK: async_wait
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NOT: barrier
// CHECK: return
func.func @pipelined(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %cs = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf16, #col>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %b = tile_gpu.local_alloc {offset = 12288 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %b0 = tile_gpu.local_subview %b[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  scf.if %p0 {
    tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.async_copy_view %v[%c0, %c0], %b0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t0 = tile_gpu.async_commit
  %p1 = arith.cmpi sgt, %n, %c1 : i32
  %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %b1 = tile_gpu.local_subview %b[%c1] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  scf.if %p1 {
    tile_gpu.async_copy_view %v[%c1, %c0], %a1 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.async_copy_view %v[%c1, %c0], %b1 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t1 = tile_gpu.async_commit
  %r:5 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %read = %c0, %write = %c2, %k0 = %t0, %k1 = %t1)
      -> (tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token) : i32 {
    %ar = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    %br = tile_gpu.local_subview %b[%read] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    tile_gpu.async_wait %k0 ready %ar, %br : !tile_gpu.buffer<64x32xf16, #sh>, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.barrier
    %next = arith.addi %i, %c2 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      %aw = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
      %bw = tile_gpu.local_subview %b[%write] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
      tile_gpu.async_copy_view %v[%next, %c0], %aw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
      tile_gpu.async_copy_view %v[%next, %c0], %bw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %k = tile_gpu.async_commit
    %al = tile_gpu.local_load %ar : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    %as = arith.addf %s, %al : tensor<64x32xf16, #col>
    %bl = tile_gpu.local_load %br : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    %bs = arith.addf %as, %bl : tensor<64x32xf16, #col>
    %read1 = arith.addi %read, %c1 : i32
    %read2 = arith.cmpi eq, %read1, %cs : i32
    %read3 = arith.select %read2, %c0, %read1 : i32
    %write1 = arith.addi %write, %c1 : i32
    %write2 = arith.cmpi eq, %write1, %cs : i32
    %write3 = arith.select %write2, %c0, %write1 : i32
    scf.yield %bs, %read3, %write3, %k1, %k : tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token
  }
  tile_gpu.async_wait all
  return
}

// The barrier that the author left out: one, after the wait, also for the copy to the slot that was read a round ago.
// CHECK-LABEL: @left_out
// CHECK-NOT: barrier
// CHECK: scf.for
// CHECK: async_wait
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NOT: barrier
// CHECK: return
func.func @left_out(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %cs = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf16, #col>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %b = tile_gpu.local_alloc {offset = 12288 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %b0 = tile_gpu.local_subview %b[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  scf.if %p0 {
    tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.async_copy_view %v[%c0, %c0], %b0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t0 = tile_gpu.async_commit
  %p1 = arith.cmpi sgt, %n, %c1 : i32
  %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %b1 = tile_gpu.local_subview %b[%c1] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  scf.if %p1 {
    tile_gpu.async_copy_view %v[%c1, %c0], %a1 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.async_copy_view %v[%c1, %c0], %b1 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t1 = tile_gpu.async_commit
  %r:5 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %read = %c0, %write = %c2, %k0 = %t0, %k1 = %t1)
      -> (tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token) : i32 {
    %ar = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    %br = tile_gpu.local_subview %b[%read] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    tile_gpu.async_wait %k0 ready %ar, %br : !tile_gpu.buffer<64x32xf16, #sh>, !tile_gpu.buffer<64x32xf16, #sh>
    %next = arith.addi %i, %c2 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      %aw = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
      %bw = tile_gpu.local_subview %b[%write] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
      tile_gpu.async_copy_view %v[%next, %c0], %aw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
      tile_gpu.async_copy_view %v[%next, %c0], %bw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %k = tile_gpu.async_commit
    %al = tile_gpu.local_load %ar : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    %as = arith.addf %s, %al : tensor<64x32xf16, #col>
    %bl = tile_gpu.local_load %br : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    %bs = arith.addf %as, %bl : tensor<64x32xf16, #col>
    %read1 = arith.addi %read, %c1 : i32
    %read2 = arith.cmpi eq, %read1, %cs : i32
    %read3 = arith.select %read2, %c0, %read1 : i32
    %write1 = arith.addi %write, %c1 : i32
    %write2 = arith.cmpi eq, %write1, %cs : i32
    %write3 = arith.select %write2, %c0, %write1 : i32
    scf.yield %bs, %read3, %write3, %k1, %k : tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token
  }
  tile_gpu.async_wait all
  return
}

// Two slots.
// CHECK-LABEL: @two
// CHECK-NOT: barrier
// CHECK: scf.for
// CHECK: async_wait
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NOT: barrier
// CHECK: return
func.func @two(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %cs = arith.constant 2 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf16, #col>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
  scf.if %p0 {
    tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t0 = tile_gpu.async_commit
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %read = %c0, %write = %c1, %k0 = %t0)
      -> (tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token) : i32 {
    %ar = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
    tile_gpu.async_wait %k0 ready %ar : !tile_gpu.buffer<64x32xf16, #sh>
    %next = arith.addi %i, %c1 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      %aw = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
      tile_gpu.async_copy_view %v[%next, %c0], %aw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %k = tile_gpu.async_commit
    %al = tile_gpu.local_load %ar : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    %as = arith.addf %s, %al : tensor<64x32xf16, #col>
    %read1 = arith.addi %read, %c1 : i32
    %read2 = arith.cmpi eq, %read1, %cs : i32
    %read3 = arith.select %read2, %c0, %read1 : i32
    %write1 = arith.addi %write, %c1 : i32
    %write2 = arith.cmpi eq, %write1, %cs : i32
    %write3 = arith.select %write2, %c0, %write1 : i32
    scf.yield %as, %read3, %write3, %k : tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token
  }
  tile_gpu.async_wait all
  return
}

// The copy goes to the slot that the last round read, before the barrier that says it is read: another one.
// CHECK-LABEL: @early
// CHECK: scf.if
// CHECK: scf.if
// CHECK: scf.if
// CHECK: tile_gpu.barrier
// CHECK-NEXT: tile_gpu.async_copy_view
// CHECK: async_wait
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NOT: barrier
// CHECK: return
func.func @early(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %cs = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf16, #col>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  scf.if %p0 {
    tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t0 = tile_gpu.async_commit
  %p1 = arith.cmpi sgt, %n, %c1 : i32
  %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  scf.if %p1 {
    tile_gpu.async_copy_view %v[%c1, %c0], %a1 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t1 = tile_gpu.async_commit
  %r:5 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %read = %c0, %write = %c2, %k0 = %t0, %k1 = %t1)
      -> (tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token) : i32 {
    %ar = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    %next = arith.addi %i, %c2 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      %aw = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
      tile_gpu.async_copy_view %v[%next, %c0], %aw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %k = tile_gpu.async_commit
    tile_gpu.async_wait %k0 ready %ar : !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.barrier
    %al = tile_gpu.local_load %ar : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    %as = arith.addf %s, %al : tensor<64x32xf16, #col>
    %read1 = arith.addi %read, %c1 : i32
    %read2 = arith.cmpi eq, %read1, %cs : i32
    %read3 = arith.select %read2, %c0, %read1 : i32
    %write1 = arith.addi %write, %c1 : i32
    %write2 = arith.cmpi eq, %write1, %cs : i32
    %write3 = arith.select %write2, %c0, %write1 : i32
    scf.yield %as, %read3, %write3, %k1, %k : tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token
  }
  tile_gpu.async_wait all
  return
}

// Bytes of a copy that may have begun in the last round: after the last wait too.
// CHECK-LABEL: @reused
// CHECK: async_wait all
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: local_alloc
// CHECK-NEXT: local_store
// CHECK: return
func.func @reused(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %cs = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf16, #col>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  scf.if %p0 {
    tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t0 = tile_gpu.async_commit
  %p1 = arith.cmpi sgt, %n, %c1 : i32
  %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  scf.if %p1 {
    tile_gpu.async_copy_view %v[%c1, %c0], %a1 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t1 = tile_gpu.async_commit
  %r:5 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %read = %c0, %write = %c2, %k0 = %t0, %k1 = %t1)
      -> (tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token) : i32 {
    %ar = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    tile_gpu.async_wait %k0 ready %ar : !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.barrier
    %next = arith.addi %i, %c2 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      %aw = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
      tile_gpu.async_copy_view %v[%next, %c0], %aw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %k = tile_gpu.async_commit
    %al = tile_gpu.local_load %ar : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    %as = arith.addf %s, %al : tensor<64x32xf16, #col>
    %read1 = arith.addi %read, %c1 : i32
    %read2 = arith.cmpi eq, %read1, %cs : i32
    %read3 = arith.select %read2, %c0, %read1 : i32
    %write1 = arith.addi %write, %c1 : i32
    %write2 = arith.cmpi eq, %write1, %cs : i32
    %write3 = arith.select %write2, %c0, %write1 : i32
    scf.yield %as, %read3, %write3, %k1, %k : tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token
  }
  tile_gpu.async_wait all
  %z = tile_gpu.local_alloc {offset = 4096 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.local_store %x, %z : tensor<64x32xf16, #mix>, !tile_gpu.buffer<64x32xf16, #sh>
  return
}

// A wait that names no buffers makes all of them readable.
// CHECK-LABEL: @everything
// CHECK: async_wait all
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: local_load
// CHECK-NOT: barrier
// CHECK: return
func.func @everything(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  tile_gpu.async_wait all
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
  return
}

// What was stored before is overwritten by other warps.
// CHECK-LABEL: @overwritten
// CHECK: local_store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: async_copy_view
// CHECK-NEXT: async_commit
// CHECK: return
func.func @overwritten(%v: !tile.view<64x32xf16>, %y: tensor<64x32xf16, #col>) {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.local_store %y, %a : tensor<64x32xf16, #col>, !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  return
}

// One warp: a barrier of the warp is enough.
// CHECK-LABEL: @one_warp
// CHECK: async_wait
// CHECK-NEXT: tile_gpu.warp_barrier
// CHECK-NEXT: local_load
// CHECK-NOT: barrier
// CHECK: return
func.func @one_warp(%v: !tile.view<64x32xf16>) attributes {tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #one : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh>
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #other>
  return
}

// A thread that has waited for its own copies may copy there again.
// CHECK-LABEL: @refilled
// CHECK-NOT: barrier
// CHECK: return
func.func @refilled(%v: !tile.view<64x32xf16>) {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  tile_gpu.async_wait all
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %u = tile_gpu.async_commit
  tile_gpu.async_wait all
  return
}

// Others' copies it has not waited for.
// CHECK-LABEL: @refilled_by_others
// CHECK: async_wait
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NOT: barrier
// CHECK: return
func.func @refilled_by_others(%v: !tile.view<64x32xf16>) {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  tile_gpu.async_wait all
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #mix : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %u = tile_gpu.async_commit
  tile_gpu.async_wait all
  return
}

// One tile after the other: after the last wait everyone has read, and the next tile's copies may begin.
// CHECK-LABEL: @tile_by_tile
// CHECK: scf.for
// CHECK-NOT: barrier
// CHECK: scf.for
// CHECK: async_wait
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NOT: barrier
// CHECK: async_wait all
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NOT: barrier
// CHECK: return
func.func @tile_by_tile(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %cs = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf16, #col>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  scf.for %tile = %c0 to %n step %c1 : i32 {
    %p0 = arith.cmpi sgt, %n, %c0 : i32
    %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    scf.if %p0 {
      tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %t0 = tile_gpu.async_commit
    %p1 = arith.cmpi sgt, %n, %c1 : i32
    %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    scf.if %p1 {
      tile_gpu.async_copy_view %v[%c1, %c0], %a1 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %t1 = tile_gpu.async_commit
    %r:5 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %read = %c0, %write = %c2, %k0 = %t0, %k1 = %t1)
        -> (tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token) : i32 {
      %ar = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
      tile_gpu.async_wait %k0 ready %ar : !tile_gpu.buffer<64x32xf16, #sh>
      tile_gpu.barrier
      %next = arith.addi %i, %c2 : i32
      %more = arith.cmpi slt, %next, %n : i32
      scf.if %more {
        %aw = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
        tile_gpu.async_copy_view %v[%next, %c0], %aw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
      }
      %k = tile_gpu.async_commit
      %al = tile_gpu.local_load %ar : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
      %as = arith.addf %s, %al : tensor<64x32xf16, #col>
      %read1 = arith.addi %read, %c1 : i32
      %read2 = arith.cmpi eq, %read1, %cs : i32
      %read3 = arith.select %read2, %c0, %read1 : i32
      %write1 = arith.addi %write, %c1 : i32
      %write2 = arith.cmpi eq, %write1, %cs : i32
      %write3 = arith.select %write2, %c0, %write1 : i32
      scf.yield %as, %read3, %write3, %k1, %k : tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token
    }
    tile_gpu.async_wait all
  }
  return
}

// Other ways to count slots: a comparison the other way round, a remainder.  Each round stores to one slot and reads
// another one, with one barrier between; the last round's read is of a slot that no store reaches before the next barrier.
// CHECK-LABEL: @counted
// CHECK: scf.for
// CHECK-COUNT-1: tile_gpu.barrier
// CHECK-NOT: tile_gpu.barrier
// CHECK: return
func.func @counted(%x: tensor<64x32xf16, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %c0) -> i32 : i32 {
    %p1 = arith.addi %p, %c1 : i32
    %write = arith.remui %p1, %c3 : i32
    %w = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    %s = tile_gpu.local_subview %a[%p] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    tile_gpu.local_store %x, %w : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.barrier
    %l = tile_gpu.local_load %s : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    %below = arith.cmpi slt, %p, %c2 : i32
    %next = arith.select %below, %p1, %c0 : i32
    scf.yield %next : i32
  }
  return
}

// The loop is entered again from slot 0, whatever it had reached: nothing is known across that.
// CHECK-LABEL: @entered_again
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile_gpu.barrier
// CHECK-NEXT: local_store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: local_load
// CHECK-NOT: barrier
// CHECK: return
func.func @entered_again(%x: tensor<64x32xf16, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
  scf.for %j = %c0 to %n step %c1 : i32 {
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %c0) -> i32 : i32 {
      %s = tile_gpu.local_subview %a[%p] : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
      tile_gpu.local_store %x, %s : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
      tile_gpu.barrier
      %l = tile_gpu.local_load %s : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
      %p1 = arith.addi %p, %c1 : i32
      %wraps = arith.cmpi eq, %p1, %c2 : i32
      %next = arith.select %wraps, %c0, %p1 : i32
      scf.yield %next : i32
    }
  }
  return
}

// Slot 0 is read before a loop that writes slot 2 first, and slot 0 after a barrier.
// CHECK-LABEL: @in_front
// CHECK: local_load
// CHECK-NEXT: scf.for
// CHECK: return
func.func @in_front(%x: tensor<64x32xf16, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %slot = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  tile_gpu.local_store %x, %slot : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.barrier
  %l = tile_gpu.local_load %slot : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %c2) -> i32 : i32 {
    %s = tile_gpu.local_subview %a[%p] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    tile_gpu.local_store %x, %s : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.barrier
    %p1 = arith.addi %p, %c1 : i32
    %wraps = arith.cmpi eq, %p, %c2 : i32
    %next = arith.select %wraps, %c0, %p1 : i32
    scf.yield %next : i32
  }
  return
}

// This one writes slot 0 first.
// CHECK-LABEL: @in_front_same
// CHECK: local_load
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: scf.for
// CHECK: return
func.func @in_front_same(%x: tensor<64x32xf16, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %slot = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  tile_gpu.local_store %x, %slot : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.barrier
  %l = tile_gpu.local_load %slot : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %c0) -> i32 : i32 {
    %s = tile_gpu.local_subview %a[%p] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    tile_gpu.local_store %x, %s : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.barrier
    %p1 = arith.addi %p, %c1 : i32
    %wraps = arith.cmpi eq, %p, %c2 : i32
    %next = arith.select %wraps, %c0, %p1 : i32
    scf.yield %next : i32
  }
  return
}

// Without a barrier in the loop the second round writes slot 0.
// CHECK-LABEL: @in_front_later
// CHECK: local_load
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: scf.for
// CHECK-NOT: barrier
// CHECK: return
func.func @in_front_later(%x: tensor<64x32xf16, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %slot = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  tile_gpu.local_store %x, %slot : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.barrier
  %l = tile_gpu.local_load %slot : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %c2) -> i32 : i32 {
    %s = tile_gpu.local_subview %a[%p] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    tile_gpu.local_store %x, %s : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
    %p1 = arith.addi %p, %c1 : i32
    %wraps = arith.cmpi eq, %p, %c2 : i32
    %next = arith.select %wraps, %c0, %p1 : i32
    scf.yield %next : i32
  }
  return
}

// In an outer loop the inner one begins anew: slot 2 again.  The barrier before it is for an inner loop of no rounds.
// CHECK-LABEL: @in_front_again
// CHECK: scf.for
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: local_store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: local_load
// CHECK-NEXT: scf.for
// CHECK: return
func.func @in_front_again(%x: tensor<64x32xf16, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  %slot = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  scf.for %j = %c0 to %n step %c1 : i32 {
    tile_gpu.local_store %x, %slot : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.barrier
    %l = tile_gpu.local_load %slot : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %c2) -> i32 : i32 {
      %s = tile_gpu.local_subview %a[%p] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
      tile_gpu.local_store %x, %s : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
      tile_gpu.barrier
      %p1 = arith.addi %p, %c1 : i32
      %wraps = arith.cmpi eq, %p, %c2 : i32
      %next = arith.select %wraps, %c0, %p1 : i32
      scf.yield %next : i32
    }
  }
  return
}

// A copy reads global memory from the operation to the wait: after stores before it, before stores after it, and
// after what is acquired.  Through another argument nothing is needed.
// CHECK-LABEL: @global
// CHECK: tile.store_view
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile_gpu.async_copy_view
// CHECK-NEXT: tile_gpu.async_commit
// CHECK-NEXT: tile.store_view
// CHECK-NEXT: tile_gpu.async_wait
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile.store_view
// CHECK-NEXT: tile.atomic_rmw
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile_gpu.async_copy_view
func.func @global(%v: !tile.view<64x32xf16>, %w: !tile.view<64x32xf16>, %p: !tile.ptr<i32>, %x: tensor<64x32xf16, #mix>) {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  %b = tile_gpu.local_alloc {offset = 4096 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile.store_view %v[%c0, %c0], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #mix>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  tile.store_view %w[%c0, %c0], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #mix>
  tile_gpu.async_wait %t
  tile.store_view %v[%c0, %c0], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #mix>
  %old = tile.atomic_rmw add acquire gpu %p, %c0 : !tile.ptr<i32>
  tile_gpu.async_copy_view %w[%c0, %c0], %b by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %u = tile_gpu.async_commit
  tile_gpu.async_wait %u
  return
}
}
