// RUN: kiln-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{not a layout}}
func.func @f(%x: tensor<64x32xf16, #tile_gpu.blockd<sizePerThread=[1,4]>>) {
  return
}

// -----

// expected-error @+1 {{does not fit a tile of [64, 34]}}
func.func @f(%x: tensor<64x34xf16, #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1]>>) {
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
func.func @f(%x: tensor<64x32xf16>) {
  // expected-error @+1 {{needs a layout}}
  %0 = tile_gpu.convert_layout %x : tensor<64x32xf16> to tensor<64x32xf16>
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
func.func @f(%x: tensor<64x32xf16, #row>) {
  // expected-error @+1 {{it changes layouts only}}
  %0 = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf32, #row>
  return
}

// -----

// expected-error @+1 {{is no shared layout}}
func.func @f(%x: !tile_gpu.buffer<64xf16, #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4]>>) {
  return
}

// -----

func.func @f(%x: tensor<64x32xf16, #tile_gpu.mma<version=2, warpsPerCTA=[4,1]>>, %b: !tile_gpu.buffer<64x64xf16, #tile_gpu.tma<swizzle=128>>) {
  // expected-error @+1 {{shapes and element types must be equal}}
  tile_gpu.local_store %x, %b : tensor<64x32xf16, #tile_gpu.mma<version=2, warpsPerCTA=[4,1]>>, !tile_gpu.buffer<64x64xf16, #tile_gpu.tma<swizzle=128>>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
func.func @f(%b: !tile_gpu.buffer<[2] x 64x32xf16, #sh>) {
  // expected-error @+1 {{needs one buffer of the 2: take a tile_gpu.local_subview}}
  %0 = tile_gpu.local_load %b : !tile_gpu.buffer<[2] x 64x32xf16, #sh> to tensor<64x32xf16, #tile_gpu.mma<version=2, warpsPerCTA=[4,1]>>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
func.func @f(%b: !tile_gpu.buffer<32x32xf16, #sh>) {
  // expected-error @+1 {{the element at step 1 of dimension 0 lies at byte}}
  %0 = tile_gpu.local_transpose %b [1, 0] : !tile_gpu.buffer<32x32xf16, #sh> to !tile_gpu.buffer<32x32xf16, #sh>
  return
}

// -----

// Alike at every power of two, and nowhere else.
func.func @f(%b: !tile_gpu.buffer<4xi8, #tile_gpu.padded<interval=2, pad=1>>) {
  // expected-error @+1 {{place their elements differently}}
  %0 = tile_gpu.local_transpose %b [0] : !tile_gpu.buffer<4xi8, #tile_gpu.padded<interval=2, pad=1>> to !tile_gpu.buffer<4xi8, #tile_gpu.shared_linear<offset=[[1], [3]]>>
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
func.func @f(%x: tensor<64x32xf16, #row>) {
  %s = tile_gpu.local_alloc : !tile_gpu.scratch<4096>
  // expected-error @+1 {{is no layout of tiles}}
  tile_gpu.exchange_store %x, %s {pass = 0 : i32} : tensor<64x32xf16, #row> to 5 : i32, !tile_gpu.scratch<4096>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{barrier 16: named barriers are 1 to 15}}
  tile_gpu.named_barrier 16, threads 128
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{100 threads: a multiple of 32 from 32 to 1024}}
  tile_gpu.named_arrive 1, threads 100
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{takes either a seed or a warp}}
  tile_gpu.delay 1
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{takes either a seed or a warp}}
  tile_gpu.delay 1 seed 1 warp 1
  return
}
