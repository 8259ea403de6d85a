// RUN: kiln-opt %s -verify-diagnostics --kiln-count-groups --kiln-verify-barriers=remarks

#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#one = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[1,1], order=[1,0]>
#other = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[4,8], warpsPerCTA=[1,1], order=[0,1]>

module attributes {tile_gpu.target = "sm_80"} {

// Three slots, two buffers.
// expected-remark @+1 {{proved: 8 accesses}}
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

// Two slots, one buffer.
// expected-remark @+1 {{proved: 3 accesses}}
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
    tile_gpu.barrier
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

// Five slots.
// expected-remark @+1 {{proved: 6 accesses}}
func.func @five(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %cs = arith.constant 5 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf16, #col>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[5] x 64x32xf16, #sh>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[5] x 64x32xf16, #sh>
  scf.if %p0 {
    tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t0 = tile_gpu.async_commit
  %p1 = arith.cmpi sgt, %n, %c1 : i32
  %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[5] x 64x32xf16, #sh>
  scf.if %p1 {
    tile_gpu.async_copy_view %v[%c1, %c0], %a1 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t1 = tile_gpu.async_commit
  %p2 = arith.cmpi sgt, %n, %c2 : i32
  %a2 = tile_gpu.local_subview %a[%c2] : !tile_gpu.buffer<[5] x 64x32xf16, #sh>
  scf.if %p2 {
    tile_gpu.async_copy_view %v[%c2, %c0], %a2 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t2 = tile_gpu.async_commit
  %p3 = arith.cmpi sgt, %n, %c3 : i32
  %a3 = tile_gpu.local_subview %a[%c3] : !tile_gpu.buffer<[5] x 64x32xf16, #sh>
  scf.if %p3 {
    tile_gpu.async_copy_view %v[%c3, %c0], %a3 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  }
  %t3 = tile_gpu.async_commit
  %r:7 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %read = %c0, %write = %c4, %k0 = %t0, %k1 = %t1, %k2 = %t2, %k3 = %t3)
      -> (tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token, !tile_gpu.token, !tile_gpu.token) : i32 {
    %ar = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[5] x 64x32xf16, #sh>
    tile_gpu.async_wait %k0 ready %ar : !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.barrier
    %next = arith.addi %i, %c4 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      %aw = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[5] x 64x32xf16, #sh>
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
    scf.yield %as, %read3, %write3, %k1, %k2, %k3, %k : tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token, !tile_gpu.token, !tile_gpu.token
  }
  tile_gpu.async_wait all
  return
}

// All copies of the loop have come, and everyone knows: their bytes are free.
// expected-remark @+1 {{proved: 5 accesses}}
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
  tile_gpu.barrier
  %z = tile_gpu.local_alloc {offset = 4096 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.local_store %x, %z : tensor<64x32xf16, #mix>, !tile_gpu.buffer<64x32xf16, #sh>
  return
}

// A barrier after the wait; of two copies in one group, and with the next group in flight.
// expected-remark @+1 {{proved: 4 accesses}}
func.func @straight(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %b = tile_gpu.local_alloc {offset = 4096 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %b by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  %e = tile_gpu.local_alloc {offset = 8192 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %e by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %u = tile_gpu.async_commit
  tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh> {groups = 1 : i32}
  tile_gpu.barrier
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
  return
}

// Whoever copied an element reads it: the wait is enough.
// expected-remark @+1 {{proved: 2 accesses}}
func.func @own(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh>
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #row>
  return
}

// Waits say by themselves what has come; the names in `ready` prove nothing.
// expected-remark @+1 {{proved: 2 accesses}}
func.func @unnamed(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  tile_gpu.async_wait all
  tile_gpu.barrier
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
  return
}

// By pointers, in one warp.
// expected-remark @+1 {{proved: 2 accesses}}
func.func @pointers(%p: tensor<64x32x!tile.ptr<f16>, #one>, %m: tensor<64x32xi1, #one>) attributes {tile.num_warps = 1 : i32} {
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy %p, %a mask %m : tensor<64x32x!tile.ptr<f16>, #one>, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.warp_barrier
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #other>
  return
}

// A loop in a loop: the inner one begins where the outer one is, which counts with a remainder.
// expected-remark @+1 {{proved: 2 accesses}}
func.func @nested(%x: tensor<64x32xf16, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[4] x 64x32xf16, #sh>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%p = %c0) -> i32 : i32 {
    tile_gpu.barrier
    %q = scf.for %i = %c0 to %n step %c1 iter_args(%s = %p) -> i32 : i32 {
      // Stores to slots p, p + 2, p, ..: the loads are of slots p + 1 and p + 3.
      %w = tile_gpu.local_subview %a[%s] : !tile_gpu.buffer<[4] x 64x32xf16, #sh>
      tile_gpu.local_store %x, %w : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
      %s1 = arith.addi %s, %c1 : i32
      %s2 = arith.remui %s1, %c4 : i32
      %v = tile_gpu.local_subview %a[%s2] : !tile_gpu.buffer<[4] x 64x32xf16, #sh>
      %l = tile_gpu.local_load %v : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
      %s3 = arith.xori %s, %c2 : i32
      scf.yield %s3 : i32
    }
    %p1 = arith.addi %p, %c1 : i32
    %p2 = arith.remui %p1, %c4 : i32
    scf.yield %p2 : i32
  }
  return
}

// Different arguments are different memory, also through what a loop carries and a conditional chooses: stores may pass
// copies in flight.  Those of the argument itself come after the wait and a barrier.
// expected-remark @+1 {{proved: 1 accesses}}
func.func @stores(%v: !tile.view<64x32xf16>, %w: !tile.view<64x32xf16>, %p: !tile.ptr<i32>, %q: !tile.ptr<i32>,
                  %x: tensor<64x32xf16, #col>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  tile.store_view %w[%c0, %c0], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #col>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%at = %p) -> (!tile.ptr<i32>) : i32 {
    %odd = arith.cmpi eq, %i, %n : i32
    %to = scf.if %odd -> (!tile.ptr<i32>) {
      scf.yield %q : !tile.ptr<i32>
    } else {
      scf.yield %at : !tile.ptr<i32>
    }
    tile.store %to, %i : !tile.ptr<i32>
    %next = tile.addptr %to, %c1 : !tile.ptr<i32>, i32
    scf.yield %next : !tile.ptr<i32>
  }
  tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.barrier
  tile.store_view %v[%c0, %c0], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #col>
  return
}

// Pointers that lanes exchange come from where the stored ones come from: %q is not what the copy reads.
// expected-remark @+1 {{proved: 3 accesses}}
func.func @exchanged_pointers(%v: !tile.view<64x32xf16>, %w: !tile.view<64x32xf16>, %q: tensor<64x32x!tile.ptr<f16>, #row>,
                              %x: tensor<64x32xf16, #col>) {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  %s = tile_gpu.local_alloc {offset = 4096 : i32} : !tile_gpu.scratch<16384>
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  %none = ub.poison : tensor<64x32x!tile.ptr<f16>, #col>
  tile_gpu.exchange_store %q, %s {pass = 0 : i32} : tensor<64x32x!tile.ptr<f16>, #row> to #col, !tile_gpu.scratch<16384>
  tile_gpu.barrier
  %to = tile_gpu.exchange_load %s, %none {pass = 0 : i32} : #row, !tile_gpu.scratch<16384> to tensor<64x32x!tile.ptr<f16>, #col>
  tile.store %to, %x : tensor<64x32x!tile.ptr<f16>, #col>
  tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh>
  return
}

// One warp: a barrier of the warp is enough.
// expected-remark @+1 {{proved: 1 accesses}}
func.func @stores_of_one_warp(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #other>) attributes {tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
  tile.store_view %v[%c0, %c0], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #other>
  tile_gpu.warp_barrier
  tile_gpu.async_copy_view %v[%c0, %c0], %a by #one : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  %t = tile_gpu.async_commit
  tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh>
  tile_gpu.warp_barrier
  tile.store_view %v[%c0, %c0], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #other>
  return
}
}
