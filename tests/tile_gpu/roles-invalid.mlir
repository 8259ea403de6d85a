// RUN: kiln-opt %s -verify-diagnostics -split-input-file

func.func @none() attributes {tile.kernel, tile.num_warps = 8 : i32} {
  // expected-error @+1 {{in a kernel without copying warps: say how many in tile.copy_warps}}
  tile_gpu.roles copies {
    tile_gpu.barrier
  } computes {
    tile_gpu.barrier
  }
  return
}

// -----

func.func @inside() attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} {
  %c = arith.constant true
  scf.if %c {
    // expected-error @+1 {{is for the body of a kernel: nothing is around it}}
    tile_gpu.roles copies {
      tile_gpu.barrier
    } computes {
      tile_gpu.barrier
    }
  }
  return
}

// -----

// expected-error @+1 {{tile.copy_warps is 5 : i32: a block has 0 to 4 warps that copy}}
func.func @many() attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 5 : i32} {
  return
}

// -----

// expected-error @+1 {{tile.num_warps and tile.copy_warps are 34 together: a block has at most 32 warps}}
func.func @together() attributes {tile.kernel, tile.num_warps = 32 : i32, tile.copy_warps = 2 : i32} {
  return
}

// -----

module attributes {tile_gpu.target = "sm_90a"} {
func.func @one_side() attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} {
  // expected-error @+1 {{says how many registers one role has and not the other: both or neither}}
  tile_gpu.roles copies registers 24 {
    tile_gpu.barrier
  } computes {
    tile_gpu.barrier
  }
  return
}
}

// -----

module attributes {tile_gpu.target = "sm_90a"} {
func.func @no_warpgroup() attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 1 : i32} {
  // expected-error @+1 {{moves registers between 1 and 8 warps: whole warpgroups of 4 give and take them}}
  tile_gpu.roles copies registers 24 {
    tile_gpu.barrier
  } computes registers 240 {
    tile_gpu.barrier
  }
  return
}
}

// -----

module attributes {tile_gpu.target = "sm_90a"} {
func.func @odd() attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} {
  // expected-error @+1 {{registers 25: a multiple of 8 from 24 to 256}}
  tile_gpu.roles copies registers 25 {
    tile_gpu.barrier
  } computes registers 240 {
    tile_gpu.barrier
  }
  return
}
}

// -----

module attributes {tile_gpu.target = "sm_90a"} {
func.func @too_many() attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} {
  // expected-error @+1 {{takes 66560 registers for a block that begins with 64512 (168 a thread): give one role fewer}}
  tile_gpu.roles copies registers 24 {
    tile_gpu.barrier
  } computes registers 248 {
    tile_gpu.barrier
  }
  return
}
}

// -----

func.func @waits_in_vain() attributes {tile.kernel, tile.num_warps = 4 : i32, tile.copy_warps = 4 : i32} {
  // expected-error @+1 {{of 256 threads: 128 of the block come here}}
  tile_gpu.named_barrier 1, threads 256
  return
}
