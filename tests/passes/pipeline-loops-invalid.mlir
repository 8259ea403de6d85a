// RUN: kiln-opt %s --kiln-pipeline-loops -split-input-file -verify-diagnostics

// expected-error @+2 {{the module names no target}}
// expected-note @+1 {{give it tile_gpu.target}}
func.func @no_target(%n: i32) attributes {tile.kernel, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
  }
  return
}

// What cannot be pipelined stays, and a remark says why.

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_75"} {
  func.func @target(%v: !tile.view<64x32xf16>, %n: i32) attributes {tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-remark @+1 {{this loop is not pipelined: sm_75 has no asynchronous copies}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "y" %y : tensor<64x32xf16, #column>
    }
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @unaligned(%p: !tile.ptr<f16>, %n: i32) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%n, %c1] : !tile.view<64x32xf16>, i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-remark @+1 {{this load is not pipelined: only 2 bytes of it are known to lie together and aligned}}
      %x = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "y" %y : tensor<64x32xf16, #column>
    }
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @narrowed(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    %w = tile.narrow_view %v[%s, %n] {dim = 1 : i32} : !tile.view<64x32xf16>, i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-remark @+1 {{this load is not pipelined: its view may begin inside a run of elements}}
      %x = tile.load_view %w[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "y" %y : tensor<64x32xf16, #column>
    }
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @stores(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    // expected-remark @+1 {{this loop is not pipelined: it holds 'tile.store_view'}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.store_view %v[%i, %c0], %y : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #column>
    }
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @follows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %t: !tile.ptr<i32>, %n: i32,
                     %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    // A list: the next place is in memory at this one.
    // expected-remark @+1 {{this loop is not pipelined: its address depends on 'tile.load' through a value that the loop carries}}
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%at = %c0) -> (i32) : i32 {
      %x = tile.load_view %v[%at, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "y" %y : tensor<64x32xf16, #column>
      %q = tile.addptr %t, %at : !tile.ptr<i32>, i32
      %next = tile.load %q : !tile.ptr<i32>
      scf.yield %next : i32
    }
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[1,32], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[32,1], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_89"} {
  func.func @room(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<128x256xf16>, i32
    // expected-remark @+1 {{this loop is not pipelined: two buffers of each tile take 131072 bytes of shared memory; sm_89 has 101376}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<128x256xf16>, i32 -> tensor<128x256xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<128x256xf16, #row> to tensor<128x256xf16, #column>
      tile.print "y" %y : tensor<128x256xf16, #column>
    }
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[1,32], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[32,1], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @fewer(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<128x256xf16>, i32
    // expected-remark @+1 {{this loop has 2 stages, not 4: sm_80 has 166912 bytes of shared memory}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<128x256xf16>, i32 -> tensor<128x256xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<128x256xf16, #row> to tensor<128x256xf16, #column>
      tile.print "y" %y : tensor<128x256xf16, #column>
    }
    return
  }
}
