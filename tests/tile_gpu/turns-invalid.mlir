// RUN: kiln-opt %s -split-input-file -verify-diagnostics

// Two warpgroups or more take turns.
func.func @begin() attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  // expected-error @+1 {{in a kernel of 4 warps: two warpgroups or more take turns}}
  tile_gpu.turns_begin
  return
}

// -----

func.func @take() attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  // expected-error @+1 {{in a kernel of 4 warps: two warpgroups or more take turns}}
  tile_gpu.turn_take
  return
}

// -----

func.func @pass() attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  // expected-error @+1 {{in a kernel of 4 warps: two warpgroups or more take turns}}
  tile_gpu.turn_pass
  return
}

// -----

func.func @end() attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  // expected-error @+1 {{in a kernel of 4 warps: two warpgroups or more take turns}}
  tile_gpu.turns_end
  return
}

// -----

// Whole ones.
func.func @part_of_group() attributes {tile_gpu.test, tile.num_warps = 10 : i32} {
  // expected-error @+1 {{in a kernel of 10 warps: two warpgroups or more take turns}}
  tile_gpu.turns_begin
  return
}

// -----

// No warps execute what stands in no kernel.
module {
  // expected-error @+1 {{in a kernel of 0 warps: two warpgroups or more take turns}}
  tile_gpu.turns_end
}
