// RUN: not kiln-opt %s --emit-ptx 2>&1 | FileCheck %s

// The back end ends the process at an address space that it does not know: refused before.
// CHECK: error: LLVM: 'buffer' points to address space 32, which no GPU has
module attributes {tile_gpu.target = "sm_80"} {
  llvm.mlir.global external @buffer() {addr_space = 32 : i32, alignment = 16 : i64} : !llvm.array<128 x i32>
  llvm.func @kernel(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %shared = llvm.mlir.addressof @buffer : !llvm.ptr<32>
    %v = llvm.load %shared : !llvm.ptr<32> -> i32
    llvm.store %v, %out : i32, !llvm.ptr<1>
    llvm.return
  }
}
