// RUN: kiln-opt %s -verify-diagnostics --kiln-specialize-warps | FileCheck %s
// RUN: kiln-opt %s --kiln-specialize-warps --kiln-insert-barriers --kiln-specialize-warps=again | FileCheck %s --check-prefix=AGAIN

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[8,1], instrN=64>
#tma = #tile_gpu.tma<swizzle=128>
#blocked = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[8,1], order=[1,0]>
!left = !tile_gpu.buffer<128x64xbf16, #tma>
!right = !tile_gpu.buffer<64x64xbf16, #tma>
!pending = !tile_gpu.pending<tensor<128x64xf32, #acc>>

module attributes {tile_gpu.target = "sm_90a"} {

// It computes while a product is in flight.
// CHECK-LABEL: @computes
// CHECK-SAME: tile.copy_warps = 4 : i32
// AGAIN-LABEL: @computes
// AGAIN-SAME: tile.copy_warps = 4 : i32
func.func @computes(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c = arith.constant dense<1.0> : tensor<128x64xf32, #acc>
  %row = arith.constant dense<1.0> : tensor<128x1xf32, #acc>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !left
  %b = tile_gpu.local_alloc {offset = 32768 : i32} : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %i] to %b dims [1, 0] counts %full[%c0] : !right, !tile_gpu.mbarriers<1>
    }
    %p = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %y = tile_gpu.warpgroup_wait %d : tensor<128x64xf32, #acc>
  }
  return
}

// It only multiplies.
// CHECK-LABEL: @multiplies
// CHECK-NOT: copy_warps
func.func @multiplies(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c = arith.constant dense<1.0> : tensor<128x64xf32, #acc>
  %row = arith.constant dense<1.0> : tensor<128x1xf32, #acc>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !left
  %b = tile_gpu.local_alloc {offset = 32768 : i32} : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %i] to %b dims [1, 0] counts %full[%c0] : !right, !tile_gpu.mbarriers<1>
    }
    %p = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %y = tile_gpu.warpgroup_wait %d : tensor<128x64xf32, #acc>
  }
  return
}

// Its author has decided.
// CHECK-LABEL: @decided
// CHECK-SAME: tile.copy_warps = 0 : i32
func.func @decided(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 0 : i32} {
  %c = arith.constant dense<1.0> : tensor<128x64xf32, #acc>
  %row = arith.constant dense<1.0> : tensor<128x1xf32, #acc>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !left
  %b = tile_gpu.local_alloc {offset = 32768 : i32} : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %i] to %b dims [1, 0] counts %full[%c0] : !right, !tile_gpu.mbarriers<1>
    }
    %p = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %y = tile_gpu.warpgroup_wait %d : tensor<128x64xf32, #acc>
  }
  return
}

// A barrier of the block comes to stand where only some warps come by: it is taken back.
// CHECK-LABEL: @taken_back
// CHECK-SAME: tile.copy_warps = 4 : i32
// AGAIN-LABEL: @taken_back
// AGAIN-NOT: copy_warps
// AGAIN: scf.for
func.func @taken_back(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c = arith.constant dense<1.0> : tensor<128x64xf32, #acc>
  %row = arith.constant dense<1.0> : tensor<128x1xf32, #acc>
  %zero = arith.constant dense<0.0> : tensor<128x1xf32, #acc>
  %h = arith.constant dense<1.0> : tensor<64x64xbf16, #blocked>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !left
  %b = tile_gpu.local_alloc {offset = 32768 : i32} : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %y = tile_gpu.warpgroup_wait %d : tensor<128x64xf32, #acc>
    tile_gpu.elected {
      tile_gpu.tensor_copy %map[%c0, %i] to %b dims [1, 0] counts %full[%c0] : !right, !tile_gpu.mbarriers<1>
    }
  }
  %small = arith.cmpf olt, %row, %zero : tensor<128x1xf32, #acc>
  %any = tile.any_row %small : tensor<128x1xi1, #acc>
  scf.if %any {
    tile_gpu.local_store %h, %b : tensor<64x64xbf16, #blocked>, !right
  }
  return
}
}
