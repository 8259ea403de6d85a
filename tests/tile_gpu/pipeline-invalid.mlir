// RUN: kiln-opt %s -split-input-file -verify-diagnostics

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
// expected-error @+1 {{a pipeline of 0 slots: 1 to 64}}
func.func @none(%p: !tile_gpu.pipeline<0, !tile_gpu.buffer<64x32xf16, #sh>>)

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
// expected-error @+1 {{a pipeline of 65 slots: 1 to 64}}
func.func @many(%p: !tile_gpu.pipeline<65, !tile_gpu.buffer<64x32xf16, #sh>>)

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
// expected-error @+1 {{in a pipeline's slot: one buffer in shared memory each}}
func.func @several(%p: !tile_gpu.pipeline<2, !tile_gpu.buffer<[3] x 64x32xf16, #sh>>)

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
// expected-error @+1 {{in a pipeline's slot: one buffer in shared memory each}}
func.func @elsewhere(%p: !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf32, #sh, tensor>>)

// -----

// expected-error @+1 {{invalid kind of type specified: expected tile_gpu.buffer, but found 'i32'}}
func.func @number(%p: !tile_gpu.pipeline<2, i32>)

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
// The pipeline of k cannot go where one of v is expected.
func.func @others(%p: !tile_gpu.pipeline<2, !tile_gpu.buffer<"k": 64x32xf16, #sh>>, %c: i1) {
  %v = tile_gpu.pipeline : !tile_gpu.pipeline<2, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
  // expected-note @above {{prior use here}}
  // expected-error @+1 {{expects different type than prior uses}}
  tile_gpu.drain %v : !tile_gpu.pipeline<2, !tile_gpu.buffer<"k": 64x32xf16, #sh>>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @results(%p: !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>) {
  // expected-error @+1 {{operation defines 2 results but was provided 3 to bind}}
  %q, %a, %b = tile_gpu.acquire %p : !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @wrong_state(%p: !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>) {
  // expected-error @+2 {{are incompatible with return type(s) of operation}}
  // expected-error @+1 {{failed to infer returned types}}
  "tile_gpu.wait"(%p) : (!tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>) -> !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @steps(%p: !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  "tile_gpu.commit"(%p) : (!tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>) -> !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @holds_all() {
  // expected-error @+1 {{holds 2 of 2 slots: 0 to 1}}
  %p = tile_gpu.pipeline holding 2 : !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
  tile_gpu.drain %p : !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
  return
}
