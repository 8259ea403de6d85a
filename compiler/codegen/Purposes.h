//===- Purposes.h - What a call of LLVM IR was made for -----------------------===//
//
// tile_gpu/Purpose.h, in LLVM IR: an attribute of the call site, which inlining, merging and copying keep (metadata
// would be dropped where equal calls become one).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_PURPOSES_H
#define KILN_CODEGEN_PURPOSES_H

#include "compiler/tile_gpu/Purpose.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace mlir {
class DialectRegistry;
}

namespace kiln {

/// The key of the call's attribute; its value is a word of tile_gpu::purpose.
constexpr llvm::StringLiteral purposeKey = "kiln-purpose";

/// Makes the translation to LLVM IR keep purposes.
void registerPurposes(mlir::DialectRegistry &registry);

/// The block has an instruction with that purpose.
inline bool hasPurpose(const llvm::BasicBlock &block, llvm::StringRef purpose) {
  return llvm::any_of(block, [&](const llvm::Instruction &i) {
    const auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
    return call && call->getFnAttr(purposeKey).getValueAsString() == purpose;
  });
}

/// Accumulators and operands of matrix products fill a thread's registers: what saves a few of them is done in such
/// code only.
inline bool multipliesMatrices(const llvm::BasicBlock &block) {
  return hasPurpose(block, tile_gpu::purpose::product);
}
inline bool multipliesMatrices(const llvm::Function &function) {
  return llvm::any_of(function, [](const llvm::BasicBlock &block) { return multipliesMatrices(block); });
}

} // namespace kiln

#endif // KILN_CODEGEN_PURPOSES_H
