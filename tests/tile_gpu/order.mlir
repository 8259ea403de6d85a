// RUN: kiln-opt %s | kiln-opt | FileCheck %s

#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>

// CHECK-LABEL: @order
func.func @order(%c: !tile.ptr<i32>, %d: !tile.ptr<i32>, %p: !tile.ptr<f32>, %n: i32, %is: i1) {
  // CHECK: tile_gpu.await %{{.*}} of %{{.*}} for %{{.*}} : <i32>, !tile.ptr<f32>
  tile_gpu.await %n of %c for %p : !tile.ptr<i32>, !tile.ptr<f32>
  // CHECK: tile_gpu.count %{{.*}} if %{{.*}} for %{{.*}} : <i32>, !tile.ptr<f32>
  tile_gpu.count %c if %is for %p : !tile.ptr<i32>, !tile.ptr<f32>
  // CHECK: tile_gpu.count %{{.*}} if %{{.*}} await %{{.*}} of %{{.*}} for %{{.*}} : <i32>, !tile.ptr<f32>, !tile.ptr<i32>
  tile_gpu.count %c if %is await %n of %d for %p : !tile.ptr<i32>, !tile.ptr<f32>, !tile.ptr<i32>
  return
}

// CHECK-LABEL: @scalar
func.func @scalar() -> i32 attributes {tile_gpu.test, tile.num_warps = 1 : i32} {
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<1xi32, #sh>
  // CHECK: tile_gpu.local_scalar %{{.*}} : !tile_gpu.buffer<1xi32, #{{.*}}> to i32
  %n = tile_gpu.local_scalar %b : !tile_gpu.buffer<1xi32, #sh> to i32
  return %n : i32
}
