// RUN: kiln-opt %s -verify-diagnostics --kiln-verify-barriers=remarks

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>

module attributes {tile_gpu.target = "sm_80"} {

// expected-remark @+1 {{proved: 2 accesses}}
func.func @by_hand(%x: tensor<64x32xf32, #row>) -> tensor<64x32xf32, #col> {
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.barrier
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
  return %l : tensor<64x32xf32, #col>
}

// A named barrier of all threads counts.
// expected-remark @+1 {{proved: 2 accesses}}
func.func @named(%x: tensor<64x32xf32, #row>) -> tensor<64x32xf32, #col> {
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.named_barrier 1, threads 128
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
  return %l : tensor<64x32xf32, #col>
}

// Buffers that do not overlap, and buffers of one allocation by constant index.
// expected-remark @+1 {{proved: 4 accesses}}
func.func @apart(%x: tensor<64x32xf32, #row>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
  %b = tile_gpu.local_alloc {offset = 8192 : i32} : !tile_gpu.buffer<[2] x 64x32xf32, #sh>
  %b0 = tile_gpu.local_subview %b[%c0] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>
  %b1 = tile_gpu.local_subview %b[%c1] : !tile_gpu.buffer<[2] x 64x32xf32, #sh>
  tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %b0 : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  %l = tile_gpu.local_load %b1 : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
  %m = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #row>
  return
}

// The barrier lies on every path: after the conditional.
// expected-remark @+1 {{proved: 2 accesses}}
func.func @both_paths(%x: tensor<64x32xf32, #row>, %p: i1) {
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
  scf.if %p {
    tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  }
  tile_gpu.barrier
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x32xf32, #sh> to tensor<64x32xf32, #col>
  return
}

// They overlap, but 4096 bytes are 32 rows: the same thread has both.
// expected-remark @+1 {{proved: 2 accesses}}
func.func @same_threads(%x: tensor<64x32xf32, #row>) {
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
  %b = tile_gpu.local_alloc {offset = 4096 : i32} : !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %a : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  tile_gpu.local_store %x, %b : tensor<64x32xf32, #row>, !tile_gpu.buffer<64x32xf32, #sh>
  return
}
}
