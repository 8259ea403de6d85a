// RUN: kiln-opt %s --kiln-pipeline-loops --kiln-rotate-products --canonicalize --cse --split-input-file | FileCheck %s

// What is waited for before the loop is looked at in it, and the next slot is waited for once this one is released, all
// of its reads before.  (What becomes of it: pipeline-loops.mlir.)
// CHECK-LABEL: @product
// CHECK: %[[P:.*]] = tile_gpu.pipeline : !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #{{.*}}>, !tile_gpu.buffer<32x64xf16
// CHECK: %[[FEW:.*]] = arith.xori
// CHECK: scf.if %[[FEW]] {
// CHECK: tile_gpu.slots %[[P]] at
// CHECK: tile_gpu.local_store
// CHECK: tile_gpu.local_store
// CHECK: tile_gpu.acquire %[[P]]
// CHECK: %[[C:.*]] = tile_gpu.commit
// CHECK: tile_gpu.acquire %[[C]]
// CHECK: %[[D:.*]] = tile_gpu.commit
// CHECK: %[[W:.*]], %{{.*}}:2 = tile_gpu.wait %[[D]]
// CHECK: %[[FA:.*]] = tile_gpu.part {{.*}} [0 of 2] along 1
// CHECK: %[[FB:.*]] = tile_gpu.part {{.*}} [0 of 2] along 0
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[S:.*]] = %[[W]], %[[A:.*]] = %[[FA]], %[[B:.*]] = %[[FB]])
// CHECK: %[[NOW:.*]]:2 = tile_gpu.slots %[[S]] :
// CHECK: tile_gpu.acquire %[[S]]
// CHECK: %[[E:.*]] = tile_gpu.commit
// CHECK: tile_gpu.local_load %[[NOW]]#0
// CHECK: tile_gpu.local_load %[[NOW]]#1
// CHECK: tile.dot %[[A]], %[[B]], %[[ACC]]
// CHECK: %[[R:.*]] = tile_gpu.release %[[E]]
// CHECK: %[[X:.*]], %{{.*}}:2 = tile_gpu.wait %[[R]]
// CHECK: tile.dot
// CHECK: scf.yield %{{.*}}, %[[X]],
// CHECK: tile_gpu.drain
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#wide = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @product(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    %w = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<32x64xf16>, i32
    %sum = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %a = tile.load_view %v[%c0, %i] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %b = tile.load_view %w[%i, %c0] : !tile.view<32x64xf16>, i32 -> tensor<32x64xf16, #wide>
      %x = tile_gpu.convert_layout %a : tensor<64x32xf16, #row> to tensor<64x32xf16, #x>
      %y = tile_gpu.convert_layout %b : tensor<32x64xf16, #wide> to tensor<32x64xf16, #y>
      %d = tile.dot %x, %y, %acc : tensor<64x32xf16, #x>, tensor<32x64xf16, #y> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// A loop that releases its slot before it acquires another stays as it is.
// CHECK-LABEL: @other_order
// CHECK: scf.for
// CHECK-NEXT: tile_gpu.wait
// CHECK-NOT: tile_gpu.part
// CHECK: tile_gpu.release
// CHECK: tile_gpu.acquire
// CHECK: tile_gpu.drain
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
!p = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x32xf16, #sh>, !tile_gpu.buffer<32x64xf16, #sh>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @other_order(%v: !tile.view<64x32xf16>, %w: !tile.view<32x64xf16>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %p = tile_gpu.pipeline : !p
    %a, %a0, %a1 = tile_gpu.acquire %p : !p
    tile_gpu.async_copy_view %v[%c0, %c0], %a0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
    tile_gpu.async_copy_view %w[%c0, %c0], %a1 by #row : !tile.view<32x64xf16>, i32, !tile_gpu.buffer<32x64xf16, #sh>
    %b = tile_gpu.commit %a : !p
    %e:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %s = %b) -> (tensor<64x64xf32, #mma>, !p) : i32 {
      %q, %x0, %x1 = tile_gpu.wait %s : !p
      %l = tile_gpu.local_load %x0 : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #x>
      %r = tile_gpu.local_load %x1 : !tile_gpu.buffer<32x64xf16, #sh> to tensor<32x64xf16, #y>
      %d = tile.dot %l, %r, %acc : tensor<64x32xf16, #x>, tensor<32x64xf16, #y> to tensor<64x64xf32, #mma>
      %h = tile_gpu.release %q : !p
      %f, %y0, %y1 = tile_gpu.acquire %h : !p
      tile_gpu.async_copy_view %v[%i, %c0], %y0 by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
      tile_gpu.async_copy_view %w[%i, %c0], %y1 by #row : !tile.view<32x64xf16>, i32, !tile_gpu.buffer<32x64xf16, #sh>
      %g = tile_gpu.commit %f : !p
      scf.yield %d, %g : tensor<64x64xf32, #mma>, !p
    }
    tile_gpu.drain %e#1 : !p
    tile.print "sum" %e#0 : tensor<64x64xf32, #mma>
    return
  }
}
