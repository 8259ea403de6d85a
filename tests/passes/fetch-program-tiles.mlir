// RUN: kiln-opt %s --kiln-fetch-program-tiles --split-input-file | FileCheck %s
// RUN: kiln-opt %s --kiln-fetch-program-tiles --kiln-carry-pipelines --kiln-lower-pipelines --kiln-expand-shared --kiln-allocate-shared --kiln-insert-barriers --kiln-verify-barriers --split-input-file | FileCheck %s --check-prefix=PROVED

// A tile that each program loads once, for products in a loop of its: one slot, given back after the loop, which looks
// at the sums last.  Products read the slot, wherever they stand.
// CHECK-LABEL: @once
// CHECK: scf.for
// CHECK: %[[P:.*]] = tile_gpu.pipeline bulk : !tile_gpu.pipeline<1,
// CHECK-NEXT: %[[A:.*]], %[[TO:.*]] = tile_gpu.acquire %[[P]]
// CHECK-NEXT: tile_gpu.tensor_copy %{{.*}}[%c0_i32, %[[T:.*]]] to %[[TO]] dims [1, 0]
// CHECK-NEXT: %[[C:.*]] = tile_gpu.commit %[[A]]
// CHECK-NEXT: %[[W:.*]], %[[IN:.*]] = tile_gpu.wait %[[C]]
// CHECK-NEXT: %[[Q:.*]] = tile_gpu.local_load %[[IN]] {tile_gpu.held_for_products}
// CHECK-NOT: tile.load_view
// CHECK: scf.for
// CHECK: tile.dot %[[Q]]
// CHECK: }
// CHECK-NEXT: %[[R:.*]] = tile_gpu.release %[[W]]
// CHECK-NEXT: tile_gpu.drain %[[R]]
// PROVED-LABEL: @once
// PROVED: tile_gpu.mbarrier_init
// PROVED: scf.for
// PROVED-NOT: tile_gpu.mbarrier_init
// PROVED: tile_gpu.mbarrier_wait %[[FULL:.*]][%{{.*}}] phase %{{.*}} ready %[[B:.*]] :
// PROVED: scf.for
// PROVED-NOT: tile_gpu.barrier
// PROVED: tile_gpu.warpgroup_dot %{{.*}}"q"
// PROVED-NOT: tile_gpu.barrier
// PROVED: tile_gpu.mbarrier_arrive
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @once(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %first = tile.program_id x
    %step = tile.num_programs x
    scf.for %t = %first to %n step %step : i32 {
      %q = tile.load_view %view[%t, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
        %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
        scf.yield %g : tensor<64x64xf32, #acc>
      }
      tile.print "sums" %sums : tensor<64x64xf32, #acc>
    } {tile.num_stages = 1 : i32}
    return
  }
}

// -----

// What the loop writes through the same argument the next program's copy would pass; what elementwise work reads, too,
// is not for products alone; a loop over something else is no loop over programs.
// CHECK-LABEL: @left
// CHECK-NOT: tile_gpu.pipeline
// CHECK: return
// PROVED-LABEL: @left
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @left(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %r: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "r"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %other = tile.make_view %r, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %first = tile.program_id x
    %step = tile.num_programs x
    scf.for %t = %first to %n step %step : i32 {
      %q = tile.load_view %view[%t, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %q, %x, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      tile.print "sums" %d : tensor<64x64xf32, #acc>
      tile.store_view %view[%t, %c0], %x : !view, i32, tensor<64x64xbf16, #row>
    } {tile.num_stages = 1 : i32}
    scf.for %t = %first to %n step %step : i32 {
      %q = tile.load_view %other[%t, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %q, %x, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      tile.print "sums" %d : tensor<64x64xf32, #acc>
      %twice = arith.addf %q, %q : tensor<64x64xbf16, #row>
      tile.print "twice" %twice : tensor<64x64xbf16, #row>
    } {tile.num_stages = 1 : i32}
    scf.for %t = %c0 to %n step %c1 : i32 {
      %q = tile.load_view %other[%t, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %q, %x, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      tile.print "sums" %d : tensor<64x64xf32, #acc>
    } {tile.num_stages = 1 : i32}
    return
  }
}
