// RUN: kiln-opt %s --split-input-file --verify-diagnostics --kiln-verify-stage=stage=tile_gpu

module attributes {tile_gpu.target = "sm_80"} {
  func.func @no_layout() attributes {tile.kernel} {
    // expected-error @+1 {{the tile 'tensor<64xi32>' has no layout at this stage: run kiln-assign-layouts}}
    %x = tile.range 0 to 64 : tensor<64xi32>
    return
  }
}

// -----

// expected-error @+2 {{takes or returns the tile 'tensor<64xf32>': inline it into its kernel}}
module attributes {tile_gpu.target = "sm_80"} {
  func.func private @helper(%x: tensor<64xf32>) {
    return
  }
}

// -----

#a = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#b = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @two_layouts(%x: f32) attributes {tile.kernel} {
    %a = tile.splat %x : f32 to tensor<512xf32, #a>
    %i = arith.constant dense<2> : tensor<512xi32, #b>
    // expected-error @+1 {{works in two layouts, blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]> and blocked<sizePerThread=[1]}}
    %p = math.fpowi %a, %i : tensor<512xf32, #a>, tensor<512xi32, #b>
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#vec = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @no_slice(%x: f32) attributes {tile.kernel} {
    %a = tile.splat %x : f32 to tensor<64xf32, #vec>
    // expected-error @+2 {{the layouts do not belong together}}
    // expected-note @+1 {{convert the operand to #tile_gpu.slice<dim=1, parent=blocked<}}
    %e = tile.expand_dims %a {axis = 1 : i32} : tensor<64xf32, #vec> to tensor<64x1xf32, #row>
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#vec = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @wrong_reduce(%x: f32) attributes {tile.kernel} {
    %a = tile.splat %x : f32 to tensor<64x64xf32, #row>
    // expected-error @+2 {{the layouts do not belong together}}
    // expected-note @+1 {{the result has the layout #tile_gpu.slice<dim=1, parent=blocked<}}
    %m = tile.reduce(%a) {axis = 1 : i32} : tensor<64x64xf32, #row> to tensor<64xf32, #vec> {
    ^bb0(%p: f32, %q: f32):
      %y = arith.maximumf %p, %q : f32
      tile.yield %y : f32
    }
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @wrong_transpose(%x: f32) attributes {tile.kernel} {
    %a = tile.splat %x : f32 to tensor<64x64xf32, #row>
    // expected-error @+2 {{the layouts do not belong together}}
    // expected-note @+1 {{convert the operand to #tile_gpu.blocked<sizePerThread=[4,1]}}
    %t = tile.transpose %a [1, 0] : tensor<64x64xf32, #row> to tensor<64x64xf32, #row>
    return
  }
}

// -----

#big = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[1], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @registers(%x: f32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
    // expected-error @+2 {{L18: the tile of 32768 takes 1024 registers of 32 bits a thread; the limit is 512}}
    // expected-note @+1 {{use more warps (tile.num_warps) or a smaller tile}}
    %a = tile.splat %x : f32 to tensor<32768xf32, #big>
    return
  }
}

// -----

#two = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[2], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @warps(%x: f32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
    // expected-error @+2 {{has 2 warps, the kernel 4}}
    // expected-note @+1 {{make the product of warpsPerCTA}}
    %a = tile.splat %x : f32 to tensor<512xf32, #two>
    return
  }
}
