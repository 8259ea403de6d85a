// Free bytes save barriers: buffers that follow each other closely lie apart.
// RUN: kiln-opt %s --kiln-allocate-shared --kiln-insert-barriers --kiln-verify-barriers | FileCheck %s
// RUN: kiln-opt %s --kiln-allocate-shared=spread=false --kiln-insert-barriers --kiln-verify-barriers | FileCheck %s --check-prefix=SHARED

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,2], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[2,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>

module attributes {tile_gpu.target = "sm_80"} {

// Two exchanges a round in two places: of the four barriers that one place needs, each keeps its own.
// CHECK-LABEL: @two
// CHECK-SAME: tile_gpu.shared_bytes = 2048 : i32
// CHECK: scf.for
// CHECK-NEXT: local_alloc {offset = [[A:[0-9]+]] : i32}
// CHECK-NEXT: local_store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: local_load
// CHECK-NEXT: local_alloc
// CHECK-NOT: offset = [[A]] :
// CHECK-NEXT: local_store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: local_load
// CHECK-NEXT: scf.yield
// SHARED-LABEL: @two
// SHARED-SAME: tile_gpu.shared_bytes = 1024 : i32
// SHARED-COUNT-4: tile_gpu.barrier
func.func @two(%x: tensor<16x16xf32, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<16x16xf32, #row>) : i32 {
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<16x16xf32, #sh>
    tile_gpu.local_store %y, %a : tensor<16x16xf32, #row>, !tile_gpu.buffer<16x16xf32, #sh>
    %1 = tile_gpu.local_load %a : !tile_gpu.buffer<16x16xf32, #sh> to tensor<16x16xf32, #col>
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<16x16xf32, #sh>
    tile_gpu.local_store %y, %b : tensor<16x16xf32, #row>, !tile_gpu.buffer<16x16xf32, #sh>
    %2 = tile_gpu.local_load %b : !tile_gpu.buffer<16x16xf32, #sh> to tensor<16x16xf32, #col>
    scf.yield %y : tensor<16x16xf32, #row>
  }
  return
}

// The first follows the last of the round before: an odd number takes a third place.
// CHECK-LABEL: @three
// CHECK-SAME: tile_gpu.shared_bytes = 3072 : i32
// CHECK-COUNT-3: tile_gpu.barrier
// CHECK-NOT: tile_gpu.barrier
func.func @three(%x: tensor<16x16xf32, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<16x16xf32, #row>) : i32 {
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<16x16xf32, #sh>
    tile_gpu.local_store %y, %a : tensor<16x16xf32, #row>, !tile_gpu.buffer<16x16xf32, #sh>
    %1 = tile_gpu.local_load %a : !tile_gpu.buffer<16x16xf32, #sh> to tensor<16x16xf32, #col>
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<16x16xf32, #sh>
    tile_gpu.local_store %y, %b : tensor<16x16xf32, #row>, !tile_gpu.buffer<16x16xf32, #sh>
    %2 = tile_gpu.local_load %b : !tile_gpu.buffer<16x16xf32, #sh> to tensor<16x16xf32, #col>
    %c = tile_gpu.local_alloc : !tile_gpu.buffer<16x16xf32, #sh>
    tile_gpu.local_store %y, %c : tensor<16x16xf32, #row>, !tile_gpu.buffer<16x16xf32, #sh>
    %3 = tile_gpu.local_load %c : !tile_gpu.buffer<16x16xf32, #sh> to tensor<16x16xf32, #col>
    scf.yield %y : tensor<16x16xf32, #row>
  }
  return
}

