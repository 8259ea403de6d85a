// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

#rows = #tile_gpu.tma<swizzle=128>
#columns = #tile_gpu.tma<swizzle=64, order=[0,1]>
#plain = #tile_gpu.tma<swizzle=0>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
#bands = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, 4, s1), strides = ()[s0, s1] -> (s1 * 2, s1 * 8), box = [32, 1, 16], swizzle = "64B">
#line = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (s1), strides = () -> (), box = [64], fill = "nan">

// One thread begins, arrives, waits and ends.
// CHECK-LABEL: @one_thread
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.mbarriers<3>
// CHECK: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_init %[[B]] arrivals 8 : !tile_gpu.mbarriers<3>
// CHECK-NEXT: }
// CHECK: tile_gpu.elected {
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi
// CHECK-NEXT: tile_gpu.mbarrier_arrive %[[B]][%[[NEXT]]] phase %{{.*}} : !tile_gpu.mbarriers<3>
// CHECK-NEXT: tile_gpu.mbarrier_wait %[[B]][%[[NEXT]]] phase %{{.*}} : !tile_gpu.mbarriers<3>
// CHECK-NEXT: } {note = "an attribute"}
// CHECK: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_invalidate %[[B]] : !tile_gpu.mbarriers<3>
// CHECK-NEXT: }
func.func @one_thread(%s: i32, %p: i32) {
  %b = tile_gpu.local_alloc : !tile_gpu.mbarriers<3>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %b arrivals 8 : !tile_gpu.mbarriers<3>
  }
  tile_gpu.elected {
    %next = arith.addi %s, %p : i32
    tile_gpu.mbarrier_arrive %b[%next] phase %p : !tile_gpu.mbarriers<3>
    tile_gpu.mbarrier_wait %b[%next] phase %p : !tile_gpu.mbarriers<3>
  } {note = "an attribute"}
  tile_gpu.elected {
    tile_gpu.mbarrier_invalidate %b : !tile_gpu.mbarriers<3>
  }
  return
}

// All threads arrive and wait; a wait names what is there after it.
// CHECK-LABEL: @all_threads
// CHECK-SAME: (%[[B:.*]]: !tile_gpu.mbarriers<1>,
// CHECK: tile_gpu.mbarrier_arrive %[[B]][%[[S:.*]]] phase %[[P:.*]] : !tile_gpu.mbarriers<1>
// CHECK-NEXT: tile_gpu.mbarrier_wait %[[B]][%[[S]]] phase %[[P]] : !tile_gpu.mbarriers<1>
// CHECK-NEXT: tile_gpu.mbarrier_wait %[[B]][%[[S]]] phase %[[P]] ready %{{.*}}, %{{.*}} : !tile_gpu.mbarriers<1>, !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<"k": 64x64xbf16, #tma>
func.func @all_threads(%b: !tile_gpu.mbarriers<1>, %x: !tile_gpu.buffer<64x64xbf16, #rows>,
                       %k: !tile_gpu.buffer<"k": 64x64xbf16, #rows>, %s: i32, %p: i32) {
  tile_gpu.mbarrier_arrive %b[%s] phase %p : !tile_gpu.mbarriers<1>
  tile_gpu.mbarrier_wait %b[%s] phase %p : !tile_gpu.mbarriers<1>
  tile_gpu.mbarrier_wait %b[%s] phase %p ready %x, %k : !tile_gpu.mbarriers<1>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.buffer<"k": 64x64xbf16, #rows>
  return
}

// A copy whose mbarrier lower-pipelines will say, and one that says it: of four boxes.
// CHECK-LABEL: @copies
// CHECK: tile_gpu.tensor_copy %[[MAP:.*]][%{{.*}}, %{{.*}}] to %{{.*}} dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #tma>
// CHECK: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.tensor_copy %[[MAP]][%{{.*}}, %{{.*}}] to %{{.*}} dims [1, 0] counts %{{.*}}[%{{.*}}] : !tile_gpu.buffer<128x128xbf16, #tma>, !tile_gpu.mbarriers<2>
func.func @copies(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #rows>,
                  %large: !tile_gpu.buffer<128x128xbf16, #rows>, %full: !tile_gpu.mbarriers<2>, %i: i32,
                  %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #rows>
  tile_gpu.elected {
    tile_gpu.tensor_copy %map[%i, %i] to %large dims [1, 0] counts %full[%i] : !tile_gpu.buffer<128x128xbf16, #rows>, !tile_gpu.mbarriers<2>
  }
  return
}

// A tile of a tensor of more dimensions, its columns contiguous: boxes of 16 of the 48 columns, 32 of the 64 rows.
// CHECK-LABEL: @slice
// CHECK: tile_gpu.tensor_copy %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] to %{{.*}} dims [0, 2] : !tile_gpu.buffer<64x48xbf16, #{{tma[0-9]*}}>
func.func @slice(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x48xbf16, #columns>, %i: i32,
                 %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #bands}) {
  tile_gpu.tensor_copy %map[%i, %i, %i] to %b dims [0, 2] : !tile_gpu.buffer<64x48xbf16, #columns>
  return
}

// A line, without a swizzle; what is outside of the tensor is not a number.
// CHECK-LABEL: @line
// CHECK: tile_gpu.tensor_copy %{{.*}}[%{{.*}}] to %{{.*}} dims [0] : !tile_gpu.buffer<64xf32, #{{tma[0-9]*}}>
func.func @line(%x: !tile.ptr<f32>, %n: i32, %b: !tile_gpu.buffer<64xf32, #plain>, %i: i32,
                %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #line}) {
  tile_gpu.tensor_copy %map[%i] to %b dims [0] : !tile_gpu.buffer<64xf32, #plain>
  return
}

// Of slots that the copy engine fills, one held, or none.
// CHECK-LABEL: @pipelines
// CHECK: tile_gpu.pipeline bulk : !tile_gpu.pipeline<4, !tile_gpu.buffer<64x64xbf16, #tma>>
// CHECK: tile_gpu.pipeline bulk holding 1 : !tile_gpu.pipeline<4, !tile_gpu.buffer<64x64xbf16, #tma>>
func.func @pipelines() {
  %p = tile_gpu.pipeline bulk : !tile_gpu.pipeline<4, !tile_gpu.buffer<64x64xbf16, #rows>>
  %q = tile_gpu.pipeline bulk holding 1 : !tile_gpu.pipeline<4, !tile_gpu.buffer<64x64xbf16, #rows>>
  return
}
