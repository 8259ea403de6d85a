// RUN: kiln-opt %s --kiln-optimize-layouts | FileCheck %s --implicit-check-not=convert_layout

#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[16,2], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[1,4], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>>

// A range, expanded and repeated, is counted again in the slice of the other layout.
// CHECK: #[[$S:.*]] = #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[4,1]
// CHECK-LABEL: func.func @expand
// CHECK: tile.range 0 to 64 : tensor<64xi32, #[[$S]]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @expand(%q: tensor<64x64x!tile.ptr<i32>, #row>, %r: tensor<64x64x!tile.ptr<i32>, #col>) attributes {tile.num_warps = 4 : i32} {
    %x = tile.range 0 to 64 : tensor<64xi32, #vec>
    %e = tile.expand_dims %x {axis = 0 : i32} : tensor<64xi32, #vec> to tensor<1x64xi32, #row>
    %m = tile.broadcast %e : tensor<1x64xi32, #row> to tensor<64x64xi32, #row>
    tile.store %q, %m cache volatile : tensor<64x64x!tile.ptr<i32>, #row>
    %c = tile_gpu.convert_layout %m : tensor<64x64xi32, #row> to tensor<64x64xi32, #col>
    tile.store %r, %c cache volatile : tensor<64x64x!tile.ptr<i32>, #col>
    return
  }
}
