// RUN: kiln-opt %s -verify-diagnostics --kiln-verify-barriers=remarks

// Rings of slots that the copy engine fills: full and empty are handed on by mbarriers, without a barrier of the block in the
// loop.  After it come the slots that were filled ahead.
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#other = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[1,4], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>

module attributes {tile_gpu.target = "sm_90a"} {

// Two slots, read by loads.
// expected-remark @+1 {{proved: 13 accesses}}
func.func @two(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<2>
  %empty = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<2>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<2>
    tile_gpu.mbarrier_init %empty arrivals 4 : !tile_gpu.mbarriers<2>
  }
  tile_gpu.barrier
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  scf.if %p0 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c0] to %a0 dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
    }
  }
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<2>
  }
  %end:4 = scf.for %i = %c0 to %n step %c1 iter_args(%r = %c0, %rp = %c0, %w = %c1, %wp = %c0)
      -> (i32, i32, i32, i32) : i32 {
    %ar = tile_gpu.local_subview %a[%r] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    %aw = tile_gpu.local_subview %a[%w] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    tile_gpu.mbarrier_wait %full[%r] phase %rp ready %ar : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
    %free = arith.xori %wp, %c1 : i32
    tile_gpu.elected {
      tile_gpu.mbarrier_wait %empty[%w] phase %free ready %aw : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
    }
    %next = arith.addi %i, %c1 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      tile_gpu.elected {
        tile_gpu.tensor_copy %map[%c0, %next] to %aw dims [1, 0] counts %full[%w] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
      }
    }
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %full[%w] phase %wp : !tile_gpu.mbarriers<2>
    }
    %l = tile_gpu.local_load %ar : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
    tile_gpu.mbarrier_arrive %empty[%r] phase %rp : !tile_gpu.mbarriers<2>
    %r1 = arith.addi %r, %c1 : i32
    %r2 = arith.cmpi eq, %r1, %c2 : i32
    %r3 = arith.select %r2, %c0, %r1 : i32
    %r4 = arith.extui %r2 : i1 to i32
    %rp1 = arith.xori %rp, %r4 : i32
    %w1 = arith.addi %w, %c1 : i32
    %w2 = arith.cmpi eq, %w1, %c2 : i32
    %w3 = arith.select %w2, %c0, %w1 : i32
    %w4 = arith.extui %w2 : i1 to i32
    %wp1 = arith.xori %wp, %w4 : i32
    scf.yield %r3, %rp1, %w3, %wp1 : i32, i32, i32, i32
  }
  %e0 = tile_gpu.local_subview %a[%end#0] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  tile_gpu.mbarrier_wait %full[%end#0] phase %end#1 ready %e0 : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.barrier
  tile_gpu.elected {
    tile_gpu.mbarrier_invalidate %full : !tile_gpu.mbarriers<2>
    tile_gpu.mbarrier_invalidate %empty : !tile_gpu.mbarriers<2>
  }
  return
}

