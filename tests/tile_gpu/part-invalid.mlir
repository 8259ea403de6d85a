// RUN: kiln-opt %s --split-input-file --verify-diagnostics

#k = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1]>>
func.func @number(%x: tensor<64x64xf16, #k>) {
  // expected-error @+1 {{has no part 4 of 4}}
  %a = tile_gpu.part %x [4 of 4] along 1 : tensor<64x64xf16, #k> to tensor<64x16xf16, #k>
  return
}

// -----

#k = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1]>>
func.func @dimension(%x: tensor<64x64xf16, #k>) {
  // expected-error @+1 {{along dimension 2 of}}
  %a = tile_gpu.part %x [0 of 4] along 2 : tensor<64x64xf16, #k> to tensor<64x16xf16, #k>
  return
}

// -----

#k = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1]>>
func.func @shape(%x: tensor<64x64xf16, #k>) {
  // expected-error @+1 {{cannot be}}
  %a = tile_gpu.part %x [0 of 4] along 1 : tensor<64x64xf16, #k> to tensor<64x32xf16, #k>
  return
}

// -----

// Eight columns of a row lie in four lanes: no thread has its part of each half.
#k = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1]>>
func.func @lanes(%x: tensor<64x8xf16, #k>) {
  // expected-error @+1 {{a thread's registers of one of 2 equal parts}}
  %a = tile_gpu.part %x [0 of 2] along 1 : tensor<64x8xf16, #k> to tensor<64x4xf16, #k>
  return
}

// -----

#k = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1]>>
func.func @thirds(%x: tensor<64x64xf16, #k>) {
  // expected-error @+1 {{cannot be}}
  %a = tile_gpu.part %x [0 of 3] along 1 : tensor<64x64xf16, #k> to tensor<64x16xf16, #k>
  return
}
