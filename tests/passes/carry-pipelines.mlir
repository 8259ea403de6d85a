// RUN: kiln-opt %s --kiln-carry-pipelines | FileCheck %s
// RUN: kiln-opt %s --kiln-carry-pipelines --kiln-lower-pipelines --canonicalize --kiln-allocate-shared --kiln-specialize-warps --kiln-insert-barriers --kiln-verify-barriers | FileCheck %s --check-prefix=PROVED

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[8,1], order=[1,0]>
!slot = !tile_gpu.buffer<64x64xbf16, #tma>
!pipe = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x64xbf16, #tma>>

module attributes {tile_gpu.target = "sm_90a"} {

// A slot that was committed and not used is waited for at the end: one is held from the beginning, and again then.  Both barriers are made once, and a warpgroup of its own copies.
// CHECK-LABEL: @holds
// CHECK: %[[ALL:.*]] = tile_gpu.pipeline bulk holding 1
// CHECK: %[[END:.*]] = scf.for {{.*}} iter_args(%[[P:.*]] = %[[ALL]])
// CHECK: tile_gpu.acquire %[[P]]
// CHECK: tile_gpu.acquire
// CHECK: tile_gpu.local_store
// CHECK-NEXT: %[[USED:.*]] = tile_gpu.release
// CHECK-NEXT: %[[LAST:.*]], %{{.*}} = tile_gpu.wait %[[USED]]
// CHECK-NEXT: scf.yield %[[LAST]]
// CHECK: tile_gpu.drain %[[END]]
// PROVED-LABEL: @holds
// PROVED-SAME: tile.copy_warps = 4 : i32
// PROVED: scf.for
// PROVED-NOT: mbarrier_init
// PROVED: tile_gpu.local_load
// PROVED-NOT: mbarrier_init
// PROVED: return
func.func @holds(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %o = tile_gpu.local_alloc : !slot
  %first = tile.program_id x
  %step = tile.num_programs x
  scf.for %t = %first to %n step %step : i32 {
    %p = tile_gpu.pipeline bulk holding 1 : !pipe
    %a:2 = tile_gpu.acquire %p : !pipe
    tile_gpu.tensor_copy %map[%c0, %t] to %a#1 dims [1, 0] : !slot
    %b = tile_gpu.commit %a#0 : !pipe
    %c:2 = tile_gpu.acquire %b : !pipe
    %d = tile_gpu.commit %c#0 : !pipe
    %e = tile_gpu.release %d : !pipe
    %f:2 = tile_gpu.wait %e : !pipe
    %l = tile_gpu.local_load %f#1 : !slot to tensor<64x64xbf16, #row>
    tile_gpu.local_store %l, %o : tensor<64x64xbf16, #row>, !slot
    %g = tile_gpu.release %f#0 : !pipe
    tile_gpu.drain %g : !pipe
  }
  return
}

// One in an arm of a conditional: the other arm gives it as it was.  The slot that is filled next follows from the one
// that is read next, so that insert-barriers tells them apart in the inner loop wherever that begins.
// CHECK-LABEL: @in_a_conditional
// CHECK: %[[ALL:.*]] = tile_gpu.pipeline bulk
// CHECK: scf.for {{.*}} iter_args(%[[P:.*]] = %[[ALL]])
// CHECK: %[[END:.*]] = scf.if
// CHECK: tile_gpu.acquire %[[P]]
// CHECK: scf.yield
// CHECK: } else {
// CHECK-NEXT: tile.print
// CHECK-NEXT: scf.yield %[[P]]
// CHECK: scf.yield %[[END]]
// PROVED-LABEL: @in_a_conditional
// PROVED-SAME: tile.copy_warps = 4 : i32
// PROVED: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (i32, i32)
// PROVED-NOT: mbarrier_init
// PROVED: scf.for
// PROVED-NOT: tile_gpu.barrier
// PROVED: return
func.func @in_a_conditional(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile_gpu.local_alloc : !slot
  %some = arith.cmpi sgt, %n, %c1 : i32
  %first = tile.program_id x
  %step = tile.num_programs x
  scf.for %t = %first to %n step %step : i32 {
    scf.if %some {
      %p = tile_gpu.pipeline bulk : !pipe
      %a:2 = tile_gpu.acquire %p : !pipe
      tile_gpu.tensor_copy %map[%c0, %t] to %a#1 dims [1, 0] : !slot
      %b = tile_gpu.commit %a#0 : !pipe
      %end = scf.for %i = %c0 to %n step %c1 iter_args(%s = %b) -> (!pipe) : i32 {
        %f:2 = tile_gpu.wait %s : !pipe
        %c:2 = tile_gpu.acquire %f#0 : !pipe
        tile_gpu.tensor_copy %map[%c0, %i] to %c#1 dims [1, 0] : !slot
        %d = tile_gpu.commit %c#0 : !pipe
        %l = tile_gpu.local_load %f#1 : !slot to tensor<64x64xbf16, #row>
        %g = tile_gpu.release %d : !pipe
        tile_gpu.local_store %l, %o : tensor<64x64xbf16, #row>, !slot
        scf.yield %g : !pipe
      }
      tile_gpu.drain %end : !pipe
    } else {
      tile.print "none" %n : i32
    }
  }
  return
}
}
