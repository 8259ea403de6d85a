// RUN: kiln-opt %s | kiln-opt | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>

// CHECK-LABEL: @copies
func.func @copies(%p: tensor<64x32x!tile.ptr<f16>, #row>, %m: tensor<64x32xi1, #row>, %v: !tile.view<64x32xf16>,
                  %b: !tile_gpu.buffer<64x32xf16, #sh>, %i: i32) {
  // CHECK: tile_gpu.async_copy %{{.*}}, %{{.*}} : tensor<64x32x!tile.ptr<f16>, #blocked>, !tile_gpu.buffer<64x32xf16, #swizzled>
  tile_gpu.async_copy %p, %b : tensor<64x32x!tile.ptr<f16>, #row>, !tile_gpu.buffer<64x32xf16, #sh>
  // CHECK: tile_gpu.async_copy %{{.*}}, %{{.*}} mask %{{.*}} : tensor<64x32x!tile.ptr<f16>, #blocked>, !tile_gpu.buffer<64x32xf16, #swizzled>
  tile_gpu.async_copy %p, %b mask %m : tensor<64x32x!tile.ptr<f16>, #row>, !tile_gpu.buffer<64x32xf16, #sh>
  // CHECK: tile_gpu.async_copy_view %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} by #blocked : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #swizzled>
  tile_gpu.async_copy_view %v[%i, %i], %b by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<64x32xf16, #sh>
  // CHECK: %[[T:.*]] = tile_gpu.async_commit
  %t = tile_gpu.async_commit
  // CHECK: tile_gpu.async_wait %[[T]] ready %{{.*}} : !tile_gpu.buffer<64x32xf16, #swizzled>
  tile_gpu.async_wait %t ready %b : !tile_gpu.buffer<64x32xf16, #sh>
  // CHECK: tile_gpu.async_wait %[[T]]{{$}}
  tile_gpu.async_wait %t
  // CHECK: tile_gpu.async_wait all {groups = 0 : i32}
  tile_gpu.async_wait all {groups = 0 : i32}
  return
}

// What flows through a buffer is part of its type.
// CHECK-LABEL: @named
// CHECK-SAME: !tile_gpu.buffer<"k": [2] x 64x32xf16, #swizzled>
func.func @named(%v: !tile.view<64x32xf16>, %b: !tile_gpu.buffer<"k": [2] x 64x32xf16, #sh>, %i: i32) {
  // CHECK: %[[S:.*]] = tile_gpu.local_subview %{{.*}}[%{{.*}}] : !tile_gpu.buffer<"k": [2] x 64x32xf16, #swizzled>
  %s = tile_gpu.local_subview %b[%i] : !tile_gpu.buffer<"k": [2] x 64x32xf16, #sh>
  // CHECK: tile_gpu.async_copy_view %{{.*}}, %[[S]] by #blocked : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<"k": 64x32xf16, #swizzled>
  tile_gpu.async_copy_view %v[%i, %i], %s by #row : !tile.view<64x32xf16>, i32, !tile_gpu.buffer<"k": 64x32xf16, #sh>
  // CHECK: tile_gpu.local_load %[[S]] : !tile_gpu.buffer<"k": 64x32xf16, #swizzled> to tensor<64x32xf16, #blocked>
  %x = tile_gpu.local_load %s : !tile_gpu.buffer<"k": 64x32xf16, #sh> to tensor<64x32xf16, #row>
  return
}
