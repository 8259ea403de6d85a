//===- MatrixFunctions.h - Code that needs every register ---------------------===//
//
// Accumulators and operands of matrix products fill a thread's registers; what saves a few of them is done in such code
// only.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_MATRIXFUNCTIONS_H
#define KILN_CODEGEN_MATRIXFUNCTIONS_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace kiln {

/// Calls a function of which `is` says so by its name.
template <typename Predicate> bool calls(const llvm::BasicBlock &block, Predicate is) {
  return llvm::any_of(block, [&](const llvm::Instruction &i) {
    const auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
    const llvm::Function *callee = call ? call->getCalledFunction() : nullptr;
    return callee && is(callee->getName());
  });
}

/// Has instructions of the matrix unit.
inline bool multipliesMatrices(const llvm::BasicBlock &block) {
  return calls(block, [](llvm::StringRef name) { return name.starts_with("llvm.nvvm.mma."); });
}
inline bool multipliesMatrices(const llvm::Function &function) {
  return llvm::any_of(function, [](const llvm::BasicBlock &block) { return multipliesMatrices(block); });
}

} // namespace kiln

#endif // KILN_CODEGEN_MATRIXFUNCTIONS_H
