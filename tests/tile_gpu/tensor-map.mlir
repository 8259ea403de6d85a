// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

// Only what differs from its default is printed.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1, s2] -> (s2, s1), strides = ()[s0, s1, s2, s3] -> (s3 * 2), box = [64, 128], swizzle = "128B">
func.func @rows(%x: !tile.ptr<bf16>, %rows: i32, %columns: i32, %stride: i64, %map: !tile_gpu.tensor_map {
    tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1, s2] -> (s2, s1),
        strides = ()[s0, s1, s2, s3] -> (s3 * 2), box = [64, 128], swizzle = "128B">}) attributes {tile.kernel} {
  return
}

// Products of arguments, divisions, constants; a parameter for each map.
// CHECK-LABEL: func.func @all
// CHECK-SAME: extents = ()[s0, s1, s2] -> (32, s1 ceildiv 4, s2 floordiv 2, s1 * s2 + 3), strides = ()[s0, s1, s2] -> (s1 * 16, (s1 * s2) * 16, 4096), box = [16, 8, 1, 2], elementStrides = [1, 2, 1, 8], swizzle = "32B", interleave = "16B", promotion = "256B", fill = "nan">
// CHECK-SAME: #tile_gpu.tensor_map<element = "u8", address = 0, extents = () -> (16), strides = () -> (), box = [16]>
func.func @all(%x: !tile.ptr<f32>, %n: i32, %m: i64,
    %first: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "f32", address = 0,
        extents = ()[s0, s1, s2] -> (32, s1 ceildiv 4, s2 floordiv 2, s1 * s2 + 3),
        strides = ()[s0, s1, s2] -> (s1 * 16, s1 * s2 * 16, 4096), box = [16, 8, 1, 2], elementStrides = [1, 2, 1, 8],
        swizzle = "32B", interleave = "16B", promotion = "256B", fill = "nan">},
    %second: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "u8", address = 0,
        extents = () -> (16), strides = () -> (), box = [16]>}) attributes {tile.kernel} {
  return
}
