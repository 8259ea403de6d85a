// RUN: kiln-opt %s --kiln-expand-shared --kiln-allocate-shared=limit=20000 | FileCheck %s
// RUN: kiln-opt %s --kiln-expand-shared --kiln-allocate-shared=limit=17408 | FileCheck %s --check-prefix=LEAST

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#vec = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>

// A buffer of 16 KiB leaves room for less scratch than the conversion asked for: it is planned again with less.
module attributes {tile_gpu.target = "sm_80"} {
// CHECK-LABEL: @convert
// CHECK-SAME: tile_gpu.shared_bytes = 18432 : i32
// CHECK: !tile_gpu.scratch<2048>
// CHECK: exchange_load {{.*}} {pass = 3 : i32}
// LEAST-LABEL: @convert
// LEAST-SAME: tile_gpu.shared_bytes = 17408 : i32
// LEAST: !tile_gpu.scratch<1024>
// LEAST: exchange_load {{.*}} {pass = 7 : i32}
func.func @convert(%x: tensor<64x32xf32, #row>, %z: tensor<128x32xf32, #row>) -> (tensor<64x32xf32, #col>, tensor<128x32xf32, #row>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<128x32xf32, #sh>
  tile_gpu.local_store %z, %a : tensor<128x32xf32, #row>, !tile_gpu.buffer<128x32xf32, #sh>
  %y = tile_gpu.convert_layout %x : tensor<64x32xf32, #row> to tensor<64x32xf32, #col>
  %l = tile_gpu.local_load %a : !tile_gpu.buffer<128x32xf32, #sh> to tensor<128x32xf32, #row>
  return %y, %l : tensor<64x32xf32, #col>, tensor<128x32xf32, #row>
}
}
