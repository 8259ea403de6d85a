// RUN: kiln-opt %s -verify-diagnostics -split-input-file --kiln-verify-barriers

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>

module attributes {tile_gpu.target = "sm_90a"} {
// The outer loop's next round begins at the first slot again, whose phase went on.
func.func @begins_again(%x: !tile.ptr<bf16>, %n: i32, %programs: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %full = tile_gpu.local_alloc {alone, offset = 0 : i32} : !tile_gpu.mbarriers<2>
  %empty = tile_gpu.local_alloc {alone, offset = 64 : i32} : !tile_gpu.mbarriers<2>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<2>
    tile_gpu.mbarrier_init %empty arrivals 4 : !tile_gpu.mbarriers<2>
  }
  tile_gpu.barrier
  scf.for %t = %c0 to %programs step %c1 : i32 {
    %e:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0, %p = %c0) -> (i32, i32) : i32 {
      %as = tile_gpu.local_subview %a[%s] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
      %free = arith.xori %p, %c1 : i32
      tile_gpu.elected {
        // expected-error @+1 {{paths to here have different numbers of arrivals at it}}
        tile_gpu.mbarrier_wait %empty[%s] phase %free ready %as : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
        tile_gpu.tensor_copy %map[%c0, %i] to %as dims [1, 0] counts %full[%s] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
        // expected-error @+1 {{paths to here have different numbers of arrivals at it}}
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
  }
  return
}
}
