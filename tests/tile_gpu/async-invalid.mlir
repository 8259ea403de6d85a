// RUN: kiln-opt %s -split-input-file -verify-diagnostics

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @shape(%p: tensor<64x32x!tile.ptr<f16>, #row>, %b: !tile_gpu.buffer<32x32xf16, #sh>) {
  // expected-error @+1 {{copies a tile of [64, 32] 'f16' into '!tile_gpu.buffer<32x32xf16}}
  tile_gpu.async_copy %p, %b : tensor<64x32x!tile.ptr<f16>, #row>, !tile_gpu.buffer<32x32xf16, #sh>
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @element(%v: !tile.view<64x32xf16>, %b: !tile_gpu.buffer<64x32xbf16, #sh>, %i: i32) {
  // expected-error @+1 {{shapes and element types must be equal}}
  tile_gpu.async_copy_view %v[%i, %i], %b by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xbf16, #sh>
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @slots(%p: tensor<64x32x!tile.ptr<f16>, #row>, %b: !tile_gpu.buffer<[2] x 64x32xf16, #sh>) {
  // expected-error @+1 {{needs one buffer of the 2: take a tile_gpu.local_subview}}
  tile_gpu.async_copy %p, %b : tensor<64x32x!tile.ptr<f16>, #row>, !tile_gpu.buffer<[2] x 64x32xf16, #sh>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @layout(%p: tensor<64x32x!tile.ptr<f16>>, %b: !tile_gpu.buffer<64x32xf16, #sh>) {
  // expected-error @+1 {{needs a layout on 'tensor<64x32x!tile.ptr<f16>>'}}
  tile_gpu.async_copy %p, %b : tensor<64x32x!tile.ptr<f16>>, !tile_gpu.buffer<64x32xf16, #sh>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @by(%v: !tile.view<64x32xf16>, %b: !tile_gpu.buffer<64x32xf16, #sh>, %i: i32) {
  // expected-error @+1 {{is no layout of tiles}}
  tile_gpu.async_copy_view %v[%i, %i], %b by #sh : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @coordinates(%v: !tile.view<64x32xf16>, %b: !tile_gpu.buffer<64x32xf16, #sh>, %i: i32) {
  // expected-error @+1 {{gives 1 coordinates in}}
  tile_gpu.async_copy_view %v[%i], %b by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @ready(%b: !tile_gpu.buffer<[3] x 64x32xf16, #sh>) {
  %t = tile_gpu.async_commit
  // expected-error @+1 {{names all of '!tile_gpu.buffer<[3] x 64x32xf16}}
  tile_gpu.async_wait %t ready %b : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
  return
}

// -----

func.func @groups() {
  %t = tile_gpu.async_commit
  // expected-error @+1 {{leaves 64 groups in flight: 0 to 63}}
  tile_gpu.async_wait %t {groups = 64 : i32}
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
// A loop that carries K's buffer cannot go on with V's.
// expected-note @+1 {{prior use here}}
func.func @v_for_k(%k: !tile_gpu.buffer<"k": 64x32xf16, #sh>, %v: !tile_gpu.buffer<"v": 64x32xf16, #sh>, %n: i32) {
  %one = arith.constant 1 : i32
  %r = scf.for %i = %one to %n step %one iter_args(%b = %k) -> (!tile_gpu.buffer<"k": 64x32xf16, #sh>) : i32 {
    // expected-error @+1 {{use of value '%v' expects different type than prior uses: '!tile_gpu.buffer<"k": 64x32xf16}}
    scf.yield %v : !tile_gpu.buffer<"k": 64x32xf16, #sh>
  }
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @other_name(%b: !tile_gpu.buffer<"k": [2] x 64x32xf16, #sh>, %i: i32) {
  // expected-error @+1 {{cannot be '!tile_gpu.buffer<"v": 64x32xf16}}
  %s = "tile_gpu.local_subview"(%b, %i) : (!tile_gpu.buffer<"k": [2] x 64x32xf16, #sh>, i32) -> !tile_gpu.buffer<"v": 64x32xf16, #sh>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=1>
#column = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=1, order=[0,1]>
func.func @transposed(%b: !tile_gpu.buffer<"k": 64x32xf16, #sh>) {
  // expected-error @+1 {{does not turn '!tile_gpu.buffer<"k": 64x32xf16}}
  %t = tile_gpu.local_transpose %b [1, 0] : !tile_gpu.buffer<"k": 64x32xf16, #sh> to !tile_gpu.buffer<"v": 32x64xf16, #column>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=1>
// expected-error @+1 {{a buffer's name is empty: leave it out}}
func.func @empty(%b: !tile_gpu.buffer<"": 64x32xf16, #sh>) {
  return
}
