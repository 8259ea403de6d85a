// RUN: kiln-opt %s --kiln-optimize-layouts | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[16,2], warpsPerCTA=[1,4], order=[0,1]>

module attributes {tile_gpu.target = "sm_80"} {
  // Four exponentials of a matrix, used in both layouts, cost more than to convert the result once.
  // CHECK-LABEL: func.func @many_exponentials
  // CHECK-COUNT-4: math.exp
  // CHECK-NOT: math.exp
  // CHECK: convert_layout
  // CHECK-NOT: math.exp
  // CHECK: return
  func.func @many_exponentials(%q: tensor<64x64x!tile.ptr<f32>, #row>, %r: tensor<64x64x!tile.ptr<f32>, #col>, %s: f32) attributes {tile.num_warps = 4 : i32} {
    %x = tile.splat %s : f32 to tensor<64x64xf32, #row>
    %0 = math.exp %x : tensor<64x64xf32, #row>
    %1 = math.exp %0 : tensor<64x64xf32, #row>
    %2 = math.exp %1 : tensor<64x64xf32, #row>
    %3 = math.exp %2 : tensor<64x64xf32, #row>
    tile.store %q, %3 cache volatile : tensor<64x64x!tile.ptr<f32>, #row>
    %c = tile_gpu.convert_layout %3 : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
    tile.store %r, %c cache volatile : tensor<64x64x!tile.ptr<f32>, #col>
    return
  }

  // Above the narrowing there are twice the bytes: it stays.
  // CHECK-LABEL: func.func @above_the_narrower
  // CHECK: arith.truncf
  // CHECK: convert_layout {{.*}} tensor<64x64xf16
  func.func @above_the_narrower(%p: tensor<64x64x!tile.ptr<f32>, #row>, %q: tensor<64x64x!tile.ptr<f16>, #col>) attributes {tile.num_warps = 4 : i32} {
    %x = tile.load %p cache volatile : tensor<64x64x!tile.ptr<f32>, #row>
    %t = arith.truncf %x : tensor<64x64xf32, #row> to tensor<64x64xf16, #row>
    %c = tile_gpu.convert_layout %t : tensor<64x64xf16, #row> to tensor<64x64xf16, #col>
    tile.store %q, %c cache volatile : tensor<64x64x!tile.ptr<f16>, #col>
    return
  }

  // Memory is never read twice: the load has another use, so it stays where it is.
  // CHECK-LABEL: func.func @no_second_read
  // CHECK: tile.load
  // CHECK-NOT: tile.load
  // CHECK: convert_layout
  // CHECK: return
  func.func @no_second_read(%p: tensor<64x64x!tile.ptr<f32>, #row>, %q: tensor<64x64x!tile.ptr<f32>, #row>, %r: tensor<64x64x!tile.ptr<f32>, #col>) attributes {tile.num_warps = 4 : i32} {
    %x = tile.load %p : tensor<64x64x!tile.ptr<f32>, #row>
    tile.store %q, %x cache volatile : tensor<64x64x!tile.ptr<f32>, #row>
    %c = tile_gpu.convert_layout %x : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
    tile.store %r, %c cache volatile : tensor<64x64x!tile.ptr<f32>, #col>
    return
  }
}
