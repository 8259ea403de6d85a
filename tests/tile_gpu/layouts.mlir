// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

// CHECK-DAG: #[[ROW:.*]] = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
// CHECK-DAG: #[[MMA:.*]] = #tile_gpu.mma<version=2, warpsPerCTA=[4,1]>
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[4,1]>
#a = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1]>>
#slice = #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>>

// CHECK-LABEL: func.func @layouts
func.func @layouts(%x: tensor<64x32xf16, #row>, %y: tensor<96xf32, #slice>) {
  // CHECK: tile_gpu.convert_layout %{{.*}} : tensor<64x32xf16, #[[ROW]]> to tensor<64x32xf16, #[[MMA]]>
  %0 = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #mma>
  // CHECK: tile_gpu.convert_layout
  %1 = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #a>
  return
}

#swizzled = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#column = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4, order=[0,1]>

// CHECK-LABEL: func.func @local
func.func @local(%x: tensor<64x32xf16, #row>, %i: i32) {
  // CHECK: tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf16, #{{.*}}>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf16, #swizzled>
  // CHECK: tile_gpu.local_alloc {offset = 4096 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #{{.*}}>
  %n = tile_gpu.local_alloc {offset = 4096 : i32} : !tile_gpu.buffer<[3] x 64x32xf16, #swizzled>
  // CHECK: tile_gpu.local_subview %{{.*}}[%{{.*}}] : !tile_gpu.buffer<[3] x 64x32xf16, #{{.*}}>
  %s = tile_gpu.local_subview %n[%i] : !tile_gpu.buffer<[3] x 64x32xf16, #swizzled>
  // CHECK: tile_gpu.local_store %{{.*}}, %{{.*}} : tensor<64x32xf16, #[[ROW]]>, !tile_gpu.buffer<64x32xf16, #{{.*}}>
  tile_gpu.local_store %x, %s : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #swizzled>
  // CHECK: tile_gpu.barrier
  tile_gpu.barrier
  // CHECK: tile_gpu.local_load %{{.*}} : !tile_gpu.buffer<64x32xf16, #{{.*}}> to tensor<64x32xf16, #{{.*}}>
  %y = tile_gpu.local_load %s : !tile_gpu.buffer<64x32xf16, #swizzled> to tensor<64x32xf16, #mma>
  // CHECK: tile_gpu.local_transpose %{{.*}} [1, 0] : !tile_gpu.buffer<64x32xf16, #{{.*}}> to !tile_gpu.buffer<32x64xf16, #{{.*}}>
  %t = tile_gpu.local_transpose %b [1, 0] : !tile_gpu.buffer<64x32xf16, #swizzled> to !tile_gpu.buffer<32x64xf16, #column>
  // CHECK: tile_gpu.warp_barrier
  tile_gpu.warp_barrier
  // CHECK: tile_gpu.named_barrier 1, threads 128
  tile_gpu.named_barrier 1, threads 128
  // CHECK: tile_gpu.named_arrive 15, threads 64
  tile_gpu.named_arrive 15, threads 64
  // CHECK: tile_gpu.delay 0 seed 7
  tile_gpu.delay 0 seed 7
  // CHECK: tile_gpu.delay 3 warp 1
  tile_gpu.delay 3 warp 1
  return
}

// CHECK-LABEL: func.func @exchange
func.func @exchange(%x: tensor<64x32xf16, #row>, %old: tensor<64x32xf16, #mma>) {
  %s = tile_gpu.local_alloc : !tile_gpu.scratch<4096>
  // CHECK: tile_gpu.exchange_store %{{.*}}, %{{.*}} {pass = 0 : i32} : tensor<64x32xf16, #[[ROW]]> to #[[MMA]], !tile_gpu.scratch<4096>
  tile_gpu.exchange_store %x, %s {pass = 0 : i32} : tensor<64x32xf16, #row> to #mma, !tile_gpu.scratch<4096>
  // CHECK: tile_gpu.exchange_load %{{.*}}, %{{.*}} {pass = 0 : i32} : #[[ROW]], !tile_gpu.scratch<4096> to tensor<64x32xf16, #[[MMA]]>
  %y = tile_gpu.exchange_load %s, %old {pass = 0 : i32} : #row, !tile_gpu.scratch<4096> to tensor<64x32xf16, #mma>
  return
}
