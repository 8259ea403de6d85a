// RUN: kiln-opt %s --kiln-expand-shared --kiln-test-axis-info | FileCheck %s

// Addresses that threads exchange through shared memory are as aligned and as contiguous as they were before.
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>

module attributes {tile_gpu.target = "sm_80"} {

// CHECK-LABEL: func.func @addresses
// CHECK: tile_gpu.exchange_load
// CHECK: tile.load {{.*}} {access = "8 along dimension 1"}
func.func @addresses(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %r = tile.range 0 to 32 : tensor<32xi32, #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>>>
  %row = tile.expand_dims %r {axis = 0 : i32} : tensor<32xi32, #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>>> to tensor<1x32xi32, #col>
  %columns = tile.broadcast %row : tensor<1x32xi32, #col> to tensor<64x32xi32, #col>
  %xs = tile.splat %x : !tile.ptr<f16> to tensor<64x32x!tile.ptr<f16>, #col>
  %xp = tile.addptr %xs, %columns : tensor<64x32x!tile.ptr<f16>, #col>, tensor<64x32xi32, #col>
  %p = tile_gpu.convert_layout %xp : tensor<64x32x!tile.ptr<f16>, #col> to tensor<64x32x!tile.ptr<f16>, #row>
  %v = tile.load %p : tensor<64x32x!tile.ptr<f16>, #row>
  tile.print "v = " %v : tensor<64x32xf16, #row>
  return
}

}
