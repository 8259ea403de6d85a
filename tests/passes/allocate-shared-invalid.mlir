// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-allocate-shared

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
module attributes {tile_gpu.target = "sm_75"} {
  // expected-error @+2 {{kernel 'k' needs 131072 bytes of shared memory; sm_75 has 65536}}
  // expected-note @+1 {{use smaller tiles or fewer buffers, so that at most 65536 bytes are alive at once}}
  func.func @k(%i: i32) {
    // expected-note @+1 {{takes 131072 bytes here}}
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<[4] x 128x64xf32, #sh>
    %s = tile_gpu.local_subview %a[%i] : !tile_gpu.buffer<[4] x 128x64xf32, #sh>
    return
  }
}

// -----

#tma = #tile_gpu.tma<swizzle=128>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @misaligned() {
    // expected-error @+1 {{offset 512 is no multiple of 1024}}
    %a = tile_gpu.local_alloc {offset = 512 : i32} : !tile_gpu.buffer<64x32xf32, #tma>
    return
  }
}

// -----

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @many() {
    // expected-error @+2 {{1000000000000 buffers in one local_alloc}}
    // expected-note @+1 {{use at most 65536}}
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<[1000000000000] x 64x32xf32, #sh>
    return
  }
}

// -----

// expected-error @+2 {{the module names no target}}
// expected-note @+1 {{give it tile_gpu.target}}
func.func @no_target() {
  return
}

// -----

module attributes {tile_gpu.target = "sm_90a"} {
  func.func @negative() {
    // expected-error @+2 {{a scratch of -16 bytes}}
    // expected-note @+1 {{use the bytes}}
    %a = tile_gpu.local_alloc : !tile_gpu.scratch<-16>
    return
  }
}