// Each thread writes to the second buffer where it read from the first: no barrier is saved, no byte spent.
// CHECK-LABEL: @own_elements
// CHECK-SAME: tile_gpu.shared_bytes = 1024 : i32
// CHECK-COUNT-2: tile_gpu.barrier
// CHECK-NOT: tile_gpu.barrier
func.func @own_elements(%x: tensor<16x16xf32, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<16x16xf32, #row>) : i32 {
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<16x16xf32, #sh>
    tile_gpu.local_store %y, %a : tensor<16x16xf32, #row>, !tile_gpu.buffer<16x16xf32, #sh>
    %1 = tile_gpu.local_load %a : !tile_gpu.buffer<16x16xf32, #sh> to tensor<16x16xf32, #col>
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<16x16xf32, #sh>
    tile_gpu.local_store %1, %b : tensor<16x16xf32, #col>, !tile_gpu.buffer<16x16xf32, #sh>
    %2 = tile_gpu.local_load %b : !tile_gpu.buffer<16x16xf32, #sh> to tensor<16x16xf32, #row>
    scf.yield %2 : tensor<16x16xf32, #row>
  }
  return
}

// What stands after the innermost loop costs one barrier, not one a round: bytes are not spent on it.
// CHECK-LABEL: @after_the_loop
// CHECK-SAME: tile_gpu.shared_bytes = 1024 : i32
func.func @after_the_loop(%x: tensor<16x16xf32, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<16x16xf32, #sh>
    tile_gpu.local_store %x, %a : tensor<16x16xf32, #row>, !tile_gpu.buffer<16x16xf32, #sh>
    %1 = tile_gpu.local_load %a : !tile_gpu.buffer<16x16xf32, #sh> to tensor<16x16xf32, #col>
  }
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<16x16xf32, #sh>
  tile_gpu.local_store %x, %b : tensor<16x16xf32, #row>, !tile_gpu.buffer<16x16xf32, #sh>
  %2 = tile_gpu.local_load %b : !tile_gpu.buffer<16x16xf32, #sh> to tensor<16x16xf32, #col>
  return
}

// 8 KiB of 164, for 16 blocks that the warps allow: 16 KiB would leave 9.
// CHECK-LABEL: @fewer_blocks
// CHECK-SAME: tile_gpu.shared_bytes = 8192 : i32
func.func @fewer_blocks(%x: tensor<64x32xf32, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<64x32xf32, #row>) : i32 {
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.local_store %y, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    %1 = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.local_store %y, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    %2 = tile_gpu.local_load %b : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    scf.yield %y : tensor<64x32xf32, #row>
  }
  return
}

// The same with 128 registers a thread carried round the loop: 4 blocks, so 41 KiB each, of which half are spent.
// CHECK-LABEL: @many_registers
// CHECK-SAME: tile_gpu.shared_bytes = 16384 : i32
func.func @many_registers(%x: tensor<64x32xf32, #row>, %s: tensor<128x128xf32, #row>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r, %t = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x, %u = %s) -> (tensor<64x32xf32, #row>, tensor<128x128xf32, #row>) : i32 {
    %v = arith.addf %u, %u : tensor<128x128xf32, #row>
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.local_store %y, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    %1 = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.local_store %y, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    %2 = tile_gpu.local_load %b : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    scf.yield %y, %v : tensor<64x32xf32, #row>, tensor<128x128xf32, #row>
  }
  return
}

// With a limit of 64 registers the kernel may have twice as many blocks: too few bytes for two places.
// CHECK-LABEL: @limited_registers
// CHECK-SAME: tile_gpu.shared_bytes = 8192 : i32
func.func @limited_registers(%x: tensor<64x32xf32, #row>, %s: tensor<128x128xf32, #row>, %n: i32) attributes {tile.max_registers = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r, %t = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x, %u = %s) -> (tensor<64x32xf32, #row>, tensor<128x128xf32, #row>) : i32 {
    %v = arith.addf %u, %u : tensor<128x128xf32, #row>
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.local_store %y, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    %1 = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
    tile_gpu.local_store %y, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
    %2 = tile_gpu.local_load %b : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
    scf.yield %y, %v : tensor<64x32xf32, #row>, tensor<128x128xf32, #row>
  }
  return
}

}
