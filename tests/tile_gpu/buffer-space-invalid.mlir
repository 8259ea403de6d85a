// RUN: kiln-opt %s -split-input-file -verify-diagnostics

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
// expected-error @+1 {{no memory is called 'local': shared, tensor}}
func.func private @word(!tile_gpu.buffer<64x32xf16, #sh, local>)

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @load(%b: !tile_gpu.buffer<64x32xf16, #sh, tensor>) {
  // expected-error @+1 {{operand #0 must be A tile in shared memory, but got '!tile_gpu.buffer<64x32xf16}}
  %x = tile_gpu.local_load %b : !tile_gpu.buffer<64x32xf16, #sh, tensor> to tensor<64x32xf16, #row>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @alloc() {
  // expected-error @+1 {{result #0 must be A tile in shared memory or Bytes of shared memory that a conversion plan lays out}}
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf16, #sh, tensor>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @other(%b: !tile_gpu.buffer<[2] x 64x32xf16, #sh, tensor>, %i: i32) {
  // expected-error @+1 {{cannot be '!tile_gpu.buffer<64x32xf16}}
  %s = "tile_gpu.local_subview"(%b, %i) : (!tile_gpu.buffer<[2] x 64x32xf16, #sh, tensor>, i32)
     -> !tile_gpu.buffer<64x32xf16, #sh>
  return
}
