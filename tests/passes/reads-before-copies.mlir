// RUN: kiln-opt %s --kiln-insert-barriers | FileCheck %s
// RUN: kiln-opt %s --kiln-insert-barriers --kiln-lower-tiles | FileCheck %s --check-prefix=LOWERED

// Threads have read a slot that the copy engine fills next: before they arrive they fence, unless they have done so for
// what they stored for the hardware in between.
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>

module attributes {tile_gpu.target = "sm_90a"} {

// CHECK-LABEL: @fenced
// CHECK: mbarrier_arrive %{{.*}} phase %{{.*}} {tile_gpu.read_by_threads}
// LOWERED-LABEL: @fenced
// LOWERED: llvm.load
// LOWERED: nvvm.fence.proxy
// LOWERED-NOT: llvm.load
// LOWERED: nvvm.bar.warp.sync
// LOWERED: nvvm.mbarrier.arrive
func.func @fenced(%s: i32, %p: i32, %out: !tile.ptr<bf16>) attributes {tile.kernel, tile.num_warps = 4 : i32, tile_gpu.shared_bytes = 32768 : i32} {
  %c0 = arith.constant 0 : i32
  %empty = tile_gpu.local_alloc {alone, offset = 16384 : i32} : !tile_gpu.mbarriers<2>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  %x = tile_gpu.local_load %a {tile_gpu.read_by_threads} : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
  tile_gpu.mbarrier_arrive %empty[%s] phase %p {tile_gpu.read_by_threads} : !tile_gpu.mbarriers<2>
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %v = tile.make_view %out, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xbf16>, i32
  tile.store_view %v[%c0, %c0], %x : !tile.view<64x64xbf16>, i32, tensor<64x64xbf16, #row>
  return
}

// CHECK-LABEL: @stored
// CHECK: mbarrier_arrive %{{.*}} phase %{{[a-z0-9]*}} :
// LOWERED-LABEL: @stored
// LOWERED: llvm.store {{.*}}!llvm.ptr<3>
// LOWERED: nvvm.fence.proxy
// LOWERED-NOT: nvvm.fence.proxy
// LOWERED: nvvm.mbarrier.arrive
func.func @stored(%s: i32, %p: i32) attributes {tile.kernel, tile.num_warps = 4 : i32, tile_gpu.shared_bytes = 32768 : i32} {
  %empty = tile_gpu.local_alloc {alone, offset = 16384 : i32} : !tile_gpu.mbarriers<2>
  %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  %b = tile_gpu.local_alloc {offset = 8192 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  %x = tile_gpu.local_load %a {tile_gpu.read_by_threads} : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
  tile_gpu.local_store %x, %b : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.mbarrier_arrive %empty[%s] phase %p {tile_gpu.read_by_threads} : !tile_gpu.mbarriers<2>
  return
}
}
