// RUN: kiln-opt %s --kiln-delay-products -split-input-file -verify-diagnostics

#sums = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=32>
// expected-error @+2 {{the module names no target}}
// expected-note @+1 {{give it tile_gpu.target}}
func.func @no_target(%a: tensor<64x64xbf16, #sums>, %b: tensor<64x32xbf16, #sums>, %n: i32) attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %start = arith.constant dense<0.0> : tensor<64x32xf32, #sums>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %start) -> (tensor<64x32xf32, #sums>) : i32 {
    %d = tile.dot %a, %b, %o : tensor<64x64xbf16, #sums>, tensor<64x32xbf16, #sums> to tensor<64x32xf32, #sums>
    scf.yield %d : tensor<64x32xf32, #sums>
  }
  tile.print "sums" %r : tensor<64x32xf32, #sums>
  return
}
