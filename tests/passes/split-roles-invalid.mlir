// RUN: kiln-opt %s -verify-diagnostics -split-input-file --kiln-split-roles

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[8], threadsPerWarp=[32], warpsPerCTA=[8], order=[0]>

module attributes {tile_gpu.target = "sm_90a"} {

// Whether there is a copy is known to the warps that compute.
func.func @decided(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} {
  %v = arith.constant dense<true> : tensor<256xi1, #row>
  %c0 = arith.constant 0 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  // expected-error @+1 {{decides what the warps that copy do, and takes warps that compute: leave out tile.copy_warps}}
  %any = tile.any_row %v : tensor<256xi1, #row>
  scf.if %any {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
      tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    }
  }
  return
}
}

// -----

module attributes {tile_gpu.target = "sm_90a"} {

// The kernel writes what decides, and the warps that copy would read it at another time.
func.func @written(%x: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32, tile.copy_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  // expected-error @+1 {{decides what the warps that copy do}}
  %m = tile.load %x : !tile.ptr<i32>
  tile.store %x, %c1 : !tile.ptr<i32>
  %b = arith.cmpi eq, %m, %c0 : i32
  scf.if %b {
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    }
  }
  return
}
}

// -----

module attributes {tile_gpu.target = "sm_90a"} {

// expected-error @+1 {{decides what the warps that copy do}}
func.func @branches() attributes {tile.kernel, tile.num_warps = 4 : i32, tile.copy_warps = 4 : i32} {
  cf.br ^bb1
^bb1:
  return
}
}
