// RUN: kiln-opt %s --kiln-optimize-layouts | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[16,2], warpsPerCTA=[1,4], order=[0,1]>
#colvec = #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[4,1], threadsPerWarp=[16,2], warpsPerCTA=[1,4], order=[0,1]>>

module attributes {tile_gpu.target = "sm_80"} {
  // Below the narrowing: half the bytes.
  // CHECK-LABEL: func.func @below_the_narrower
  // CHECK: %[[T:.*]] = arith.truncf
  // CHECK-NOT: tensor<64x64xf32, #{{.*}}> to tensor<64x64xf32
  // CHECK: tile_gpu.convert_layout %[[T]] : tensor<64x64xf16
  func.func @below_the_narrower(%p: tensor<64x64x!tile.ptr<f32>, #row>, %q: tensor<64x64x!tile.ptr<f16>, #col>) attributes {tile.num_warps = 4 : i32} {
    %x = tile.load %p cache volatile : tensor<64x64x!tile.ptr<f32>, #row>
    %c = tile_gpu.convert_layout %x : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
    %t = arith.truncf %c : tensor<64x64xf32, #col> to tensor<64x64xf16, #col>
    tile.store %q, %t cache volatile : tensor<64x64x!tile.ptr<f16>, #col>
    return
  }

  // Into a reduction: a vector is converted instead of a matrix.
  // CHECK-LABEL: func.func @into_the_reduction
  // CHECK-NOT: convert_layout
  // CHECK: tile.reduce
  // CHECK: convert_layout {{.*}} tensor<64xf32
  // CHECK-NOT: convert_layout
  func.func @into_the_reduction(%p: tensor<64x64x!tile.ptr<f32>, #row>, %q: tensor<64x!tile.ptr<f32>, #colvec>) attributes {tile.num_warps = 4 : i32} {
    %x = tile.load %p cache volatile : tensor<64x64x!tile.ptr<f32>, #row>
    %c = tile_gpu.convert_layout %x : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
    %m = tile.reduce(%c) {axis = 1 : i32} : tensor<64x64xf32, #col> to tensor<64xf32, #colvec> {
    ^bb0(%a: f32, %b: f32):
      %s = arith.maximumf %a, %b : f32
      tile.yield %s : f32
    }
    tile.store %q, %m cache volatile : tensor<64x!tile.ptr<f32>, #colvec>
    return
  }

  // Printing takes any layout: the conversion vanishes.
  // CHECK-LABEL: func.func @into_print
  // CHECK-NOT: convert_layout
  // CHECK: tile.print
  func.func @into_print(%p: tensor<64x64x!tile.ptr<f32>, #row>) attributes {tile.num_warps = 4 : i32} {
    %x = tile.load %p cache volatile : tensor<64x64x!tile.ptr<f32>, #row>
    %c = tile_gpu.convert_layout %x : tensor<64x64xf32, #row> to tensor<64x64xf32, #col>
    tile.print "x" %c : tensor<64x64xf32, #col>
    return
  }
}
