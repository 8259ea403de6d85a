// RUN: kiln-opt %s --kiln-allocate-shared=spread=false | FileCheck %s

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#tma = #tile_gpu.tma<swizzle=128>
#sums = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>

module attributes {tile_gpu.target = "sm_80"} {

// No buffer: no bytes.
// CHECK-LABEL: @none
// CHECK-SAME: tile_gpu.shared_bytes = 0 : i32
func.func @none() {
  return
}

// Buffers that are never alive together share bytes; those that are do not.
// CHECK-LABEL: @share
// CHECK-SAME: tile_gpu.shared_bytes = 16384 : i32
// CHECK: local_alloc {offset = 0 : i32}
// CHECK: local_alloc {offset = 8192 : i32}
// CHECK: local_alloc {offset = 0 : i32}
func.func @share(%x: tensor<64x32xf32, #row>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #row>
  %c = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %c : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  return
}

// What enters a loop lives through all of it, views included; what is made inside may share with what comes later.
// CHECK-LABEL: @loop
// CHECK-SAME: tile_gpu.shared_bytes = 24576 : i32
// CHECK: local_alloc {offset = 0 : i32} : !tile_gpu.buffer<[2]
// CHECK: local_alloc {offset = 16384 : i32}
// CHECK: local_alloc {offset = 0 : i32}
func.func @loop(%x: tensor<64x32xf32, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<[2] x 64x32xf32, #sh>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %s = tile_gpu.local_subview %a[%i] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>
    tile_gpu.local_store %x, %s : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.local_store %x, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  }
  %c = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %c : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  return
}

// The arms of a conditional share.
// CHECK-LABEL: @arms
// CHECK-SAME: tile_gpu.shared_bytes = 8192 : i32
func.func @arms(%x: tensor<64x32xf32, #row>, %p: i1) {
  scf.if %p {
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  } else {
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.local_store %x, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  }
  return
}

// A buffer that a loop carries lives through it.
// CHECK-LABEL: @carried
// CHECK-SAME: tile_gpu.shared_bytes = 16384 : i32
func.func @carried(%x: tensor<64x32xf32, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %a) -> (!tile_gpu.buffer<64x32xf32, #sh>) : i32 {
    tile_gpu.local_store %x, %o : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    scf.yield %b : !tile_gpu.buffer<64x32xf32, #sh>
  }
  return
}

// Alignment: 1024 for TMA's 128-byte swizzle, 16 else.  A small buffer has bytes of its own though it would fit into
// those of another one.
// CHECK-LABEL: @align
// CHECK: local_alloc {offset = 8192 : i32} : !tile_gpu.buffer<8xf32
// CHECK: local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32
func.func @align(%v: tensor<8xf32, #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>>, %x: tensor<64x32xf32, #row>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<8xf32, #sh>
  tile_gpu.local_store %v, %a : tensor<8xf32, #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>>, !tile_gpu.buffer<8xf32, #sh>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #tma>
  tile_gpu.local_store %x, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #tma>
  return
}

// What asynchronous copies write is theirs until a wait for all of them: not the last read, and not the end of the
// conditional that copies.
// CHECK-LABEL: @landing
// CHECK: local_alloc {offset = 0 : i32}
// CHECK: async_copy_view
// CHECK: local_alloc {offset = 8192 : i32}
// CHECK: async_wait all
// CHECK: local_alloc {offset = 0 : i32}
func.func @landing(%view: !tile.view<64x32xf32>, %x: tensor<64x32xf32, #row>, %c: i1) {
  %zero = arith.constant 0 : i32
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  %read = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #row>
  scf.if %c {
    tile_gpu.async_copy_view %view[%zero, %zero], %a by #row : !tile.view<64x32xf32>, i32, !tile_gpu.buffer<64x32xf32, #sh>
  }
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  %group = tile_gpu.async_commit
  tile_gpu.async_wait all
  %d = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %d : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  return
}

// A copy of no group lands nowhere, a wait that leaves groups in flight is none, and what a round's copies write is
// still being written in the next.
// CHECK-LABEL: @under_way
// CHECK: local_alloc {offset = 0 : i32}
// CHECK: async_wait all
// CHECK: local_alloc {offset = 8192 : i32}
// CHECK-LABEL: @some_groups
// CHECK: local_alloc {offset = 0 : i32}
// CHECK: async_wait all
// CHECK: local_alloc {offset = 8192 : i32}
// CHECK-LABEL: @next_round
// CHECK: local_alloc {offset = [[A:[0-9]+]] : i32}
// CHECK-NOT: local_alloc {offset = [[A]] : i32}
// CHECK: return
func.func @under_way(%view: !tile.view<64x32xf32>, %x: tensor<64x32xf32, #row>) {
  %zero = arith.constant 0 : i32
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.async_copy_view %view[%zero, %zero], %a by #row : !tile.view<64x32xf32>, i32, !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.async_wait all
  %d = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %d : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  return
}
func.func @some_groups(%view: !tile.view<64x32xf32>, %x: tensor<64x32xf32, #row>) {
  %zero = arith.constant 0 : i32
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.async_copy_view %view[%zero, %zero], %a by #row : !tile.view<64x32xf32>, i32, !tile_gpu.buffer<64x32xf32, #sh>
  %group = tile_gpu.async_commit
  tile_gpu.async_wait all {groups = 1 : i32}
  %d = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %d : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  return
}
func.func @next_round(%view: !tile.view<64x32xf32>, %x: tensor<64x32xf32, #row>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.local_store %x, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.async_copy_view %view[%zero, %zero], %a by #row : !tile.view<64x32xf32>, i32, !tile_gpu.buffer<64x32xf32, #sh>
    %group = tile_gpu.async_commit
  }
  tile_gpu.async_wait all
  return
}

// A product in flight holds its operands until it is waited for in both arms: in one arm alone is not enough.
// CHECK-LABEL: @both_arms
// CHECK-SAME: tile_gpu.shared_bytes = 8192 : i32
// CHECK-LABEL: @one_arm
// CHECK-SAME: tile_gpu.shared_bytes = 16384 : i32
func.func @both_arms(%x: tensor<64x64xbf16, #row>, %c: tensor<64x64xf32, #sums>, %which: i1) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #tma>
  %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<64x64xf32, #sums>>
  %q = tile_gpu.warpgroup_dot %a, %a, %p : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.pending<tensor<64x64xf32, #sums>>
  scf.if %which {
    %d = tile_gpu.warpgroup_wait %q : tensor<64x64xf32, #sums>
  } else {
    %d = tile_gpu.warpgroup_wait %q : tensor<64x64xf32, #sums>
  }
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.local_store %x, %b : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #tma>
  return
}
func.func @one_arm(%x: tensor<64x64xbf16, #row>, %c: tensor<64x64xf32, #sums>, %which: i1) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #tma>
  %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<64x64xf32, #sums>>
  %q = tile_gpu.warpgroup_dot %a, %a, %p : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.pending<tensor<64x64xf32, #sums>>
  scf.if %which {
    %d = tile_gpu.warpgroup_wait %q : tensor<64x64xf32, #sums>
  }
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.local_store %x, %b : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #tma>
  return
}

// An author's offset stays.
// CHECK-LABEL: @fixed
// CHECK-SAME: tile_gpu.shared_bytes = 12288 : i32
// CHECK: local_alloc {offset = 4096 : i32}
func.func @fixed(%x: tensor<64x32xf32, #row>) {
  %a = tile_gpu.local_alloc {offset = 4096 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  return
}
}
