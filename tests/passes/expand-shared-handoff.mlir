// RUN: kiln-opt %s --kiln-pipeline-loops --kiln-lower-pipelines --canonicalize --cse --kiln-expand-shared --kiln-allocate-shared --kiln-count-groups --kiln-insert-barriers --kiln-verify-barriers=remarks=false | FileCheck %s

// Nothing in a round looks at the product's sums, but the next round's product takes them: it has read its slot when the
// warps give it back.
// CHECK-LABEL: @chain
// CHECK: scf.for
// CHECK: tile_gpu.mbarrier_wait
// CHECK: tile_gpu.warpgroup_dot {{.*}} : {{.*}}, tensor<64x64xf32, #mma>{{$}}
// CHECK-NEXT: tile_gpu.mbarrier_arrive
// CHECK-NOT: tile_gpu.warpgroup_wait
// CHECK: scf.yield
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#dot = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=3, warpsPerCTA=[4,1], instrN=64>>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @chain(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %one = arith.constant dense<1.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %product = scf.for %i = %c0 to %n step %c64 iter_args(%sums = %one) -> (tensor<64x64xf32, #mma>) : i32 {
      %factor = tile.load_view %v[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %half = arith.truncf %sums : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
      %left = tile_gpu.convert_layout %half : tensor<64x64xbf16, #mma> to tensor<64x64xbf16, #dot>
      %next = tile.dot %left, %factor, %sums : tensor<64x64xbf16, #dot>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %next : tensor<64x64xf32, #mma>
    }
    tile.print "product" %product : tensor<64x64xf32, #mma>
    return
  }
}
