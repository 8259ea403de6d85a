// RUN: kiln-opt %s --split-input-file --verify-diagnostics --kiln-assign-layouts

func.func @extent(%s: f32) attributes {tile.kernel} {
  // expected-error @+2 {{L01: extents 100}}
  // expected-note @+1 {{pad through the view to}}
  %x = tile.splat %s : f32 to tensor<100xf32>
  tile.print "x" %x : tensor<100xf32>
  return
}

// -----

func.func @registers(%s: f32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  // expected-error @+2 {{L18: the tile of 32768 takes 1024 registers of 32 bits a thread; the limit is 512}}
  // expected-note @+1 {{use more warps (tile.num_warps) or a smaller tile}}
  %x = tile.splat %s : f32 to tensor<32768xf32>
  tile.print "x" %x : tensor<32768xf32>
  return
}

// -----

// expected-error @+1 {{function 'helper' takes or returns the tile 'tensor<64xf32>': inline it into its kernel first}}
func.func private @helper(%x: tensor<64xf32>) {
  return
}

// -----

func.func @encoding(%s: f32) attributes {tile.kernel} {
  // expected-error @+1 {{has an encoding that is no layout}}
  %x = tile.splat %s : f32 to tensor<64xf32, "row">
  return
}

// -----

func.func @region(%s: f32) attributes {tile.kernel} {
  // expected-error @+1 {{no rule for the layouts of scf.execute_region}}
  %x = scf.execute_region -> tensor<64xf32> {
    %y = tile.splat %s : f32 to tensor<64xf32>
    scf.yield %y : tensor<64xf32>
  }
  tile.print "x" %x : tensor<64xf32>
  return
}

// -----

func.func @reshape(%s: f32) attributes {tile.kernel} {
  %x = tile.splat %s : f32 to tensor<96xf32>
  %e = math.exp %x : tensor<96xf32>
  // expected-error @+1 {{no layout of 'tensor<96xf32}}
  %r = tile.reshape %e : tensor<96xf32> to tensor<3x32xf32>
  tile.print "x" %r : tensor<3x32xf32>
  return
}

// -----

func.func @rank0(%s: f32) attributes {tile.kernel} {
  // expected-error @+2 {{L02: a scalar has no blocked layout}}
  // expected-note @+1 {{}}
  %x = tile.splat %s : f32 to tensor<f32>
  tile.print "x" %x : tensor<f32>
  return
}

// -----

func.func @pointers(%p: !tile.ptr<f32>) attributes {tile.kernel} {
  %x = tile.splat %p : !tile.ptr<f32> to tensor<100x!tile.ptr<f32>>
  // expected-error @+2 {{L01: extents 100}}
  // expected-note @+1 {{pad through the view to}}
  %y = tile.load %x : tensor<100x!tile.ptr<f32>>
  tile.print "y" %y : tensor<100xf32>
  return
}

// -----

func.func @twelve_warps(%s: f32) attributes {tile.kernel, tile.num_warps = 12 : i32} {
  // expected-error @+2 {{a tile is spread over a power of two of warps, and 12 warps execute this (tile.num_warps)}}
  // expected-note @+1 {{use 1, 2, 4, 8, 16 or 32 warps}}
  %x = tile.splat %s : f32 to tensor<64xf32>
  tile.print "x" %x : tensor<64xf32>
  return
}
