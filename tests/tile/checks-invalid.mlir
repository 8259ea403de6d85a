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
