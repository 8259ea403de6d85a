// RUN: kiln-opt %s -split-input-file -verify-diagnostics

func.func @f() {
  // expected-error @+1 {{counts from 0 to 64, which are 64 numbers, but gives 32 of them}}
  %0 = tile.range 0 to 64 : tensor<32xi32>
  return
}

// -----

func.func @f(%s: f32) {
  // expected-error @+1 {{makes 'tensor<8xf16>' out of 'f32'}}
  %0 = tile.splat %s : f32 to tensor<8xf16>
  return
}

// -----

func.func @f(%s: tensor<?xf32>) {
  // expected-error @+1 {{operand #0 must be tile}}
  %0 = tile.expand_dims %s {axis = 0 : i32} : tensor<?xf32> to tensor<1x8xf32>
  return
}

// -----

func.func @f(%s: tensor<8xf32>) {
  // expected-error @+1 {{axis 2 is not in 0 .. 1}}
  %0 = tile.expand_dims %s {axis = 2 : i32} : tensor<8xf32> to tensor<8x1xf32>
  return
}

// -----

func.func @f(%s: tensor<8xf32>) {
  // expected-error @+1 {{of [8] along axis 0 is [1, 8], not [8, 1]}}
  %0 = tile.expand_dims %s {axis = 0 : i32} : tensor<8xf32> to tensor<8x1xf32>
  return
}

// -----

func.func @f(%s: tensor<8x1xf32>) {
  // expected-error @+1 {{dimension 0 has extent 8, and only 1 can grow to 16}}
  %0 = tile.broadcast %s : tensor<8x1xf32> to tensor<16x4xf32>
  return
}

// -----

func.func @f(%s: tensor<8xf32>) {
  // expected-error @+1 {{from rank 1 to rank 2: add dimensions with tile.expand_dims first}}
  %0 = tile.broadcast %s : tensor<8xf32> to tensor<8x4xf32>
  return
}

// -----

func.func @f(%s: tensor<8x4xf32>) {
  // expected-error @+1 {{[0, 0] is no permutation of the 2 dimensions of 'tensor<8x4xf32>'}}
  %0 = tile.transpose %s [0, 0] : tensor<8x4xf32> to tensor<8x8xf32>
  return
}

// -----

func.func @f(%s: tensor<8x4xf32>) {
  // expected-error @+1 {{dimension 0 of the result has extent 8, but dimension 1 of the operand has 4}}
  %0 = tile.transpose %s [1, 0] : tensor<8x4xf32> to tensor<8x4xf32>
  return
}

// -----

func.func @f(%s: tensor<8x4xf32>) {
  // expected-error @+1 {{turns elements of 'f32' into 'i32': it changes shapes only}}
  %0 = tile.reshape %s : tensor<8x4xf32> to tensor<32xi32>
  return
}

// -----

func.func @f(%s: tensor<8x4xf32>) {
  // expected-error @+1 {{from 32 elements to 64}}
  %0 = tile.reshape %s : tensor<8x4xf32> to tensor<64xf32>
  return
}

// -----

func.func @f(%s: tensor<8xf32>) {
  // expected-error @+1 {{the whole has one more, last dimension of 2}}
  %0 = tile.join %s, %s : tensor<8xf32> to tensor<2x8xf32>
  return
}

// -----

func.func @f(%s: tensor<8x4xf32>) {
  // expected-error @+1 {{the whole has one more, last dimension of 2}}
  %0, %1 = tile.split %s : tensor<8x4xf32> to tensor<8xf32>
  return
}
