// RUN: kiln-opt %s --kiln-optimize-layouts | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[16,2], warpsPerCTA=[1,4], order=[0,1]>

// A conversion is hoisted above the widening: half the bytes.
// CHECK-LABEL: func.func @above_the_wider
// CHECK: %[[C:.*]] = tile_gpu.convert_layout {{.*}} : tensor<64x64xf16, #{{.*}}> to tensor<64x64xf16
// CHECK: arith.extf %[[C]]
// CHECK-NOT: convert_layout
module attributes {tile_gpu.target = "sm_80"} {
  func.func @above_the_wider(%p: tensor<64x64x!tile.ptr<f16>, #row>, %q: tensor<64x64x!tile.ptr<f32>, #col>) attributes {tile.num_warps = 4 : i32} {
    %x = tile.load %p cache volatile : tensor<64x64x!tile.ptr<f16>, #row>
    %w = arith.extf %x : tensor<64x64xf16, #row> to tensor<64x64xf32, #row>
    %c = tile_gpu.convert_layout %w : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
    tile.store %q, %c cache volatile : tensor<64x64x!tile.ptr<f32>, #col>
    return
  }

  // Out of a loop: the tile does not change in it.
  // CHECK-LABEL: func.func @out_of_the_loop
  // CHECK: tile_gpu.convert_layout
  // CHECK: scf.for
  // CHECK-NOT: convert_layout
  func.func @out_of_the_loop(%p: tensor<64x64x!tile.ptr<f32>, #row>, %q: tensor<64x64x!tile.ptr<f32>, #col>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tile.load %p cache volatile : tensor<64x64x!tile.ptr<f32>, #row>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %c = tile_gpu.convert_layout %x : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
      %old = tile.load %q cache volatile : tensor<64x64x!tile.ptr<f32>, #col>
      %s = arith.addf %old, %c : tensor<64x64xf32, #col>
      tile.store %q, %s : tensor<64x64x!tile.ptr<f32>, #col>
    }
    return
  }
}
