// RUN: kiln-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: tensor<64x32xf16>, %b: tensor<16x16xf16>, %c: tensor<64x16xf32>) {
  // expected-error @+1 {{MxK by KxN gives MxN, and the extents differ}}
  %0 = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<16x16xf16> to tensor<64x16xf32>
  return
}

// -----

func.func @f(%a: tensor<32xf16>, %b: tensor<32x16xf16>, %c: tensor<64x16xf32>) {
  // expected-error @+1 {{multiplies tiles of rank 1 and 2 into one of rank 2}}
  %0 = tile.dot %a, %b, %c : tensor<32xf16>, tensor<32x16xf16> to tensor<64x16xf32>
  return
}

// -----

func.func @f(%a: tensor<4x64x32xf16>, %b: tensor<2x32x16xf16>, %c: tensor<4x64x16xf32>) {
  // expected-error @+1 {{multiplies batches of 4 and 2 into 4}}
  %0 = tile.dot %a, %b, %c : tensor<4x64x32xf16>, tensor<2x32x16xf16> to tensor<4x64x16xf32>
  return
}

// -----

func.func @f(%a: tensor<64x32xf16>, %b: tensor<32x16xbf16>, %c: tensor<64x16xf32>) {
  // expected-error @+1 {{multiplies 'f16' by 'bf16'}}
  %0 = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x16xbf16> to tensor<64x16xf32>
  return
}

// -----

func.func @f(%a: tensor<64x32xf16>, %b: tensor<32x16xf16>, %c: tensor<64x16xf16>) {
  // expected-error @+1 {{the accumulator is 'f32'}}
  %0 = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x16xf16> to tensor<64x16xf16>
  return
}

// -----

func.func @f(%a: tensor<64x32xf16>, %b: tensor<32x16xf16>, %c: tensor<64x16xf32>) {
  // expected-error @+1 {{has precision tf32 for 'f16': only products of f32 have one}}
  %0 = tile.dot %a, %b, %c precision tf32 : tensor<64x32xf16>, tensor<32x16xf16> to tensor<64x16xf32>
  return
}
