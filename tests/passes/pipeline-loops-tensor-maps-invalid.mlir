// RUN: kiln-opt %s --kiln-pipeline-loops -split-input-file -verify-diagnostics

// Which tiles the copy engine cannot fetch, and why: the threads copy those, and with them the loop's others.

// -----

#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @narrowed(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %whole = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %v = tile.narrow_view %whole[%c64, %n] {dim = 0 : i32} : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark @+1 {{this load is copied by the threads: its view is narrowed, and a tensor map knows the whole tensor's bounds only}}
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @address(%p: !tile.ptr<bf16> {tile.divisibility = 8 : i32}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark @+1 {{this load is copied by the threads: the tensor is not known to begin at a multiple of 16 bytes}}
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @moved(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %from = tile.addptr %p, %s : !tile.ptr<bf16>, i32
    %v = tile.make_view %from, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark @+1 {{this load is copied by the threads: its view does not begin at an argument of the kernel}}
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @stride(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32}, %r: i32 {tile.divisibility = 4 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%r, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark @+1 {{this load is copied by the threads: a stride of its view is not known to be a multiple of 16 bytes}}
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @divided(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %half = arith.divsi %n, %c2 : i32
    %v = tile.make_view %p, extents [%half, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark @+1 {{this load is copied by the threads: an extent or a stride of its view is made of more than arguments of the kernel}}
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @extent_of_a_loop(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    scf.for %j = %c1 to %n step %c1 : i32 {
    %v = tile.make_view %p, extents [%j, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark @+1 {{this load is copied by the threads: an extent or a stride of its view is made of more than arguments of the kernel}}
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    } {tile.num_stages = 1 : i32}
    return
  }
}

// -----

#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @stride_of_a_program(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %id = tile.program_id x
    %far = arith.muli %s, %id : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%far, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark @+1 {{this load is copied by the threads: an extent or a stride of its view is made of more than arguments of the kernel}}
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// A statement about the whole kernel.
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_tensor_maps(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32, tile_gpu.no_tensor_maps} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark @+1 {{this load is copied by the threads: the launcher can make no tensor map of these arguments}}
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      // expected-remark @+1 {{this load is copied by the threads: the launcher can make no tensor map of these arguments}}
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// A target without tensor maps: its copies are the threads' anyway, and no remark says so.
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @another_target(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// What threads write the copy engine may not see: not a tensor that the kernel writes to, wherever.
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @written(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %one = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    tile.store_view %v[%c0, %c0], %one : !tile.view<64x64xbf16>, i32, tensor<64x64xbf16, #row>
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark @+1 {{this load is copied by the threads: the kernel may write to the same argument, or acquires what others write}}
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}
