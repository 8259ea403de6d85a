// RUN: kiln-opt %s --kiln-optimize-layouts | FileCheck %s --implicit-check-not=convert_layout

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[16,2], warpsPerCTA=[1,4], order=[0,1]>

// What the branches give is converted after them, and one of them converted it before: the branch gives it as it is.
// CHECK: #[[$COL:.*]] = #tile_gpu.blocked<sizePerThread=[4,1]
// CHECK-LABEL: func.func @branch
// CHECK: scf.if {{.*}} -> (tensor<64x64xf32, #[[$COL]]>)
module attributes {tile_gpu.target = "sm_80"} {
  func.func @branch(%p: tensor<64x64x!tile.ptr<f32>, #col>, %q: tensor<64x64x!tile.ptr<f32>, #col>, %c: i1) attributes {tile.num_warps = 4 : i32} {
    %r = scf.if %c -> (tensor<64x64xf32, #row>) {
      %x = tile.load %p cache volatile : tensor<64x64x!tile.ptr<f32>, #col>
      %a = tile_gpu.convert_layout %x : tensor<64x64xf32, #col> to tensor<64x64xf32, #row>
      scf.yield %a : tensor<64x64xf32, #row>
    } else {
      %zero = arith.constant dense<0.0> : tensor<64x64xf32, #row>
      scf.yield %zero : tensor<64x64xf32, #row>
    }
    %b = tile_gpu.convert_layout %r : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
    tile.store %q, %b cache volatile : tensor<64x64x!tile.ptr<f32>, #col>
    return
  }
}
