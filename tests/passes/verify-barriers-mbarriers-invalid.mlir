// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-verify-barriers

// Which mbarriers these are is not known here.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @given(%b: !tile_gpu.mbarriers<1>) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    // expected-error @+1 {{cannot be proved: which mbarrier this arrives at depends on the mbarriers}}
    tile_gpu.mbarrier_arrive %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    // expected-error @+1 {{cannot be proved: which mbarrier this waits for depends on the mbarriers}}
    tile_gpu.mbarrier_wait %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    return
  }
}

// -----

// Nor which of several, nor which phase.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @numbers(%n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<2>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %b arrivals 4 : !tile_gpu.mbarriers<2>
    }
    tile_gpu.barrier
    // expected-error @+1 {{cannot be proved: which mbarrier this arrives at depends on the number}}
    tile_gpu.mbarrier_arrive %b[%n] phase %c0 : !tile_gpu.mbarriers<2>
    // expected-error @+1 {{cannot be proved: which phase this waits for depends on the phase}}
    tile_gpu.mbarrier_wait %b[%c0] phase %n : !tile_gpu.mbarriers<2>
    return
  }
}

// -----

// Nor how many have arrived.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @sometimes(%p: i1) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %b arrivals 4 : !tile_gpu.mbarriers<1>
    }
    tile_gpu.barrier
    scf.if %p {
      tile_gpu.mbarrier_arrive %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    }
    // expected-error @+1 {{cannot be proved: waits for mbarrier 0, and paths to here have different numbers of arrivals at it}}
    tile_gpu.mbarrier_wait %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    return
  }
}

// -----

// They begin on one path only.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @sometimes_begun(%p: i1) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
    scf.if %p {
      tile_gpu.elected {
        tile_gpu.mbarrier_init %b arrivals 4 : !tile_gpu.mbarriers<1>
      }
    }
    tile_gpu.barrier
    // expected-error @+1 {{cannot be proved: arrives at mbarrier 0, which paths to here have begun in different ways}}
    tile_gpu.mbarrier_arrive %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    return
  }
}

// -----

// Each round arrives, once with phase 0 and once with phase 1; nobody may know that the phase before is over.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @not_over(%n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %b arrivals 4 : !tile_gpu.mbarriers<1>
    }
    tile_gpu.barrier
    // expected-note @+1 {{the path goes into the loop's next round}}
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %c0) -> (i32) : i32 {
      // expected-error @+3 {{this arrival may come before the last phase of its mbarrier is over}}
      // expected-note @+2 {{the arrival at that phase}}
      // expected-note @+1 {{wait for that phase on this path}}
      tile_gpu.mbarrier_arrive %b[%c0] phase %p : !tile_gpu.mbarriers<1>
      tile_gpu.elected {
        // expected-note @+1 {{only the elected thread waits here}}
        tile_gpu.mbarrier_wait %b[%c0] phase %p : !tile_gpu.mbarriers<1>
      }
      %q = arith.xori %p, %c1 : i32
      scf.yield %q : i32
    }
    return
  }
}

// -----

// The elected thread may be a phase ahead of who waits.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @not_seen(%n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %b arrivals 1 : !tile_gpu.mbarriers<1>
    }
    tile_gpu.barrier
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    }
    // expected-note @+1 {{the wait for that phase}}
    tile_gpu.mbarrier_wait %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    tile_gpu.elected {
      // expected-error @+2 {{this arrival may end the next phase of an mbarrier before every thread has seen that the last one is over}}
      // expected-note @+1 {{let the threads arrive at another mbarrier after their wait}}
      tile_gpu.mbarrier_arrive %b[%c0] phase %c1 : !tile_gpu.mbarriers<1>
    }
    tile_gpu.mbarrier_wait %b[%c0] phase %c1 : !tile_gpu.mbarriers<1>
    return
  }
}

// -----

// A phase that nobody waited for.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @missed(%n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %b arrivals 1 : !tile_gpu.mbarriers<1>
    }
    tile_gpu.barrier
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
      tile_gpu.mbarrier_wait %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
      tile_gpu.mbarrier_arrive %b[%c0] phase %c1 : !tile_gpu.mbarriers<1>
    }
    // expected-error @+1 {{waits for phase 1 of mbarrier 0, but not every thread has waited for the one before it}}
    tile_gpu.mbarrier_wait %b[%c0] phase %c1 : !tile_gpu.mbarriers<1>
    return
  }
}

