// RUN: kiln-opt %s -split-input-file -verify-diagnostics

func.func @f(%c: i32) {
  // expected-note @-1 {{prior use here}}
  // expected-error @+1 {{use of value '%c' expects different type than prior uses: 'i1' vs 'i32'}}
  tile.assume %c
  return
}

// -----

func.func @f(%c: tensor<8xi32>) {
  // expected-error @+1 {{operand #0 must be i1 or tile of i1}}
  tile.assert %c, "no" : tensor<8xi32>
  return
}

// -----

func.func @f(%c: tensor<8x!tile.ptr<f32>>) {
  // expected-error @+1 {{must be variadic of number or tile of numbers}}
  tile.print "p" %c : tensor<8x!tile.ptr<f32>>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{tile.slice is array<i64: 0, 8, 2, 5>: of 'tensor<8x4xf32>' begin and end of each dimension}}
  tile.print "p" %x : tensor<8x4xf32> {tile.slice = array<i64: 0, 8, 2, 5>}
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{tile.slice is array<i64: 0, 8>: of 'tensor<8x4xf32>'}}
  tile.print "p" %x : tensor<8x4xf32> {tile.slice = array<i64: 0, 8>}
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error @+1 {{tile.slice is array<i64: 0, 1>: of 'f32' begin and end}}
  tile.print "p" %x : f32 {tile.slice = array<i64: 0, 1>}
  return
}

// -----

func.func @f(%c: i1) {
  // expected-error @+1 {{tile.slice is for tile.print, not for tile.assert}}
  tile.assert %c, "no" {tile.slice = array<i64: 0, 1>} : i1
  return
}

// -----

func.func @f(%x: i32) {
  // expected-error @+1 {{attribute 'divisor' failed to satisfy constraint: 32-bit signless integer attribute whose value is positive}}
  %y = tile.multiple_of %x, 0 : i32
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error @+1 {{must be i32, i64 or tile of them}}
  %y = tile.multiple_of %x, 4 : f32
  return
}

// -----

func.func @f(%x: tensor<8xi32>) {
  // expected-error @+1 {{axis 1 of 'tensor<8xi32>': the last dimension is 0}}
  %y = tile.max_contiguous %x, 4 {axis = 1 : i32} : tensor<8xi32>
  return
}

// -----

func.func @f(%x: tensor<8xi32>) {
  // expected-error @+1 {{runs of 6 elements: give a power of two}}
  %y = tile.max_contiguous %x, 6 {axis = 0 : i32} : tensor<8xi32>
  return
}
