// RUN: kiln-opt %s --kiln-insert-barriers --kiln-verify-barriers | FileCheck %s
// RUN: sed -e 's,leave 1,leave 3,' %s | not kiln-opt --kiln-insert-barriers --kiln-verify-barriers 2>&1 | FileCheck %s --check-prefix=WEAK

// A product goes on until the next round has begun its own, so a round releases the slot of two rounds ago: four slots,
// two of them filled ahead, two released in the first rounds, before they have ever been filled.
// WEAK: error: writes bytes that a product in flight may still read: wait for its group first
// WEAK: note: this wait leaves 3 groups in flight

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
module attributes {tile_gpu.target = "sm_90a"} {
// CHECK-LABEL: @late
// CHECK-NOT: {{barrier$}}
// CHECK: tile_gpu.barrier{{$}}
// CHECK-NEXT: scf.for
// CHECK-NOT: {{barrier$}}
// CHECK: tile_gpu.barrier{{$}}
// CHECK-NEXT: tile_gpu.elected
// CHECK-NEXT: tile_gpu.mbarrier_invalidate
// CHECK-NOT: {{barrier$}}
// CHECK: return
func.func @late(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %acc = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<4>
  %empty = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<4>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<[4] x 64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<4>
    tile_gpu.mbarrier_init %empty arrivals 4 : !tile_gpu.mbarriers<4>
  }
  %a0 = tile_gpu.local_subview %a[%c0] : !tile_gpu.buffer<[4] x 64x64xbf16, #tma>
  %a1 = tile_gpu.local_subview %a[%c1] : !tile_gpu.buffer<[4] x 64x64xbf16, #tma>
  %e0 = arith.cmpi sgt, %n, %c0 : i32
  scf.if %e0 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c0] to %a0 dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<4>
    }
  }
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<4>
  }
  %e1 = arith.cmpi sgt, %n, %c1 : i32
  scf.if %e1 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c1] to %a1 dims [1, 0] counts %full[%c1] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<4>
    }
  }
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %full[%c1] phase %c0 : !tile_gpu.mbarriers<4>
  }
  %s0 = tile_gpu.warpgroup_begin %acc : !tile_gpu.pending<tensor<64x64xf32, #acc>>
  %end:7 = scf.for %i = %c0 to %n step %c1 iter_args(%r = %c0, %rp = %c0, %w = %c2, %wp = %c0, %f = %c2, %fp = %c0, %s = %s0)
      -> (i32, i32, i32, i32, i32, i32, !tile_gpu.pending<tensor<64x64xf32, #acc>>) : i32 {
    %ar = tile_gpu.local_subview %a[%r] : !tile_gpu.buffer<[4] x 64x64xbf16, #tma>
    %aw = tile_gpu.local_subview %a[%w] : !tile_gpu.buffer<[4] x 64x64xbf16, #tma>
    tile_gpu.mbarrier_wait %full[%r] phase %rp ready %ar : !tile_gpu.mbarriers<4>, !tile_gpu.buffer<64x64xbf16, #tma>
    %q = tile_gpu.warpgroup_dot %ar, %ar, %s : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.pending<tensor<64x64xf32, #acc>>
    %t = tile_gpu.warpgroup_wait %q leave 1 : !tile_gpu.pending<tensor<64x64xf32, #acc>>
    tile_gpu.mbarrier_arrive %empty[%f] phase %fp : !tile_gpu.mbarriers<4>
    tile_gpu.elected {
      tile_gpu.mbarrier_wait %empty[%w] phase %fp ready %aw : !tile_gpu.mbarriers<4>, !tile_gpu.buffer<64x64xbf16, #tma>
    }
    %next = arith.addi %i, %c2 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      tile_gpu.elected {
        tile_gpu.tensor_copy %map[%c0, %next] to %aw dims [1, 0] counts %full[%w] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<4>
      }
    }
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %full[%w] phase %wp : !tile_gpu.mbarriers<4>
    }
    %r1 = arith.addi %r, %c1 : i32
    %r2 = arith.cmpi eq, %r1, %c4 : i32
    %r3 = arith.select %r2, %c0, %r1 : i32
    %r4 = arith.extui %r2 : i1 to i32
    %rp1 = arith.xori %rp, %r4 : i32
    %w1 = arith.addi %w, %c1 : i32
    %w2 = arith.cmpi eq, %w1, %c4 : i32
    %w3 = arith.select %w2, %c0, %w1 : i32
    %w4 = arith.extui %w2 : i1 to i32
    %wp1 = arith.xori %wp, %w4 : i32
    %f2 = arith.cmpi eq, %w3, %c2 : i32
    %f4 = arith.extui %f2 : i1 to i32
    %fp1 = arith.xori %fp, %f4 : i32
    scf.yield %r3, %rp1, %w3, %wp1, %w3, %fp1, %t : i32, i32, i32, i32, i32, i32, !tile_gpu.pending<tensor<64x64xf32, #acc>>
  }
  %d = tile_gpu.warpgroup_wait %end#6 : tensor<64x64xf32, #acc>
  tile_gpu.mbarrier_wait %full[%end#0] phase %end#1 : !tile_gpu.mbarriers<4>
  %y1 = arith.addi %end#0, %c1 : i32
  %y2 = arith.cmpi eq, %y1, %c4 : i32
  %y3 = arith.select %y2, %c0, %y1 : i32
  %y4 = arith.extui %y2 : i1 to i32
  %y5 = arith.xori %end#1, %y4 : i32
  tile_gpu.mbarrier_wait %full[%y3] phase %y5 : !tile_gpu.mbarriers<4>
  tile_gpu.elected {
    tile_gpu.mbarrier_invalidate %full : !tile_gpu.mbarriers<4>
    tile_gpu.mbarrier_invalidate %empty : !tile_gpu.mbarriers<4>
  }
  return
}
}
