// RUN: kiln-opt %s --kiln-verify-stage=stage=tile_gpu | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[16,2], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>>
#line = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#pairs = #tile_gpu.blocked<sizePerThread=[4,2], threadsPerWarp=[32,1], warpsPerCTA=[4,1], order=[1,0]>
#two = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], cta=<ctas=[2], split=[2]>>

// CHECK-LABEL: func.func @layouts
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @layouts(%s: f32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %x = tile.splat %s : f32 to tensor<64x64xf32, #row>
    %e = math.exp %x : tensor<64x64xf32, #row>
    %c = tile_gpu.convert_layout %e : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
    %t = tile.transpose %e [1, 0] : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
    %m = tile.reduce(%e) {axis = 1 : i32} : tensor<64x64xf32, #row> to tensor<64xf32, #vec> {
    ^bb0(%a: f32, %b: f32):
      %y = arith.maximumf %a, %b : f32
      tile.yield %y : f32
    }
    %m1 = tile.expand_dims %m {axis = 1 : i32} : tensor<64xf32, #vec> to tensor<64x1xf32, #row>
    %mb = tile.broadcast %m1 : tensor<64x1xf32, #row> to tensor<64x64xf32, #row>
    %l = tile.splat %s : f32 to tensor<512xf32, #line>
    %j = tile.join %l, %l : tensor<512xf32, #line> to tensor<512x2xf32, #pairs>
    %g, %h = tile.split %j : tensor<512x2xf32, #pairs> to tensor<512xf32, #line>
    %z = tile.range 0 to 256 : tensor<256xi32, #two>
    return
  }
}
