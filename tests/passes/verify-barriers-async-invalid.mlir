// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-count-groups --kiln-verify-barriers

// No wait.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @no_wait(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    tile_gpu.barrier
    // expected-error @+2 {{reads bytes that a copy in flight may still write: wait for its group first}}
    // expected-note @+1 {{no async_wait lies on this path}}
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    return
  }
}

// -----

// A wait that leaves the group in flight.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @weak(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    %u = tile_gpu.async_commit
    // expected-note @+1 {{this wait leaves 2 groups in flight: the copy's group has only 1 after it}}
    tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh> {groups = 2 : i32}
    tile_gpu.barrier
    // expected-error @+1 {{reads bytes that a copy in flight may still write: wait for its group first}}
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    return
  }
}

// -----

// No barrier between the wait and the others who read.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @no_barrier(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{the write}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    tile_gpu.barrier
    tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-error @+2 {{this read of shared memory races with a write before it: different warps touch the same bytes, and no barrier of the block lies between}}
    // expected-note @+1 {{put a tile_gpu.barrier}}
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    return
  }
}

// -----

// Nobody committed the copy: no wait is for it.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @no_commit(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.async_wait all
    tile_gpu.barrier
    // expected-error @+2 {{reads bytes that a copy in flight may still write: wait for its group first}}
    // expected-note @+1 {{no async_commit on this path puts it into a group}}
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    return
  }
}

// -----

// Committed after the wait.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @late_commit(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{this wait leaves 0 groups in flight: the copy is in a later one}}
    tile_gpu.async_wait all
    %u = tile_gpu.async_commit
    tile_gpu.barrier
    // expected-error @+1 {{reads bytes that a copy in flight may still write: wait for its group first}}
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    return
  }
}

// -----

// Even the thread that copied has to wait.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @own(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    // expected-error @+2 {{reads bytes that a copy in flight may still write: wait for its group first}}
    // expected-note @+1 {{no async_wait}}
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #row>
    return
  }
}

// -----

// One arm does not wait.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @one_arm(%v: !tile.view<64x32xf16>, %p: i1) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    // expected-note @+1 {{the path goes past the conditional}}
    scf.if %p {
      tile_gpu.async_wait all
    }
    tile_gpu.barrier
    // expected-error @+2 {{reads bytes that a copy in flight may still write: wait for its group first}}
    // expected-note @+1 {{no async_wait}}
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    return
  }
}

// -----

// A buffer that shares bytes of a copy in flight.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @shared(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    %z = tile_gpu.local_alloc {offset = 2048 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-error @+2 {{writes bytes that a copy in flight may still write: wait for its group first}}
    // expected-note @+1 {{no async_wait}}
    tile_gpu.local_store %x, %z : tensor<64x32xf16, #mix>, !tile_gpu.buffer<64x32xf16, #sh>
    return
  }
}

// -----

// Which slot is copied to is not known.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @unknown(%v: !tile.view<64x32xf16>, %i: i32) {
    %c0 = arith.constant 0 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
    %a = tile_gpu.local_subview %b[%i] : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
    %d = tile_gpu.local_subview %b[%c0] : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    // expected-error @+2 {{cannot be proved: whether this reads bytes that a copy in flight may still write depends on the index %}}
    // expected-note @+1 {{no async_wait}}
    %l = tile_gpu.local_load %d : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #col>
    return
  }
}

// -----

// A copy begins before the barrier that says that everyone has read the slot.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
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
    // expected-note @+1 {{the path goes into the loop's next round}}
    %r:5 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %read = %c0, %write = %c2, %k0 = %t0, %k1 = %t1)
        -> (tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token) : i32 {
      %ar = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
      %next = arith.addi %i, %c2 : i32
      %more = arith.cmpi slt, %next, %n : i32
      // expected-note @+1 {{the path goes into the 'then' arm}}
      scf.if %more {
        %aw = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
        // expected-error @+2 {{this write to shared memory races with a read before it}}
        // expected-note @+1 {{put a tile_gpu.barrier}}
        tile_gpu.async_copy_view %v[%next, %c0], %aw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
      }
      %k = tile_gpu.async_commit
      tile_gpu.async_wait %k0 ready %ar : !tile_gpu.buffer<64x32xf16, #sh>
      tile_gpu.barrier
      // expected-note @+1 {{the read}}
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
}

// -----

// The slot that is read is copied to.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @same_slot(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>, %n: i32) {
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
        %aw = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
        // expected-note @+1 {{the copy}}
        tile_gpu.async_copy_view %v[%next, %c0], %aw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
      }
      %k = tile_gpu.async_commit
      // expected-error @+2 {{reads bytes that a copy in flight may still write: wait for its group first}}
      // expected-note @+1 {{no async_wait}}
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
}

// -----

