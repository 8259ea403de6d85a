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
