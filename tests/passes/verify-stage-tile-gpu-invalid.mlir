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

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @v_into_k(%k: !tile.ptr<f16> {tile.name = "k"}, %v: !tile.ptr<f16> {tile.name = "v"}, %n: i32)
      attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<"k": 64x32xf16, #sh>
    %from = tile.addptr %v, %n : !tile.ptr<f16>, i32
    %view = tile.make_view %from, extents [%n, %n], strides [%n, %c1] : !tile.view<64x32xf16>, i32
    %part = tile.narrow_view %view[%c0, %n] {dim = 0 : i32} : !tile.view<64x32xf16>, i32
    // expected-error @+1 {{copies 'v' into '!tile_gpu.buffer<"k": 64x32xf16}}
    tile_gpu.async_copy_view %part[%c0, %c0], %b by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<"k": 64x32xf16, #sh>
    // Pointers that a loop moves on, and tiles of them.
    %p = scf.for %i = %c0 to %n step %c1 iter_args(%q = %v) -> (!tile.ptr<f16>) : i32 {
      %all = tile.splat %q : !tile.ptr<f16> to tensor<64x32x!tile.ptr<f16>, #row>
      // expected-error @+1 {{only 'k' flows through this buffer}}
      tile_gpu.async_copy %all, %b : tensor<64x32x!tile.ptr<f16>, #row>, !tile_gpu.buffer<"k": 64x32xf16, #sh>
      %next = tile.addptr %q, %c1 : !tile.ptr<f16>, i32
      scf.yield %next : !tile.ptr<f16>
    }
    // Either of two is nobody's: not refused.
    %both = arith.cmpi slt, %n, %c1 : i32
    %one = arith.select %both, %k, %v : !tile.ptr<f16>
    %some = tile.splat %one : !tile.ptr<f16> to tensor<64x32x!tile.ptr<f16>, #row>
    tile_gpu.async_copy %some, %b : tensor<64x32x!tile.ptr<f16>, #row>, !tile_gpu.buffer<"k": 64x32xf16, #sh>
    return
  }
}
