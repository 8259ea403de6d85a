// RUN: kiln-opt %s -verify-diagnostics --kiln-verify-barriers=remarks

// Warps that copy: the thread that acts alone is in one of them.
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#other = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[1,4], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=8, order=[1,0]>

module attributes {tile_gpu.target = "sm_90a"} {

// A ring of two slots.
// expected-remark @+1 {{proved: 10 accesses}}
func.func @ring(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32, tile.copy_warps = 4 : i32} {
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
  scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0, %p = %c0) -> (i32, i32) : i32 {
    %as = tile_gpu.local_subview %a[%s] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    %free = arith.xori %p, %c1 : i32
    tile_gpu.elected {
      tile_gpu.mbarrier_wait %empty[%s] phase %free ready %as : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
      tile_gpu.tensor_copy %map[%c0, %i] to %as dims [1, 0] counts %full[%s] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
      tile_gpu.mbarrier_arrive %full[%s] phase %p : !tile_gpu.mbarriers<2>
    }
    tile_gpu.mbarrier_wait %full[%s] phase %p ready %as : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
    %l = tile_gpu.local_load %as : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
    tile_gpu.mbarrier_arrive %empty[%s] phase %p : !tile_gpu.mbarriers<2>
    %s1 = arith.addi %s, %c1 : i32
    %s2 = arith.cmpi eq, %s1, %c2 : i32
    %s3 = arith.select %s2, %c0, %s1 : i32
    %s4 = arith.extui %s2 : i1 to i32
    %p1 = arith.xori %p, %s4 : i32
    scf.yield %s3, %p1 : i32, i32
  }
  tile_gpu.barrier
  tile_gpu.elected {
    tile_gpu.mbarrier_invalidate %full : !tile_gpu.mbarriers<2>
    tile_gpu.mbarrier_invalidate %empty : !tile_gpu.mbarriers<2>
  }
  return
}

// A barrier of the warps that compute, between two of their accesses.
// expected-remark @+1 {{proved: 2 accesses}}
func.func @named()
    attributes {tile.kernel, tile.num_warps = 4 : i32, tile.copy_warps = 4 : i32} {
  %v = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x64xbf16, #sh>
  tile_gpu.local_store %v, %a : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #sh>
  tile_gpu.named_barrier 1, threads 128
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x64xbf16, #sh> to tensor<64x64xbf16, #other>
  return
}

// What the one thread has waited for the others know after a barrier of all, and the other way round.
// expected-remark @+1 {{proved: 8 accesses}}
func.func @told(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32, tile.copy_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<1>
    tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_wait %full[%c0] phase %c0 ready %a : !tile_gpu.mbarriers<1>, !tile_gpu.buffer<64x64xbf16, #tma>
  }
  tile_gpu.barrier
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
  tile_gpu.barrier
  tile_gpu.elected {
    tile_gpu.tensor_copy %map[%c0, %c1] to %a dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_arrive %full[%c0] phase %c1 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.mbarrier_wait %full[%c0] phase %c1 ready %a : !tile_gpu.mbarriers<1>, !tile_gpu.buffer<64x64xbf16, #tma>
  return
}
}
