//===- Passes.td - Every pass of Kiln ----------------------------------------===//
//
// One record here, one .cpp, one .mlir test with accepted and one with rejected input: that is a pass.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES
#define KILN_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// tile
//===----------------------------------------------------------------------===//

def Specialize : Pass<"kiln-specialize", "::mlir::ModuleOp"> {
  let summary = "Picks the kernel, names the target, states what is known of the arguments";
  let description = [{
    Removes every other kernel, sets `tile_gpu.target`, gives divisible arguments `tile.divisibility` and puts constants
    in the place of arguments whose value is known (they stay arguments).  What is stated here becomes the guards of the
    compiled kernel.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"", "code target, such as sm_80">,
    Option<"kernel", "kernel", "std::string", /*default=*/"", "kernel to keep; empty: the only one">,
    ListOption<"divisible", "divisible", "std::string", "ARGUMENT=DIVISOR, as in 0=16">,
    ListOption<"equals", "equals", "std::string", "ARGUMENT=VALUE, as in 4=1">];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::arith::ArithDialect"];
}

//===----------------------------------------------------------------------===//
// tile -> tile_gpu
//===----------------------------------------------------------------------===//

def AssignLayouts : Pass<"kiln-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "Gives every tile a layout";
  let description = [{
    Layouts of memory operations follow from what is known of their addresses (contiguity, divisibility, constancy):
    full-width, coalesced accesses.  All other tiles take the layout of what they meet; where two layouts meet, a
    `tile_gpu.convert_layout` stands between.  A layout that the author wrote is an anchor and stays.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def OptimizeLayouts : Pass<"kiln-optimize-layouts", "::mlir::ModuleOp"> {
  let summary = "Removes and moves layout conversions where the planner says that it pays";
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def VerifyStage : Pass<"kiln-verify-stage", "::mlir::ModuleOp"> {
  let summary = "Checks that a module holds only what a stage allows";
  let description = [{
    Foreign operations come from one list (arith, math, scf, func, ub); elementwise operations have one layout; no
    `index` type; loops run on i32 or i64; at stage tile_gpu every tile has a layout, and the target has what every
    operation needs.
  }];
  let options = [Option<"stage", "stage", "std::string", /*default=*/"\"tile\"", "tile or tile_gpu">];
}

//===----------------------------------------------------------------------===//
// tile_gpu
//===----------------------------------------------------------------------===//

def ExpandShared : Pass<"kiln-expand-shared", "::mlir::ModuleOp"> {
  let summary = "Makes stores and loads of shared memory, and shuffles, explicit";
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::arith::ArithDialect"];
}

def AllocateShared : Pass<"kiln-allocate-shared", "::mlir::ModuleOp"> {
  let summary = "Gives every buffer its place in shared memory, by liveness";
}

def InsertBarriers : Pass<"kiln-insert-barriers", "::mlir::ModuleOp"> {
  let summary = "Adds the barriers that accesses to shared memory need";
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def VerifyBarriers : Pass<"kiln-verify-barriers", "::mlir::ModuleOp"> {
  let summary = "Proves that no two warps race on shared memory, or says where they may";
}

//===----------------------------------------------------------------------===//
// tile_gpu -> LLVM
//===----------------------------------------------------------------------===//

def LowerTiles : Pass<"kiln-lower-tiles", "::mlir::ModuleOp"> {
  let summary = "Tiles become scalars a thread, memory operations LLVM and NVVM operations";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect"];
}

def LowerNumbers : Pass<"kiln-lower-numbers", "::mlir::ModuleOp"> {
  let summary = "Scalar mathematics by the table of numbers; integer operations made total";
  let options = [Option<"printTable", "print-table", "bool", /*default=*/"false", "print the table as Markdown">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect"];
}

def ToLLVM : Pass<"kiln-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Functions, control flow and scalars to the LLVM dialect, kernels marked as such";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::cf::ControlFlowDialect"];
}

#endif // KILN_PASSES
