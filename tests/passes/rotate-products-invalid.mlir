// RUN: kiln-opt %s --kiln-rotate-products -split-input-file -verify-diagnostics

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
!p = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>>
// expected-error @+2 {{the module names no target}}
// expected-note @+1 {{give it tile_gpu.target}}
func.func @no_target(%n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !p
  %a, %b = tile_gpu.acquire %p : !p
  %c = tile_gpu.commit %a : !p
  %d = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c) -> (!p) : i32 {
    %e, %x = tile_gpu.wait %s : !p
    %f, %y = tile_gpu.acquire %e : !p
    %g = tile_gpu.commit %f : !p
    %h = tile_gpu.release %g : !p
    scf.yield %h : !p
  }
  tile_gpu.drain %d : !p
  return
}
