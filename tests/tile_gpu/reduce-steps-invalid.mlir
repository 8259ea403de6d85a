// RUN: kiln-opt %s -split-input-file -verify-diagnostics

#v = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
func.func @axis(%x: tensor<512xf32, #v>) {
  // expected-error @+1 {{axis 1 is not in 0 .. 0}}
  %r = tile_gpu.reduce_partial(%x) {axis = 1 : i32} : tensor<512xf32, #v> to tensor<4xf32, #v> {
  ^bb0(%a: f32, %b: f32):
    tile_gpu.yield %a : f32
  }
  return
}

// -----

func.func @no_layout(%x: tensor<512xf32>) {
  // expected-error @+1 {{needs layouts on}}
  %r = tile_gpu.reduce_partial(%x) {axis = 0 : i32} : tensor<512xf32> to tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    tile_gpu.yield %a : f32
  }
  return
}

// -----

#v = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[1,32], warpsPerCTA=[1,4], order=[1,0]>
func.func @shape(%x: tensor<8x512xf32, #v>) {
  // expected-error @+1 {{cannot hold partial results of}}
  %r = tile_gpu.reduce_partial(%x) {axis = 1 : i32} : tensor<8x512xf32, #v> to tensor<4x8xf32, #v> {
  ^bb0(%a: f32, %b: f32):
    tile_gpu.yield %a : f32
  }
  return
}

// -----

#v = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
func.func @region(%x: tensor<512xf32, #v>) {
  // expected-error @+1 {{its region takes ('i32', 'i32'), expected two of ('f32')}}
  %r = tile_gpu.reduce_partial(%x) {axis = 0 : i32} : tensor<512xf32, #v> to tensor<4xf32, #v> {
  ^bb0(%a: i32, %b: i32):
    tile_gpu.yield %a : i32
  }
  return
}

// -----

#v = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
func.func @totals(%x: tensor<512xf32, #v>) {
  // expected-error @+1 {{each operand's type, then a tile of totals for each}}
  %r = tile_gpu.scan_partial(%x) {axis = 0 : i32} : tensor<512xf32, #v> to tensor<512xf32, #v> {
  ^bb0(%a: f32, %b: f32):
    tile_gpu.yield %a : f32
  }
  return
}

// -----

#v = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
func.func @apply(%x: tensor<512xf32, #v>) {
  // expected-error @+1 {{its operands are tiles, then a tile of totals for each}}
  %r = tile_gpu.scan_apply(%x) {axis = 0 : i32} : tensor<512xf32, #v> to tensor<512xf32, #v> {
  ^bb0(%a: f32, %b: f32):
    tile_gpu.yield %a : f32
  }
  return
}

// -----

#v = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
func.func @gather(%i: tensor<128xi32, #v>) {
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #sh>
  // expected-error @+1 {{takes indices of [64, 32]}}
  %g = tile_gpu.gather_shared %b[%i] {axis = 0 : i32} : !tile_gpu.buffer<64x32xf32, #sh>, tensor<128xi32, #v> to tensor<128xf32, #v>
  return
}

// -----

#v = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
func.func @ring(%i: tensor<128xi32, #v>) {
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<[3] x 512xf32, #sh>
  // expected-error @+1 {{needs one buffer of the 3}}
  %g = tile_gpu.gather_shared %b[%i] {axis = 0 : i32} : !tile_gpu.buffer<[3] x 512xf32, #sh>, tensor<128xi32, #v> to tensor<128xf32, #v>
  return
}

// -----

#p = #tile_gpu.linear<register=[[1],[2]], lane=[[0],[0],[0],[0],[0]], warp=[[0],[0]], shape=[4]>
func.func @before(%t: tensor<4xf32, #p>) {
  // expected-error @+1 {{each operand's type, of one at least}}
  %r = tile_gpu.scan_before(%t) : tensor<4xf32, #p> to tensor<4xi32, #p> {
  ^bb0(%a: f32, %b: f32):
    tile_gpu.yield %a : f32
  }
  return
}

// -----

#p = #tile_gpu.linear<register=[[1],[2]], lane=[[0],[0],[0],[0],[0]], warp=[[0],[0]], shape=[4]>
func.func @before_region(%t: tensor<4xf32, #p>) {
  // expected-error @+1 {{its region takes ('f32'), expected two of ('f32')}}
  %r = tile_gpu.scan_before(%t) : tensor<4xf32, #p> to tensor<4xf32, #p> {
  ^bb0(%a: f32):
    tile_gpu.yield %a : f32
  }
  return
}

// -----

func.func @before_layout(%t: tensor<4xf32>) {
  // expected-error @+1 {{needs a layout on}}
  %r = tile_gpu.scan_before(%t) : tensor<4xf32> to tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    tile_gpu.yield %a : f32
  }
  return
}
