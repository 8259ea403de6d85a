// RUN: kiln-opt %s --split-input-file | kiln-opt --split-input-file | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
// Two tiles a slot; loops carry a pipeline's state.
// CHECK-LABEL: @both
// CHECK: tile_gpu.pipeline : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #[[S:.*]]>, !tile_gpu.buffer<"v": 64x32xf16, #[[S]]>>
// CHECK: %[[Q:.*]], %[[B:.*]]:2 = tile_gpu.acquire %{{.*}} : !tile_gpu.pipeline<3,
// CHECK: tile_gpu.commit %[[Q]]
// CHECK: scf.for {{.*}} iter_args(%[[P:.*]] = %{{.*}}) -> (!tile_gpu.pipeline<3
// CHECK: %[[W:.*]], %[[R:.*]]:2 = tile_gpu.wait %[[P]]
// CHECK: tile_gpu.slots %[[W]] :
// CHECK: tile_gpu.slots %[[W]] at %{{.*}} :
// CHECK: tile_gpu.release
// CHECK: tile_gpu.drain
func.func @both(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = tile_gpu.pipeline : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
  %q, %k, %v = tile_gpu.acquire %p : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
  %r = tile_gpu.commit %q : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r) -> (!tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>) : i32 {
    %w, %kk, %vv = tile_gpu.wait %t : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
    %now, %and = tile_gpu.slots %w : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
    %first, %too = tile_gpu.slots %w at %c0 : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
    %x = tile_gpu.release %w : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
    %y, %a, %b = tile_gpu.acquire %x : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
    %z = tile_gpu.commit %y : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
    scf.yield %z : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
  }
  tile_gpu.drain %s : !tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>
  return
}
