// RUN: kiln-opt %s --kiln-optimize-layouts | FileCheck %s

#acc = #tile_gpu.mma<version=2, warpsPerCTA=[4,1], instrN=8>
#rows = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_80"} {

// Each warp has 16 rows side by side: it stores these, and none that others have.
// CHECK-DAG: #[[APART:.*]] = #tile_gpu.blocked<sizePerThread=[4,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
// CHECK-LABEL: @apart
// CHECK: %[[T:.*]] = tile_gpu.convert_layout %{{.*}} to tensor<64x64xbf16, #[[APART]]>
// CHECK-NEXT: tile.store_view %{{.*}}, %[[T]]
func.func @apart(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}, %x: tensor<64x64xbf16, #acc>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %v = tile.make_view %p, extents [%n, %c64], strides [%n, %c1] : !view, i32
  %y = tile_gpu.convert_layout %x : tensor<64x64xbf16, #acc> to tensor<64x64xbf16, #rows>
  tile.store_view %v[%c0, %c0], %y : !view, i32, tensor<64x64xbf16, #rows>
  return
}

// What is read by something else, too, stays as that wants it.
// CHECK-LABEL: @shared
// CHECK: tile_gpu.convert_layout %{{.*}} to tensor<64x64xbf16, #[[ROWS:[a-z0-9_]*]]>
// CHECK-NOT: convert_layout
// CHECK: return
func.func @shared(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}, %x: tensor<64x64xbf16, #acc>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %v = tile.make_view %p, extents [%n, %c64], strides [%n, %c1] : !view, i32
  %y = tile_gpu.convert_layout %x : tensor<64x64xbf16, #acc> to tensor<64x64xbf16, #rows>
  tile.store_view %v[%c0, %c0], %y : !view, i32, tensor<64x64xbf16, #rows>
  tile.store_view %v[%c0, %c0], %y : !view, i32, tensor<64x64xbf16, #rows>
  return
}
}
