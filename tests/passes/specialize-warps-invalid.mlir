// RUN: kiln-opt %s -verify-diagnostics --kiln-specialize-warps | FileCheck %s

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[8,1], instrN=64>
#tma = #tile_gpu.tma<swizzle=128>
!left = !tile_gpu.buffer<128x64xbf16, #tma>
!right = !tile_gpu.buffer<64x64xbf16, #tma>
!pending = !tile_gpu.pending<tensor<128x64xf32, #acc>>

module attributes {tile_gpu.target = "sm_90a"} {

// Which rows come next depends on what was computed.
// CHECK-LABEL: @follows
// CHECK-NOT: copy_warps
func.func @follows(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c = arith.constant dense<1.0> : tensor<128x64xf32, #acc>
  %row = arith.constant dense<1.0> : tensor<128x1xf32, #acc>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x1xf32, #acc>
  %full = tile_gpu.local_alloc : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %small = arith.cmpf olt, %f, %zero : tensor<128x1xf32, #acc>
    // expected-remark @+1 {{no warps of their own copy: this decides what is copied, and takes the warps that compute}}
    %any = tile.any_row %small : tensor<128x1xi1, #acc>
    scf.if %any {
      tile_gpu.elected {
        tile_gpu.tensor_copy %map[%c0, %i] to %b dims [1, 0] counts %full[%c0] : !right, !tile_gpu.mbarriers<1>
      }
    }
    %y = tile_gpu.warpgroup_wait %d : tensor<128x64xf32, #acc>
  }
  return
}
}
