// RUN: kiln-opt %s --kiln-verify-stage=stage=tile_gpu --kiln-lower-tiles --kiln-to-llvm | FileCheck %s
// RUN: kiln-opt %s --kiln-stage-lowering --emit-ptx | FileCheck %s --check-prefix=PTX

#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (s1, 8), strides = ()[s0, s1] -> (s1 * 4), box = [16, 8]>

// A tensor map is a parameter of 128 bytes, read where it lies.
// CHECK-LABEL: llvm.func @mapped
// CHECK-SAME: %[[MAP:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant, tile_gpu.tensor_map = #tile_gpu.tensor_map<
// CHECK-SAME: nvvm.kernel
// PTX: .visible .entry mapped(
// PTX-NEXT: .param .u64 .ptr .global .align 1 mapped_param_0,
// PTX-NEXT: .param .u32 mapped_param_1,
// PTX-NEXT: .param .align 64 .b8 mapped_param_2[128]
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @mapped(%x: !tile.ptr<f32> {tile.name = "x"}, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
      attributes {tile.kernel} {
    return
  }
}