// -----

// A copy counts to a phase before that one has begun.
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @early(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
      attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
    %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %b arrivals 1 : !tile_gpu.mbarriers<1>
      tile_gpu.tensor_copy %map[%c0, %c0] to %a0 dims [1, 0] counts %b[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
      // expected-note @+1 {{the arrival at that phase}}
      tile_gpu.mbarrier_arrive %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
      // expected-error @+2 {{this copy's count may come before the last phase of its mbarrier is over}}
      // expected-note @+1 {{wait for that phase on this path}}
      tile_gpu.tensor_copy %map[%c0, %c1] to %a1 dims [1, 0] counts %b[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
      tile_gpu.mbarrier_wait %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
      tile_gpu.mbarrier_arrive %b[%c0] phase %c1 : !tile_gpu.mbarriers<1>
    }
    return
  }
}

// -----

// A copy that counts to nothing never ends; nor does one that counts to a phase without an arrival.  Barriers and waits
// for other copies do nothing for them.
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @endless(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
      attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
    %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
    %c = tile_gpu.local_alloc {offset = 9216 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
    // expected-note @+1 {{the copy}}
    tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #tma>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %b arrivals 1 : !tile_gpu.mbarriers<1>
      // expected-note @+1 {{the copy}}
      tile_gpu.tensor_copy %map[%c0, %c0] to %c dims [1, 0] counts %b[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
    }
    %t = tile_gpu.async_commit
    tile_gpu.async_wait all
    tile_gpu.barrier
    // expected-error @+2 {{reads bytes that a copy in flight may still write: wait for its mbarrier first}}
    // expected-note @+1 {{nobody knows which mbarrier it counts to}}
    %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
    // expected-error @+2 {{reads bytes that a copy in flight may still write: wait for its mbarrier first}}
    // expected-note @+1 {{no mbarrier_arrive on this path belongs to the phase that it counts to}}
    %m = tile_gpu.local_load %c : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
    return
  }
}

// -----

// Global memory that a copy reads: stores of other warps before it, and while it goes on.
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @global(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
      attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant 0.0 : bf16
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
    %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %b arrivals 1 : !tile_gpu.mbarriers<1>
    }
    tile_gpu.barrier
    // expected-note @+1 {{the store}}
    tile.store %x, %zero : !tile.ptr<bf16>
    tile_gpu.elected {
      // expected-error @+3 {{this copy reads memory that a store before it writes}}
      // expected-note @+2 {{put a tile_gpu.barrier on this path}}
      // expected-note @+1 {{the copy}}
      tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts %b[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
      tile_gpu.mbarrier_arrive %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    }
    tile_gpu.barrier
    // expected-error @+2 {{this writes memory that a copy in flight may still read: wait for its mbarrier first}}
    // expected-note @+1 {{no mbarrier_wait on this path is for the phase that it counts to}}
    tile.store %x, %zero : !tile.ptr<bf16>
    tile_gpu.mbarrier_wait %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    tile.store %x, %zero : !tile.ptr<bf16>
    return
  }
}

// -----

// Bytes of mbarriers are for nothing else, until these end.
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @reused(%v: tensor<64x32xf16, #row>) attributes {tile.num_warps = 4 : i32} {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x32xf16, #sh>
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
    %c = tile_gpu.local_alloc {offset = 8 : i32} : !tile_gpu.mbarriers<1>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %b arrivals 4 : !tile_gpu.mbarriers<1>
      // expected-note @+1 {{they begin here}}
      tile_gpu.mbarrier_init %c arrivals 4 : !tile_gpu.mbarriers<1>
      tile_gpu.mbarrier_invalidate %b : !tile_gpu.mbarriers<1>
    }
    tile_gpu.barrier
    // expected-error @+2 {{accesses bytes of mbarriers that have not ended}}
    // expected-note @+1 {{put a tile_gpu.mbarrier_invalidate on this path}}
    tile_gpu.local_store %v, %a : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
    return
  }
}
