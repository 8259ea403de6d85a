// RUN: kiln-opt %s --kiln-optimize-layouts | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[16,2], warpsPerCTA=[1,4], order=[0,1]>

// The loop carries an accumulator in one layout and adds to it in another: it is carried in the layout of the addition,
// and one conversion is left, after the loop.
// CHECK: #[[$ROW:.*]] = #tile_gpu.blocked<sizePerThread=[1,4]
// CHECK-LABEL: func.func @accumulate
// CHECK-NOT: convert_layout
// CHECK: scf.for {{.*}} -> (tensor<64x64xf32, #[[$ROW]]>)
// CHECK-NOT: convert_layout
// CHECK: scf.yield
// CHECK: convert_layout
// CHECK-NOT: convert_layout
// CHECK: tile.store
module attributes {tile_gpu.target = "sm_80"} {
  func.func @accumulate(%p: tensor<64x64x!tile.ptr<f32>, #row>, %q: tensor<64x64x!tile.ptr<f32>, #col>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #col>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #col>) : i32 {
      %x = tile.load %p cache volatile : tensor<64x64x!tile.ptr<f32>, #row>
      %a = tile_gpu.convert_layout %acc : tensor<64x64xf32, #col> to tensor<64x64xf32, #row>
      %s = arith.addf %a, %x : tensor<64x64xf32, #row>
      %b = tile_gpu.convert_layout %s : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
      scf.yield %b : tensor<64x64xf32, #col>
    }
    tile.store %q, %sum cache volatile : tensor<64x64x!tile.ptr<f32>, #col>
    return
  }

  // The same sum with the conversion on what is added: better once, after the loop.
  // CHECK-LABEL: func.func @what_is_added
  // CHECK-NOT: convert_layout
  // CHECK: scf.for {{.*}} -> (tensor<64x64xf32, #[[$ROW]]>)
  // CHECK-NOT: convert_layout
  // CHECK: scf.yield
  // CHECK: convert_layout
  // CHECK-NOT: convert_layout
  // CHECK: tile.store
  func.func @what_is_added(%p: tensor<64x64x!tile.ptr<f32>, #row>, %q: tensor<64x64x!tile.ptr<f32>, #col>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #col>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #col>) : i32 {
      %x = tile.load %p cache volatile : tensor<64x64x!tile.ptr<f32>, #row>
      %a = tile_gpu.convert_layout %x : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
      %s = arith.addf %acc, %a : tensor<64x64xf32, #col>
      scf.yield %s : tensor<64x64xf32, #col>
    }
    tile.store %q, %sum cache volatile : tensor<64x64x!tile.ptr<f32>, #col>
    return
  }
}
