// RUN: kiln-opt %s -split-input-file -verify-diagnostics

func.func @f(%c: !tile.ptr<f32>, %p: !tile.ptr<f32>, %n: i32) {
  // expected-error @+1 {{counts by '!tile.ptr<f32>': it takes !tile.ptr<i32>}}
  tile_gpu.await %n of %c for %p : !tile.ptr<f32>, !tile.ptr<f32>
  return
}

// -----

func.func @f(%c: !tile.ptr<i32>, %d: !tile.ptr<i64>, %p: !tile.ptr<f32>, %n: i32, %is: i1) {
  // expected-error @+1 {{counts by '!tile.ptr<i64>': it takes !tile.ptr<i32>}}
  tile_gpu.count %c if %is await %n of %d for %p : !tile.ptr<i32>, !tile.ptr<f32>, !tile.ptr<i64>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
func.func @f() -> i32 {
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<2xi32, #sh>
  // expected-error @+1 {{it takes a buffer of one such number}}
  %n = tile_gpu.local_scalar %b : !tile_gpu.buffer<2xi32, #sh> to i32
  return %n : i32
}
