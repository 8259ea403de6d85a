// RUN: kiln-opt %s --split-input-file --verify-diagnostics --kiln-verify-stage=stage=tile

func.func @foreign(%n: i32) attributes {tile.kernel} {
  %x = arith.trunci %n : i32 to i1
  // expected-error @+1 {{cf.assert has no place in a kernel: operations are those of tile, tile_gpu, arith, math}}
  cf.assert %x, "no"
  return
}

// -----

func.func @other_loops(%n: i32) attributes {tile.kernel} {
  // expected-error @+1 {{scf.execute_region has no place in a kernel}}
  scf.execute_region {
    scf.yield
  }
  return
}

// -----

func.func @index(%n: i32) attributes {tile.kernel} {
  // expected-error @+1 {{the type 'index' has no place in a kernel: use i32 or i64}}
  %i = arith.index_cast %n : i32 to index
  return
}

// -----

func.func @index_loop() attributes {tile.kernel} {
  // expected-error @+1 {{the type 'index' has no place in a kernel: use i32 or i64}}
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{the type 'index' has no place in a kernel: use i32 or i64}}
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{the type 'index' has no place in a kernel: use i32 or i64}}
  scf.for %i = %c0 to %c1 step %c1 {
  }
  return
}

// -----

func.func @small_loop(%n: i16) attributes {tile.kernel} {
  // expected-error @+1 {{the loop runs on 'i16': use i32 or i64}}
  scf.for %i = %n to %n step %n : i16 {
  }
  return
}

// -----

func.func @extent() attributes {tile.kernel} {
  // expected-error @+2 {{L01: extents 100}}
  // expected-note @+1 {{pad through the view to}}
  %x = tile.range 0 to 100 : tensor<100xi32>
  return
}

// -----

func.func @rank0(%x: f32) attributes {tile.kernel} {
  // expected-error @+1 {{has rank 0: use the scalar 'f32'}}
  %t = tile.splat %x : f32 to tensor<f32>
  return
}

// -----

func.func @unranked(%x: f32) attributes {tile.kernel} {
  // expected-error @+1 {{the tile 'tensor<?xf32>' has an unknown extent}}
  %t = ub.poison : tensor<?xf32>
  // expected-error @+1 {{is no tile: tiles have a static shape}}
  %u = ub.poison : tensor<*xf32>
  return
}

// -----

// expected-error @+1 {{builtin.module has no place in a module of kernels: only func.func has}}
module {
}
func.func @beside() attributes {tile.kernel} {
  return
}

// -----

func.func @twelve_warps(%n: i32) attributes {tile.kernel, tile.num_warps = 12 : i32} {
  // expected-error @+2 {{a tile is spread over a power of two of warps, and 12 warps execute this (tile.num_warps)}}
  // expected-note @+1 {{use 1, 2, 4, 8, 16 or 32 warps; a kernel without tiles may have any number up to 32}}
  %x = tile.splat %n : i32 to tensor<64xi32>
  %y = arith.addi %x, %x : tensor<64xi32>
  return
}
