// RUN: kiln-opt %s --kiln-optimize-layouts | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[16,2], warpsPerCTA=[1,4], order=[0,1]>

// The matrix is one row repeated: the row of 64 elements is converted, not the matrix.  The matrix has another use, in
// the old layout, so the broadcast is made twice.
// CHECK-LABEL: func.func @broadcast
// CHECK: convert_layout {{.*}} tensor<1x64xf32
// CHECK-NOT: convert_layout
// CHECK-COUNT-2: tile.store
module attributes {tile_gpu.target = "sm_80"} {
  func.func @broadcast(%p: tensor<1x64x!tile.ptr<f32>, #row>, %q: tensor<64x64x!tile.ptr<f32>, #row>, %r: tensor<64x64x!tile.ptr<f32>, #col>) attributes {tile.num_warps = 4 : i32} {
    %x = tile.load %p cache volatile : tensor<1x64x!tile.ptr<f32>, #row>
    %m = tile.broadcast %x : tensor<1x64xf32, #row> to tensor<64x64xf32, #row>
    tile.store %q, %m cache volatile : tensor<64x64x!tile.ptr<f32>, #row>
    %c = tile_gpu.convert_layout %m : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
    tile.store %r, %c cache volatile : tensor<64x64x!tile.ptr<f32>, #col>
    return
  }
}
