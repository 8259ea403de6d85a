// RUN: kiln-opt %s --kiln-relieve-registers -split-input-file -verify-diagnostics

#mma = #tile_gpu.mma<version=2, warpsPerCTA=[4,1], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1], instrN=16>>
// expected-error @+2 {{the module names no target}}
// expected-note @+1 {{give it tile_gpu.target}}
func.func @f(%a: tensor<64x32xf16, #x>, %b: tensor<32x64xf16, #y>, %c: tensor<64x64xf32, #mma>) {
  %0 = tile.dot %a, %b, %c : tensor<64x32xf16, #x>, tensor<32x64xf16, #y> to tensor<64x64xf32, #mma>
  return
}
