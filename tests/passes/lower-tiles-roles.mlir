// RUN: kiln-opt %s --kiln-split-roles --kiln-lower-tiles --canonicalize --cse | FileCheck %s
// RUN: kiln-opt %s --kiln-stage-lowering --emit-ptx | FileCheck %s --check-prefix=PTX

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>

module attributes {tile_gpu.target = "sm_90a"} {
  // The thread that acts alone is in the first of the warps after those that compute; registers go from one to the other.
  // CHECK-LABEL: @one
  // CHECK: %[[WARP:.*]] = arith.shrui %{{.*}}, %c5_i32
  // CHECK: %[[LANE:.*]] = nvvm.elect.sync
  // CHECK: %[[EIGHTH:.*]] = arith.cmpi eq, %[[WARP]], %c8_i32
  // CHECK: %[[ELECTED:.*]] = arith.andi %[[EIGHTH]], %[[LANE]]
  // CHECK: %[[COPIES:.*]] = arith.cmpi uge, %[[WARP]], %c8_i32
  // CHECK: scf.if %[[COPIES]] {
  // CHECK: nvvm.setmaxregister decrease 24
  // CHECK: scf.if %[[ELECTED]] {
  // CHECK: nvvm.mbarrier.init
  // CHECK: nvvm.barrier0
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK: } else {
  // CHECK: nvvm.setmaxregister increase 240
  // CHECK: nvvm.barrier0
  // CHECK-NOT: bulk
  // CHECK: mbarrier.try_wait
  // PTX: .entry one(
  // PTX: .reqntid 384
  // PTX: .minnctapersm 1
  // PTX-DAG: setmaxnreg.dec.sync.aligned.u32
  // PTX-DAG: setmaxnreg.inc.sync.aligned.u32
  func.func @one(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
      attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32, tile_gpu.shared_bytes = 9216 : i32} {
    %c0 = arith.constant 0 : i32
    %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
    %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
    tile_gpu.elected {
      tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<1>
    }
    tile_gpu.barrier
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
      tile_gpu.mbarrier_arrive %full[%c0] phase %c0 : !tile_gpu.mbarriers<1>
    }
    tile_gpu.mbarrier_wait %full[%c0] phase %c0 ready %a : !tile_gpu.mbarriers<1>, !tile_gpu.buffer<64x64xbf16, #tma>
    return
  }
}
