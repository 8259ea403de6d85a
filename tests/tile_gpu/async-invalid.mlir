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
  // expected-error @+1 {{leaves 64 groups under way: 0 to 63}}
  tile_gpu.async_wait %t {groups = 64 : i32}
  return
}
