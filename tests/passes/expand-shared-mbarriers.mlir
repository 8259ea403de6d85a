// RUN: kiln-opt %s --kiln-pipeline-loops --kiln-lower-pipelines --canonicalize --cse --kiln-expand-shared --kiln-allocate-shared | FileCheck %s

// A product in flight, in slots that the copy engine fills: at a round's end the product of the round before is over, and
// only then do the warps give its slot back.  After the loop the last product is waited for, then its slot given back.
// mbarriers are 8 bytes each, and lie where nothing else does while they live.
// CHECK-LABEL: @overlapped
// CHECK-SAME: tile_gpu.shared_bytes = 98368 : i32
// CHECK-DAG: tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<"q": [4] x 64x128xbf16
// CHECK-DAG: tile_gpu.local_alloc {offset = 65536 : i32} : !tile_gpu.buffer<"p": [4] x 64x64xbf16
// CHECK-DAG: %[[FULL:.*]] = tile_gpu.local_alloc {alone, offset = 98304 : i32} : !tile_gpu.mbarriers<4>
// CHECK-DAG: %[[EMPTY:.*]] = tile_gpu.local_alloc {alone, offset = 98336 : i32} : !tile_gpu.mbarriers<4>
// CHECK: %[[LOOP:.*]]:5 = scf.for {{.*}} iter_args(%[[SUMS:[a-z0-9]*]] = %{{[a-z0-9]*}}, %[[READ:[a-z0-9]*]] = %{{[a-z0-9_]*}}, %{{[a-z0-9]*}} = %{{[a-z0-9_]*}}, %[[PHASE:[a-z0-9]*]] =
// CHECK: tile_gpu.mbarrier_wait %[[FULL]]
// CHECK-NOT: tile_gpu.local_load
// CHECK: %[[D:.*]] = tile_gpu.warpgroup_dot %{{.*}}, %{{.*}}, %[[SUMS]] :
// CHECK: tile_gpu.tensor_copy
// CHECK: %[[W:.*]] = tile_gpu.warpgroup_wait %[[D]] leave 1
// CHECK-NEXT: tile_gpu.mbarrier_arrive %[[EMPTY]][%[[READ]]] phase %[[PHASE]] :
// CHECK-NEXT: scf.yield %[[W]]
// CHECK: }
// CHECK-NEXT: tile_gpu.warpgroup_wait %[[LOOP]]#0
// CHECK-NEXT: tile_gpu.mbarrier_arrive %[[EMPTY]][%[[LOOP]]#1] phase %[[LOOP]]#3 :
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#wide = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @overlapped(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"},
                        %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 4 : i32} {
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