// Three slots.
// expected-remark @+1 {{proved: 16 accesses}}
func.func @three(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<3>
  %empty = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<3>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<3>
    tile_gpu.mbarrier_init %empty arrivals 4 : !tile_gpu.mbarriers<3>
  }
  tile_gpu.barrier
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  scf.if %p0 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c0] to %a0 dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<3>
    }
  }
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<3>
  }
  %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
  %p1 = arith.cmpi sgt, %n, %c1 : i32
  scf.if %p1 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c1] to %a1 dims [1, 0] counts %full[%c1] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<3>
    }
  }
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %full[%c1] phase %c0 : !tile_gpu.mbarriers<3>
  }
  %end:4 = scf.for %i = %c0 to %n step %c1 iter_args(%r = %c0, %rp = %c0, %w = %c2, %wp = %c0)
      -> (i32, i32, i32, i32) : i32 {
    %ar = tile_gpu.local_subview %a[%r] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
    %aw = tile_gpu.local_subview %a[%w] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
    tile_gpu.mbarrier_wait %full[%r] phase %rp ready %ar : !tile_gpu.mbarriers<3>, !tile_gpu.buffer<64x64xbf16, #tma>
    %free = arith.xori %wp, %c1 : i32
    tile_gpu.elected {
      tile_gpu.mbarrier_wait %empty[%w] phase %free ready %aw : !tile_gpu.mbarriers<3>, !tile_gpu.buffer<64x64xbf16, #tma>
    }
    %next = arith.addi %i, %c2 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      tile_gpu.elected {
        tile_gpu.tensor_copy %map[%c0, %next] to %aw dims [1, 0] counts %full[%w] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<3>
      }
    }
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %full[%w] phase %wp : !tile_gpu.mbarriers<3>
    }
    %l = tile_gpu.local_load %ar : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
    tile_gpu.mbarrier_arrive %empty[%r] phase %rp : !tile_gpu.mbarriers<3>
    %r1 = arith.addi %r, %c1 : i32
    %r2 = arith.cmpi eq, %r1, %c3 : i32
    %r3 = arith.select %r2, %c0, %r1 : i32
    %r4 = arith.extui %r2 : i1 to i32
    %rp1 = arith.xori %rp, %r4 : i32
    %w1 = arith.addi %w, %c1 : i32
    %w2 = arith.cmpi eq, %w1, %c3 : i32
    %w3 = arith.select %w2, %c0, %w1 : i32
    %w4 = arith.extui %w2 : i1 to i32
    %wp1 = arith.xori %wp, %w4 : i32
    scf.yield %r3, %rp1, %w3, %wp1 : i32, i32, i32, i32
  }
  %e0 = tile_gpu.local_subview %a[%end#0] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
  tile_gpu.mbarrier_wait %full[%end#0] phase %end#1 ready %e0 : !tile_gpu.mbarriers<3>, !tile_gpu.buffer<64x64xbf16, #tma>
  %e01 = arith.addi %end#0, %c1 : i32
  %e02 = arith.cmpi eq, %e01, %c3 : i32
  %e03 = arith.select %e02, %c0, %e01 : i32
  %e04 = arith.extui %e02 : i1 to i32
  %e05 = arith.xori %end#1, %e04 : i32
  %e1 = tile_gpu.local_subview %a[%e03] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
  tile_gpu.mbarrier_wait %full[%e03] phase %e05 ready %e1 : !tile_gpu.mbarriers<3>, !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.barrier
  tile_gpu.elected {
    tile_gpu.mbarrier_invalidate %full : !tile_gpu.mbarriers<3>
    tile_gpu.mbarrier_invalidate %empty : !tile_gpu.mbarriers<3>
  }
  return
}

// Read by products in flight, which end before the arrival.
// expected-remark @+1 {{proved: 13 accesses}}
func.func @products(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %acc = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<2>
  %empty = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<2>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<2>
    tile_gpu.mbarrier_init %empty arrivals 4 : !tile_gpu.mbarriers<2>
  }
  tile_gpu.barrier
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  scf.if %p0 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c0] to %a0 dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
    }
  }
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<2>
  }
  %end:4 = scf.for %i = %c0 to %n step %c1 iter_args(%r = %c0, %rp = %c0, %w = %c1, %wp = %c0)
      -> (i32, i32, i32, i32) : i32 {
    %ar = tile_gpu.local_subview %a[%r] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    %aw = tile_gpu.local_subview %a[%w] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    tile_gpu.mbarrier_wait %full[%r] phase %rp ready %ar : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
    %free = arith.xori %wp, %c1 : i32
    tile_gpu.elected {
      tile_gpu.mbarrier_wait %empty[%w] phase %free ready %aw : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
    }
    %next = arith.addi %i, %c1 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      tile_gpu.elected {
        tile_gpu.tensor_copy %map[%c0, %next] to %aw dims [1, 0] counts %full[%w] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
      }
    }
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %full[%w] phase %wp : !tile_gpu.mbarriers<2>
    }
    %p = tile_gpu.warpgroup_begin %acc : !tile_gpu.pending<tensor<64x64xf32, #acc>>
    %q = tile_gpu.warpgroup_dot %ar, %ar, %p : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.pending<tensor<64x64xf32, #acc>>
    %d = tile_gpu.warpgroup_wait %q : tensor<64x64xf32, #acc>
    tile_gpu.mbarrier_arrive %empty[%r] phase %rp : !tile_gpu.mbarriers<2>
    %r1 = arith.addi %r, %c1 : i32
    %r2 = arith.cmpi eq, %r1, %c2 : i32
    %r3 = arith.select %r2, %c0, %r1 : i32
    %r4 = arith.extui %r2 : i1 to i32
    %rp1 = arith.xori %rp, %r4 : i32
    %w1 = arith.addi %w, %c1 : i32
    %w2 = arith.cmpi eq, %w1, %c2 : i32
    %w3 = arith.select %w2, %c0, %w1 : i32
    %w4 = arith.extui %w2 : i1 to i32
    %wp1 = arith.xori %wp, %w4 : i32
    scf.yield %r3, %rp1, %w3, %wp1 : i32, i32, i32, i32
  }
  %e0 = tile_gpu.local_subview %a[%end#0] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  tile_gpu.mbarrier_wait %full[%end#0] phase %end#1 ready %e0 : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.barrier
  tile_gpu.elected {
    tile_gpu.mbarrier_invalidate %full : !tile_gpu.mbarriers<2>
    tile_gpu.mbarrier_invalidate %empty : !tile_gpu.mbarriers<2>
  }
  return
}

