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
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-remark @+1 {{this load is not pipelined: 'tile.store_view' in the loop writes to the same argument}}
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
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%at = %c0) -> (i32) : i32 {
      // expected-remark @+1 {{this load is not pipelined: its address depends on 'tile.load' through a value that the loop carries}}
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
      %z = tile.load_view %v[%n, %c0] : !tile.view<128x256xf16>, i32 -> tensor<128x256xf16, #row>
      tile.print "z" %z : tensor<128x256xf16, #row>
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

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @unknown_store(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-remark @+1 {{this load is not pipelined: 'tile.store' in the loop may write there: to which argument is not known}}
      %x = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "y" %y : tensor<64x32xf16, #column>
      %q = ub.poison : !tile.ptr<i32>
      tile.store %q, %n : !tile.ptr<i32>
    }
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @unknown_load(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %o: !tile.ptr<i32>, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    %q = ub.poison : !tile.ptr<f16>
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-remark @+1 {{this load is not pipelined: 'tile.store' in the loop may write there: from which argument it is read is not known}}
      %x = tile.load_view %w[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "y" %y : tensor<64x32xf16, #column>
      tile.store %o, %n : !tile.ptr<i32>
    }
    return
  }
}

// -----

// What others stored before they released must not be read before the loop has acquired it.

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @acquires(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %o: !tile.ptr<i32>, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    // expected-remark @+1 {{this loop is not pipelined: it holds 'tile.atomic_rmw', which acquires: nothing after it may be read before it}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "y" %y : tensor<64x32xf16, #column>
      %old = tile.atomic_rmw add acquire gpu %o, %c1 : !tile.ptr<i32>
    }
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @acquires_inside(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %o: !tile.ptr<i32>, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    // expected-remark @+1 {{this loop is not pipelined: it holds 'tile.atomic_cas', which acquires: nothing after it may be read before it}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "y" %y : tensor<64x32xf16, #column>
      %odd = arith.cmpi eq, %i, %s : i32
      scf.if %odd {
        %old = tile.atomic_cas acq_rel gpu %o, %c0, %c1 : !tile.ptr<i32>
      }
    }
    return
  }
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @table_written(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %t: !tile.ptr<i32>, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %q = tile.addptr %t, %i : !tile.ptr<i32>, i32
      %at = tile.load %q : !tile.ptr<i32>
      // expected-remark @+1 {{this load is not pipelined: its address is in memory, and 'tile.store' in the loop writes to the same argument}}
      %x = tile.load_view %v[%at, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "y" %y : tensor<64x32xf16, #column>
      tile.store %q, %n : !tile.ptr<i32>
    }
    return
  }
}

// -----

// Elementwise work: a load says why it stays, and so does one in a conditional.
#own = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @elementwise(%p: !tile.ptr<f16>, %n: i32) attributes {tile.kernel, tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf16, #own>
    %range = tile.range 0 to 64 : tensor<64xi32, #own>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf16, #own>) : i32 {
      %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
      %base = tile.splat %at : !tile.ptr<f16> to tensor<64x!tile.ptr<f16>, #own>
      %q = tile.addptr %base, %range : tensor<64x!tile.ptr<f16>, #own>, tensor<64xi32, #own>
      // expected-remark @+1 {{this load is not pipelined: only 2 bytes of it are known to lie together and aligned}}
      %x = tile.load %q : tensor<64x!tile.ptr<f16>, #own>
      %odd = arith.cmpi eq, %i, %n : i32
      %y = scf.if %odd -> (tensor<64xf16, #own>) {
        // expected-remark @+1 {{this load is not pipelined: it is in a conditional}}
        %z = tile.load %q : tensor<64x!tile.ptr<f16>, #own>
        scf.yield %z : tensor<64xf16, #own>
      } else {
        scf.yield %x : tensor<64xf16, #own>
      }
      %more = arith.addf %acc, %y : tensor<64xf16, #own>
      scf.yield %more : tensor<64xf16, #own>
    }
    tile.print "sum" %sum : tensor<64xf16, #own>
    return
  }
}

// -----

// Tiles for elementwise work leave room for the scratch of conversions.
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[1,32], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_89"} {
  func.func @no_room(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x256xf16, #row>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x256xf16>, i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x256xf16, #row>) : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<64x256xf16>, i32 -> tensor<64x256xf16, #row>
      // expected-remark @+1 {{this load is not pipelined: there is no room for its buffers of 32768 bytes in shared memory}}
      %y = tile.load_view %v[%n, %c0] : !tile.view<64x256xf16>, i32 -> tensor<64x256xf16, #row>
      %z = arith.addf %x, %y : tensor<64x256xf16, #row>
      %more = arith.addf %acc, %z : tensor<64x256xf16, #row>
      scf.yield %more : tensor<64x256xf16, #row>
    }
    tile.print "sum" %sum : tensor<64x256xf16, #row>
    return
  }
}
