// RUN: kiln-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{axis 1 is not in 0 .. 0}}
  %0 = tile.reduce(%x) {axis = 1 : i32} : tensor<8xf32> to f32 {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{of 'tensor<8x4xf32>' along axis 1 cannot be 'tensor<4xf32>'}}
  %0 = tile.reduce(%x) {axis = 1 : i32} : tensor<8x4xf32> to tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{its region takes ('f32'), expected two of ('f32')}}
  %0 = tile.reduce(%x) {axis = 0 : i32} : tensor<8xf32> to f32 {
  ^bb0(%a: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{its region yields ('i1'), expected ('f32')}}
  %0 = tile.reduce(%x) {axis = 0 : i32} : tensor<8xf32> to f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf olt, %a, %b : f32
    tile.yield %c : i1
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %p: !tile.ptr<f32>) {
  // expected-error @+1 {{its region has a side effect: tile.store}}
  %0 = tile.scan(%x) {axis = 0 : i32} : tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.store %p, %a : !tile.ptr<f32>
    tile.yield %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{combines 'tensor<4xf32>' with 'tensor<8xf32>': shapes must be equal}}
  %0, %1 = tile.reduce(%x, %y) {axis = 0 : i32} : tensor<8xf32>, tensor<4xf32> to f32, f32 {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tile.yield %a, %b : f32, f32
  }
  return
}

// -----

func.func @f(%a: f32) {
  // expected-error @+1 {{expects parent op to be one of 'tile.reduce, tile.scan'}}
  tile.yield %a : f32
}

// -----

func.func @f(%x: tensor<i1>) {
  // expected-error @+1 {{of 'tensor<i1>': rows have one dimension or more, not 0}}
  %0 = tile.any_row %x : tensor<i1>
  return
}
