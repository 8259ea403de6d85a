// A buffer says in which memory it lies; shared memory is not written.
// RUN: kiln-opt %s | kiln-opt | FileCheck %s

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>

// CHECK-LABEL: func.func @spaces
// CHECK-SAME: %{{.*}}: !tile_gpu.buffer<64x32xf16, #[[SH:[a-z]+]]>, %{{.*}}: !tile_gpu.buffer<64x32xf16, #[[SH]]>
// CHECK-SAME: %[[T:.*]]: !tile_gpu.buffer<"s": [2] x 64x32xf16, #[[SH]], tensor>
func.func @spaces(%a: !tile_gpu.buffer<64x32xf16, #sh>, %b: !tile_gpu.buffer<64x32xf16, #sh, shared>,
                  %t: !tile_gpu.buffer<"s": [2] x 64x32xf16, #sh, tensor>, %i: i32) {
  // CHECK: tile_gpu.local_subview %[[T]][%{{.*}}] : !tile_gpu.buffer<"s": [2] x 64x32xf16, #[[SH]], tensor>
  %s = tile_gpu.local_subview %t[%i] : !tile_gpu.buffer<"s": [2] x 64x32xf16, #sh, tensor>
  return
}
