// RUN: kiln-opt %s --split-input-file --kiln-verify-stage=stage=tile --kiln-lower-tiles --kiln-to-llvm | FileCheck %s

module attributes {tile_gpu.target = "sm_90"} {
// What a kernel leaves out is 1.
// CHECK-LABEL: llvm.func @pairs
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
  func.func @pairs() attributes {tile.kernel, tile.cluster = array<i32: 2>} {
    return
  }
}

// -----

// A cluster of one block is none, on any target.
module attributes {tile_gpu.target = "sm_80"} {
// CHECK-LABEL: llvm.func @alone
// CHECK-NOT: cluster
  func.func @alone() attributes {tile.kernel, tile.cluster = array<i32: 1, 1, 1>} {
    return
  }
}
