// RUN: kiln-opt %s -split-input-file -verify-diagnostics

func.func @f(%p: !tile.ptr<f16>, %n: i64) {
  // expected-error @+1 {{gives 1 extents to a view of rank 2}}
  %v = tile.make_view %p, extents [%n], strides [%n] : !tile.view<64x32xf16>, i64
  return
}

// -----

func.func @f(%p: !tile.ptr<f16>, %n: i64) {
  // expected-error @+1 {{2 extents and 1 strides}}
  %v = tile.make_view %p, extents [%n, %n], strides [%n] : !tile.view<64x32xf16>, i64
  return
}

// -----

func.func @f(%p: !tile.ptr<f16>, %n: i64) {
  %two = arith.constant 2 : i64
  // expected-error @+1 {{the stride of the unit dimension 1 is 2, not 1: name another dimension with 'unit = ', or 'unit = none'}}
  %v = tile.make_view %p, extents [%n, %n], strides [%n, %two] : !tile.view<64x32xf16>, i64
  return
}

// -----

func.func @f(%v: !tile.view<64x32xf16>, %i: i32) {
  // expected-error @+1 {{dimension 2 is not in 0 .. 1}}
  %w = tile.narrow_view %v[%i, %i] {dim = 2 : i32} : !tile.view<64x32xf16>, i32
  return
}

// -----

func.func @f(%v: !tile.view<64x32xf16>, %i: i32) {
  // expected-error @+1 {{gives 1 coordinates to a view of rank 2}}
  %x = tile.load_view %v[%i] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16>
  return
}

// -----

func.func @f(%v: !tile.view<64x32xf16>, %i: i32, %x: tensor<32x64xf16>) {
  // expected-error @+1 {{shapes and element types must be equal}}
  tile.store_view %v[%i, %i], %x : !tile.view<64x32xf16>, i32, tensor<32x64xf16>
  return
}

// -----

// expected-error @+1 {{a view of rank 6: ranks are 1 to 5}}
func.func @f(%v: !tile.view<2x2x2x2x2x2xf16>) {
  return
}

// -----

// expected-error @+1 {{unit = 2 names no dimension of a view of rank 2}}
func.func @f(%v: !tile.view<2x2xf16, unit = 2>) {
  return
}

// -----

func.func @f(%v: !tile.view<1x64x1x32xf16>, %i: i32) {
  // expected-error @+1 {{gives 1 coordinates for 2 dimensions}}
  %0 = tile.slice_view %v[%i] {dims = array<i32: 0, 2>} : !tile.view<1x64x1x32xf16>, i32 -> !tile.view<64x32xf16>
  return
}

// -----

func.func @f(%v: !tile.view<1x64x1x32xf16>, %i: i32) {
  // expected-error @+1 {{dimension 0 is not in 3 .. 3: dims count up}}
  %0 = tile.slice_view %v[%i, %i] {dims = array<i32: 2, 0>} : !tile.view<1x64x1x32xf16>, i32 -> !tile.view<64x32xf16>
  return
}

// -----

func.func @f(%v: !tile.view<1x64x1x32xf16>, %i: i32) {
  // expected-error @+1 {{fixes dimension 1, of extent 64 in '!tile.view<1x64x1x32xf16>': only dimensions of extent 1 can be fixed}}
  %0 = tile.slice_view %v[%i] {dims = array<i32: 1>} : !tile.view<1x64x1x32xf16>, i32 -> !tile.view<1x1x32xf16>
  return
}

// -----

func.func @f(%v: !tile.view<1x64xf16>, %i: i32) {
  // expected-error @+1 {{gives '!tile.view<64xf16, unit = none>', but what is left is '!tile.view<64xf16>'}}
  %0 = tile.slice_view %v[%i] {dims = array<i32: 0>} : !tile.view<1x64xf16>, i32 -> !tile.view<64xf16, unit = none>
  return
}

// -----

func.func @f(%v: !tile.view<1x1xf16>, %i: i32) {
  // expected-error @+1 {{fixes all dimensions}}
  %0 = tile.slice_view %v[%i, %i] {dims = array<i32: 0, 1>} : !tile.view<1x1xf16>, i32 -> !tile.view<1xf16>
  return
}
