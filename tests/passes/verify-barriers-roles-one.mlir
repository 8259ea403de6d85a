// RUN: kiln-opt %s -verify-diagnostics -split-input-file --kiln-verify-barriers -o /dev/null

// The programs of verify-barriers-roles-invalid.mlir without warps that copy: proved.
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>

module attributes {tile_gpu.target = "sm_90a"} {
// The one thread knows that the copy is there; the warps that compute arrive without it.
func.func @arrives_without(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %all = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_init %all arrivals 4 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.barrier
  tile_gpu.elected {
    tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_wait %full[%c0] phase %c0 ready %a : !tile_gpu.mbarriers<1>, !tile_gpu.buffer<64x64xbf16, #tma>
  }
  tile_gpu.mbarrier_arrive %all[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  tile_gpu.mbarrier_wait %all[%c0] phase %c0 ready %a : !tile_gpu.mbarriers<1>, !tile_gpu.buffer<64x64xbf16, #tma>
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
  return
}
}

// -----

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>

module attributes {tile_gpu.target = "sm_90a"} {
// A barrier of the warps that compute says nothing to the one that copies.
func.func @not_there(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %v = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
  %c0 = arith.constant 0 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.barrier
  tile_gpu.local_store %v, %a : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.named_barrier 1, threads 128
  tile_gpu.elected {
    tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.mbarrier_wait %full[%c0] phase %c0 ready %a : !tile_gpu.mbarriers<1>, !tile_gpu.buffer<64x64xbf16, #tma>
  return
}
}

// -----

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>

module attributes {tile_gpu.target = "sm_90a"} {
// The warps that compute have waited for the copy; the thread that copies there again has not, and nobody told it.
func.func @copies_again(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<2>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<2>
  }
  tile_gpu.barrier
  tile_gpu.elected {
    tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
    tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<2>
  }
  tile_gpu.mbarrier_wait %full[%c0] phase %c0 ready %a : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.tensor_copy %map[%c0, %c1] to %a dims [1, 0] counts %full[%c1] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
    tile_gpu.mbarrier_arrive %full[%c1] phase %c0 : !tile_gpu.mbarriers<2>
  }
  tile_gpu.mbarrier_wait %full[%c1] phase %c0 ready %a : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
  return
}
}

// -----

module attributes {tile_gpu.target = "sm_90a"} {
// The one thread may still wait for a phase when the others end the next one.
func.func @falls_behind(%n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %b = tile_gpu.local_alloc {offset = 64 : i32} : !tile_gpu.mbarriers<1>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %b arrivals 4 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.barrier
  scf.for %i = %c0 to %n step %c1 iter_args(%p = %c0) -> (i32) : i32 {
    tile_gpu.mbarrier_arrive %b[%c0] phase %p : !tile_gpu.mbarriers<1>
    tile_gpu.mbarrier_wait %b[%c0] phase %p : !tile_gpu.mbarriers<1>
    tile_gpu.elected {
      tile_gpu.mbarrier_wait %b[%c0] phase %p : !tile_gpu.mbarriers<1>
    }
    %p1 = arith.xori %p, %c1 : i32
    scf.yield %p1 : i32
  }
  return
}
}

// -----

module attributes {tile_gpu.target = "sm_90a"} {
// One warp that computes: a barrier of its lanes says nothing to the warp that copies.
func.func @one_warp(%n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %b arrivals 1 : !tile_gpu.mbarriers<1>
  }
  tile_gpu.warp_barrier
  tile_gpu.mbarrier_arrive %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  tile_gpu.mbarrier_wait %b[%c0] phase %c0 : !tile_gpu.mbarriers<1>
  return
}
}