// Three slots.
// expected-remark @+1 {{proved: 16 accesses}}
func.func @three_products(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %acc = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<3>
  %empty = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<3>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<3>
    tile_gpu.mbarrier_init %empty arrivals 4 : !tile_gpu.mbarriers<3>
  }
  tile_gpu.barrier
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
  %p0 = arith.cmpi sgt, %n, %c0 : i32
  scf.if %p0 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c0] to %a0 dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<3>
    }
  }
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<3>
  }
  %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
  %p1 = arith.cmpi sgt, %n, %c1 : i32
  scf.if %p1 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c1] to %a1 dims [1, 0] counts %full[%c1] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<3>
    }
  }
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %full[%c1] phase %c0 : !tile_gpu.mbarriers<3>
  }
  %end:4 = scf.for %i = %c0 to %n step %c1 iter_args(%r = %c0, %rp = %c0, %w = %c2, %wp = %c0)
      -> (i32, i32, i32, i32) : i32 {
    %ar = tile_gpu.local_subview %a[%r] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
    %aw = tile_gpu.local_subview %a[%w] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
    tile_gpu.mbarrier_wait %full[%r] phase %rp ready %ar : !tile_gpu.mbarriers<3>, !tile_gpu.buffer<64x64xbf16, #tma>
    %free = arith.xori %wp, %c1 : i32
    tile_gpu.elected {
      tile_gpu.mbarrier_wait %empty[%w] phase %free ready %aw : !tile_gpu.mbarriers<3>, !tile_gpu.buffer<64x64xbf16, #tma>
    }
    %next = arith.addi %i, %c2 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      tile_gpu.elected {
        tile_gpu.tensor_copy %map[%c0, %next] to %aw dims [1, 0] counts %full[%w] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<3>
      }
    }
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %full[%w] phase %wp : !tile_gpu.mbarriers<3>
    }
    %p = tile_gpu.warpgroup_begin %acc : !tile_gpu.pending<tensor<64x64xf32, #acc>>
    %q = tile_gpu.warpgroup_dot %ar, %ar, %p : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.pending<tensor<64x64xf32, #acc>>
    %d = tile_gpu.warpgroup_wait %q : tensor<64x64xf32, #acc>
    tile_gpu.mbarrier_arrive %empty[%r] phase %rp : !tile_gpu.mbarriers<3>
    %r1 = arith.addi %r, %c1 : i32
    %r2 = arith.cmpi eq, %r1, %c3 : i32
    %r3 = arith.select %r2, %c0, %r1 : i32
    %r4 = arith.extui %r2 : i1 to i32
    %rp1 = arith.xori %rp, %r4 : i32
    %w1 = arith.addi %w, %c1 : i32
    %w2 = arith.cmpi eq, %w1, %c3 : i32
    %w3 = arith.select %w2, %c0, %w1 : i32
    %w4 = arith.extui %w2 : i1 to i32
    %wp1 = arith.xori %wp, %w4 : i32
    scf.yield %r3, %rp1, %w3, %wp1 : i32, i32, i32, i32
  }
  %e0 = tile_gpu.local_subview %a[%end#0] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
  tile_gpu.mbarrier_wait %full[%end#0] phase %end#1 ready %e0 : !tile_gpu.mbarriers<3>, !tile_gpu.buffer<64x64xbf16, #tma>
  %e01 = arith.addi %end#0, %c1 : i32
  %e02 = arith.cmpi eq, %e01, %c3 : i32
  %e03 = arith.select %e02, %c0, %e01 : i32
  %e04 = arith.extui %e02 : i1 to i32
  %e05 = arith.xori %end#1, %e04 : i32
  %e1 = tile_gpu.local_subview %a[%e03] : !tile_gpu.buffer<[3] x 64x64xbf16, #tma>
  tile_gpu.mbarrier_wait %full[%e03] phase %e05 ready %e1 : !tile_gpu.mbarriers<3>, !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.barrier
  tile_gpu.elected {
    tile_gpu.mbarrier_invalidate %full : !tile_gpu.mbarriers<3>
    tile_gpu.mbarrier_invalidate %empty : !tile_gpu.mbarriers<3>
  }
  return
}

// A tile is copied once; what was in the buffer before has been read, and its bytes are stored to afterwards.
// expected-remark @+1 {{proved: 7 accesses}}
func.func @once(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xbf16, #row>
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<1>
  }
  %before = tile_gpu.local_load %a : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
  tile_gpu.barrier
  tile_gpu.elected {
    tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.mbarrier_wait %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
  tile_gpu.barrier
  tile_gpu.local_store %zero, %a : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #tma>
  return
}

// One thread waits for its copy, a barrier tells the others; then an mbarrier hands on what they store, to all.
// expected-remark @+1 {{proved: 9 accesses}}
func.func @handed_on(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xbf16, #row>
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %stored = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_init %stored arrivals 4 : !tile_gpu.mbarriers<1>
    tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_wait %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.barrier
  tile_gpu.local_store %zero, %a : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.mbarrier_arrive %stored[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  tile_gpu.mbarrier_wait %stored[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #other>
  return
}

// A ring for each tile: the mbarriers begin anew.
// expected-remark @+1 {{proved: 13 accesses}}
func.func @tiles(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<2>
  %empty = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<2>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  scf.for %tile = %c0 to %n step %c1 : i32 {
    tile_gpu.elected {
      tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<2>
      tile_gpu.mbarrier_init %empty arrivals 4 : !tile_gpu.mbarriers<2>
    }
    tile_gpu.barrier
    %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    %p0 = arith.cmpi sgt, %n, %c0 : i32
    scf.if %p0 {
      tile_gpu.elected {
        tile_gpu.tensor_copy %map[%c0, %c0] to %a0 dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
      }
    }
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<2>
    }
    %end:4 = scf.for %i = %c0 to %n step %c1 iter_args(%r = %c0, %rp = %c0, %w = %c1, %wp = %c0)
        -> (i32, i32, i32, i32) : i32 {
      %ar = tile_gpu.local_subview %a[%r] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
      %aw = tile_gpu.local_subview %a[%w] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
      tile_gpu.mbarrier_wait %full[%r] phase %rp ready %ar : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
      %free = arith.xori %wp, %c1 : i32
      tile_gpu.elected {
        tile_gpu.mbarrier_wait %empty[%w] phase %free ready %aw : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
      }
      %next = arith.addi %i, %c1 : i32
      %more = arith.cmpi slt, %next, %n : i32
      scf.if %more {
        tile_gpu.elected {
          tile_gpu.tensor_copy %map[%c0, %next] to %aw dims [1, 0] counts %full[%w] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
        }
      }
      tile_gpu.elected {
        tile_gpu.mbarrier_arrive %full[%w] phase %wp : !tile_gpu.mbarriers<2>
      }
      %l = tile_gpu.local_load %ar : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
      tile_gpu.mbarrier_arrive %empty[%r] phase %rp : !tile_gpu.mbarriers<2>
      %r1 = arith.addi %r, %c1 : i32
      %r2 = arith.cmpi eq, %r1, %c2 : i32
      %r3 = arith.select %r2, %c0, %r1 : i32
      %r4 = arith.extui %r2 : i1 to i32
      %rp1 = arith.xori %rp, %r4 : i32
      %w1 = arith.addi %w, %c1 : i32
      %w2 = arith.cmpi eq, %w1, %c2 : i32
      %w3 = arith.select %w2, %c0, %w1 : i32
      %w4 = arith.extui %w2 : i1 to i32
      %wp1 = arith.xori %wp, %w4 : i32
      scf.yield %r3, %rp1, %w3, %wp1 : i32, i32, i32, i32
    }
    %e0 = tile_gpu.local_subview %a[%end#0] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    tile_gpu.mbarrier_wait %full[%end#0] phase %end#1 ready %e0 : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
    tile_gpu.barrier
    tile_gpu.elected {
      tile_gpu.mbarrier_invalidate %full : !tile_gpu.mbarriers<2>
      tile_gpu.mbarrier_invalidate %empty : !tile_gpu.mbarriers<2>
    }
  }
  return
}
}
