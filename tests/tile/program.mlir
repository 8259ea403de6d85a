// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-SAME: tile.divisibility = 16 : i32, tile.name = "x", tile.noalias
// CHECK-SAME: tile.kernel, tile.num_warps = 8 : i32
func.func @kernel(%x: !tile.ptr<f32> {tile.name = "x", tile.divisibility = 16 : i32, tile.noalias}, %n: i32, %s: bf16)
    attributes {tile.kernel, tile.num_warps = 8 : i32} {
  // CHECK: tile.program_id x
  %0 = tile.program_id x
  // CHECK: tile.program_id z
  %1 = tile.program_id z
  // CHECK: tile.num_programs y
  %2 = tile.num_programs y
  return
}

// CHECK-LABEL: func.func @cluster
// CHECK-SAME: tile.cluster = array<i32: 2, 1, 4>
func.func @cluster() attributes {tile.kernel, tile.cluster = array<i32: 2, 1, 4>} {
  return
}
