// RUN: kiln-opt %s -split-input-file -verify-diagnostics

func.func @f(%p: tensor<8x!tile.ptr<f32>>, %o: tensor<4xi32>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  %0 = tile.addptr %p, %o : tensor<8x!tile.ptr<f32>>, tensor<4xi32>
  return
}

// -----

func.func @f(%p: tensor<8xf32>) {
  // expected-error @+1 {{'tensor<8xf32>' is no pointer and no tile of pointers}}
  %0 = tile.load %p : tensor<8xf32>
  return
}

// -----

func.func @f(%p: !tile.ptr<f32>) {
  // expected-error @+1 {{'always' is no cache hint: default, streaming, global, volatile}}
  %0 = tile.load %p cache always : !tile.ptr<f32>
  return
}

// -----

func.func @f(%p: !tile.ptr<f32>, %o: f32) {
  // expected-error @+1 {{has a value for masked elements and no mask}}
  %0 = tile.load %p other %o : !tile.ptr<f32>
  return
}

// -----

func.func @f(%p: tensor<8x!tile.ptr<f32>>, %m: tensor<4xi1>) {
  // expected-note @-1 {{prior use here}}
  // expected-error @+1 {{use of value '%m' expects different type than prior uses: 'tensor<8xi1>' vs 'tensor<4xi1>'}}
  %0 = tile.load %p mask %m : tensor<8x!tile.ptr<f32>>
  return
}

// -----

func.func @f(%p: tensor<8x!tile.ptr<f32>>, %v: tensor<8xf16>) {
  // expected-error @+1 {{the value has the type 'tensor<8xf16>', expected 'tensor<8xf32>'}}
  "tile.store"(%p, %v) : (tensor<8x!tile.ptr<f32>>, tensor<8xf16>) -> ()
  return
}

// -----

func.func @f(%p: !tile.ptr<f32>, %v: f32) {
  // expected-error @+1 {{xor of 'f32': it takes i32 and i64}}
  %0 = tile.atomic_rmw xor relaxed gpu %p, %v : !tile.ptr<f32>
  return
}

// -----

func.func @f(%p: !tile.ptr<i8>, %v: i8) {
  // expected-error @+1 {{add of 'i8': it takes i32 and i64, f16, bf16, f32 and f64}}
  %0 = tile.atomic_rmw add relaxed gpu %p, %v : !tile.ptr<i8>
  return
}

// -----

func.func @f(%p: !tile.ptr<f32>, %v: f32, %c: !tile.ptr<i32>, %n: i32) {
  // expected-error @+1 {{after other programs is relaxed, of the gpu, and its result has no uses}}
  %0 = tile.atomic_rmw add acquire gpu %p, %v after %n of %c : !tile.ptr<f32>
  return
}

// -----

func.func @f(%p: !tile.ptr<f32>, %v: f32, %c: !tile.ptr<i32>, %n: i32) -> f32 {
  // expected-error @+1 {{after other programs is relaxed, of the gpu, and its result has no uses}}
  %0 = tile.atomic_rmw add relaxed gpu %p, %v after %n of %c : !tile.ptr<f32>
  return %0 : f32
}

// -----

func.func @f(%p: !tile.ptr<i32>, %v: i32) {
  // expected-error @+1 {{'nand' is none of add, min, max, umin, umax, and, or, xor, xchg}}
  %0 = tile.atomic_rmw nand relaxed gpu %p, %v : !tile.ptr<i32>
  return
}

// -----

func.func @f(%p: !tile.ptr<i32>, %v: i32) {
  // expected-error @+1 {{'seq_cst' is none of relaxed, acquire, release, acq_rel}}
  %0 = tile.atomic_rmw add seq_cst gpu %p, %v : !tile.ptr<i32>
  return
}

// -----

func.func @f(%p: !tile.ptr<i8>, %v: i8) {
  // expected-error @+1 {{of 'i8': it takes types of 16, 32 or 64 bits}}
  %0 = tile.atomic_cas relaxed gpu %p, %v, %v : !tile.ptr<i8>
  return
}

// -----

func.func @f(%x: tensor<16x4xf32>, %i: tensor<8x8xi32>) {
  // expected-error @+1 {{dimension 1 has extent 4 in the tile and 8 in the indices}}
  %0 = tile.gather %x[%i] {axis = 0 : i32} : tensor<16x4xf32>, tensor<8x8xi32>
  return
}

// -----

func.func @f(%x: tensor<16x4xf32>, %i: tensor<8x4xi32>) {
  // expected-error @+1 {{of a tile of rank 2 with indices of rank 2 along axis 2: ranks must be equal and the axis one of them}}
  %0 = tile.gather %x[%i] {axis = 2 : i32} : tensor<16x4xf32>, tensor<8x4xi32>
  return
}
