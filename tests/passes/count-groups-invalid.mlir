// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-count-groups

module attributes {tile_gpu.target = "sm_80"} {
  func.func @control_flow(%i: i32) {
    %t = tile_gpu.async_commit
    %c = arith.index_cast %i : i32 to index
    // expected-error @+1 {{'scf.index_switch' holds groups of asynchronous copies: they are counted in scf.for, scf.if and scf.while}}
    scf.index_switch %c
    case 0 {
      tile_gpu.async_wait %t
      scf.yield
    }
    default {
      scf.yield
    }
    return
  }
}

// -----

module attributes {tile_gpu.target = "sm_80"} {
  func.func @too_many() {
    %t = tile_gpu.async_commit
    // expected-error @+1 {{leaves 64 groups in flight: 0 to 63}}
    tile_gpu.async_wait %t {groups = 64 : i32}
    return
  }
}
