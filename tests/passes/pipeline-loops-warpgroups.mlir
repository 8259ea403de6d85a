// RUN: kiln-opt %s --kiln-pipeline-loops --kiln-rotate-products --kiln-resident-operands --kiln-lower-pipelines --canonicalize --cse --kiln-expand-shared --split-input-file | FileCheck %s

// Copies are the threads' here: no tensor maps.

// Four slots: the product reads its slot where it was copied, and is in flight until the next round has begun its own.
// Two slots are held for the rounds before the first; copies are made two rounds ahead, after the product.
// CHECK-LABEL: @overlapped
// CHECK-DAG: %[[A:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<"p": [4] x 64x64xbf16, #[[TA:tma[0-9]*]]>
// CHECK-DAG: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<"q": [4] x 64x128xbf16, #[[TB:tma[0-9]*]]>
// CHECK-NOT: tile_gpu.barrier
// CHECK: scf.if
// CHECK: tile_gpu.async_copy_view
// CHECK: tile_gpu.async_copy_view
// CHECK: %[[T0:.*]] = tile_gpu.async_commit
// CHECK: scf.if
// CHECK: %[[T1:.*]] = tile_gpu.async_commit
// CHECK: %[[SUMS:.*]] = tile_gpu.warpgroup_begin %{{.*}} : !tile_gpu.pending<tensor<64x128xf32, #[[MMA:mma[0-9]*]]>>
// CHECK: %[[LOOP:.*]]:{{.*}} = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[SUMS]], %{{.*}} = %c0_i32, %{{.*}} = %c0_i32, %{{.*}} = %[[T0]], %{{.*}} = %[[T1]]
// CHECK: %[[SA:.*]] = tile_gpu.local_subview %[[A]]
// CHECK: %[[SB:.*]] = tile_gpu.local_subview %[[B]]
// CHECK: tile_gpu.async_wait %{{.*}} ready %[[SA]], %[[SB]]
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NOT: local_load
// CHECK-NOT: local_store
// CHECK: %[[D:.*]] = tile_gpu.warpgroup_dot %[[SA]], %[[SB]], %[[ACC]] : {{.*}}, !tile_gpu.pending<tensor<64x128xf32, #[[MMA]]>>
// CHECK: scf.if
// CHECK: tile_gpu.async_copy_view
// CHECK: tile_gpu.async_copy_view
// CHECK: tile_gpu.async_commit
// CHECK: %[[W:.*]] = tile_gpu.warpgroup_wait %[[D]] leave 1
// CHECK: scf.yield %[[W]],
// CHECK: }
// CHECK: tile_gpu.warpgroup_wait %[[LOOP]]#0 : tensor<64x128xf32, #[[MMA]]>
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#wide = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @overlapped(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"},
                        %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 4 : i32, tile_gpu.no_tensor_maps} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x128xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32, #mma>) : i32 {
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x128xbf16>, i32 -> tensor<64x128xbf16, #wide>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x128xbf16, #wide> to tensor<64x128xf32, #mma>
      scf.yield %d : tensor<64x128xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x128xf32, #mma>
    return
  }
}

// -----

// Two slots are too few for that: the product is waited for where it stands.  An operand that is seen transposed is read
// in place, too.
// CHECK-LABEL: @waited
// CHECK: scf.for
// CHECK: tile_gpu.async_wait
// CHECK-NEXT: tile_gpu.barrier
// CHECK: %[[T:.*]] = tile_gpu.local_transpose %{{.*}} [1, 0]
// CHECK-NOT: local_load
// CHECK-NOT: local_store
// CHECK: tile_gpu.warpgroup_dot %{{.*}}, %[[T]], %{{.*}}, tensor<64x128xf32,
// CHECK: scf.yield
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @waited(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"},
                    %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32, tile_gpu.no_tensor_maps} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<128x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32, #mma>) : i32 {
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%c0, %i] : !tile.view<128x64xbf16>, i32 -> tensor<128x64xbf16, #row>
      %t = tile.transpose %y [1, 0] : tensor<128x64xbf16, #row> to tensor<64x128xbf16, #turned>
      %d = tile.dot %x, %t, %acc : tensor<64x64xbf16, #row>, tensor<64x128xbf16, #turned> to tensor<64x128xf32, #mma>
      scf.yield %d : tensor<64x128xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x128xf32, #mma>
    return
  }
}
