// RUN: kiln-opt %s --kiln-lower-tiles --kiln-to-llvm | FileCheck %s

module attributes {tile_gpu.target = "sm_80"} {
// A limit on registers becomes the one that the PTX carries.
// CHECK-LABEL: llvm.func @limited
// CHECK-SAME: nvvm.maxnreg = 64
  func.func @limited() attributes {tile.kernel, tile.max_registers = 64 : i32, tile.num_warps = 8 : i32} {
    return
  }

// CHECK-LABEL: llvm.func @free
// CHECK-NOT: maxnreg
  func.func @free() attributes {tile.kernel} {
    return
  }
}