// Two slots where two groups are in flight and a third slot is read.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @two_for_three(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %cs = arith.constant 2 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf16, #col>
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
    %p0 = arith.cmpi sgt, %n, %c0 : i32
    %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
    scf.if %p0 {
      tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %t0 = tile_gpu.async_commit
    %p1 = arith.cmpi sgt, %n, %c1 : i32
    %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
    scf.if %p1 {
      tile_gpu.async_copy_view %v[%c1, %c0], %a1 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %t1 = tile_gpu.async_commit
    %r:5 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %read = %c0, %write = %c0, %k0 = %t0, %k1 = %t1)
        -> (tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token) : i32 {
      %ar = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
      tile_gpu.async_wait %k0 ready %ar : !tile_gpu.buffer<64x32xf16, #sh>
      tile_gpu.barrier
      %next = arith.addi %i, %c2 : i32
      %more = arith.cmpi slt, %next, %n : i32
      scf.if %more {
        %aw = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[2] x 64x32xf16, #sh>
        // expected-note @+1 {{the copy}}
        tile_gpu.async_copy_view %v[%next, %c0], %aw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
      }
      %k = tile_gpu.async_commit
      // expected-error @+2 {{reads bytes that a copy in flight may still write: wait for its group first}}
      // expected-note @+1 {{no async_wait}}
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
}

// -----

// A round waits for one group too few.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @loop_weak(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #mix>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %cs = arith.constant 3 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf16, #col>
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    %p0 = arith.cmpi sgt, %n, %c0 : i32
    %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    scf.if %p0 {
      // expected-note @+1 {{the copy}}
      tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %t0 = tile_gpu.async_commit
    %p1 = arith.cmpi sgt, %n, %c1 : i32
    %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    // expected-note @+1 {{the path goes past the conditional}}
    scf.if %p1 {
      tile_gpu.async_copy_view %v[%c1, %c0], %a1 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    }
    %t1 = tile_gpu.async_commit
    // expected-note @+1 {{the path goes into the loop}}
    %r:5 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %read = %c0, %write = %c2, %k0 = %t0, %k1 = %t1)
        -> (tensor<64x32xf16, #col>, i32, i32, !tile_gpu.token, !tile_gpu.token) : i32 {
      %ar = tile_gpu.local_subview %a[%read] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
      // expected-note @+1 {{this wait leaves 2 groups in flight: the copy's group has only 1 after it}}
      tile_gpu.async_wait %k0 ready %ar : !tile_gpu.buffer<64x32xf16, #sh> {groups = 2 : i32}
      tile_gpu.barrier
      %next = arith.addi %i, %c2 : i32
      %more = arith.cmpi slt, %next, %n : i32
      // expected-note @+1 {{the path goes past the conditional}}
      scf.if %more {
        %aw = tile_gpu.local_subview %a[%write] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
        tile_gpu.async_copy_view %v[%next, %c0], %aw by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
      }
      %k = tile_gpu.async_commit
      // expected-error @+1 {{reads bytes that a copy in flight may still write: wait for its group first}}
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
}

// -----

// Global memory that a copy in flight still reads.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @overwritten(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #col>) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    tile_gpu.barrier
    // expected-error @+2 {{this writes memory that a copy in flight may still read: wait for its group first}}
    // expected-note @+1 {{no async_wait lies on this path}}
    tile.store_view %v[%c0, %c0], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #col>
    tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh>
    return
  }
}

// -----

// This warp has waited, others have not.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @overwritten_early(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #col>) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-error @+2 {{this writes memory that a copy of another warp may still read}}
    // expected-note @+1 {{put a tile_gpu.barrier on this path, after the wait}}
    tile.store_view %v[%c0, %c0], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #col>
    return
  }
}

// -----

// A copy reads what other warps have yet to store.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @read_early(%v: !tile.view<64x32xf16>, %x: tensor<64x32xf16, #col>) {
    %c0 = arith.constant 0 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{the store}}
    tile.store_view %v[%c0, %c0], %x : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #col>
    // expected-error @+2 {{this copy reads memory that a store before it writes}}
    // expected-note @+1 {{put a tile_gpu.barrier on this path}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    tile_gpu.async_wait %t ready %a : !tile_gpu.buffer<64x32xf16, #sh>
    return
  }
}

// -----

// Nobody knows where the pointer points; copies of the round before are in flight.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @anywhere(%v: !tile.view<64x32xf16>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    // expected-note @+1 {{the copy}}
    tile_gpu.async_copy_view %v[%c0, %c0], %a by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    %t = tile_gpu.async_commit
    // expected-note @+1 {{the path goes into the loop}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %q = ub.poison : !tile.ptr<i32>
      %r = tile.addptr %q, %i : !tile.ptr<i32>, i32
      // expected-error @+2 {{cannot be proved: whether this writes memory that a copy in flight may still read depends on where}}
      // expected-note @+1 {{no async_wait lies on this path}}
      %old = tile.atomic_rmw add relaxed gpu %r, %c1 : !tile.ptr<i32>
    }
    tile_gpu.async_wait all
    return
  }
}
