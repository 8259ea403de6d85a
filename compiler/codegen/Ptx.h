//===- Ptx.h - LLVM-dialect module to PTX text ----------------------------===//
//
// `emitPtx` takes a module of the LLVM and NVVM dialects (nothing else, but for attributes of the module and of
// arguments) to PTX: NVVM operations to LLVM, translation, LLVM O3, the NVPTX back end; in process, no text between.
//
//  - The module is lowered in place: afterwards it is of no further use but to be destroyed.
//  - Every problem is an error diagnostic of the module's MLIRContext, at the operation's location where LLVM kept one;
//    the result is then a failure.  What LLVM only answers by ending the process ("Cannot select") is gated beforehand
//    where a row of InstructionNeeds.def names it; the rest is Containment.h's business: call emitPtx from there.
//  - Output depends on the module, the target and the options alone: no paths (unless lineInfo), times or addresses.
//  - Thread safe for different MLIRContexts.  The dialect translations are registered by `registerPtxDialects`.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_PTX_H
#define KILN_CODEGEN_PTX_H

#include "compiler/codegen/LlvmCounts.h"
#include "compiler/target/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

#include <functional>
#include <string>

namespace kiln {

/// LLVM and NVVM dialects with their translations to LLVM IR.  Add to the registry before the MLIRContext is made.
void registerPtxDialects(mlir::DialectRegistry &registry);

struct PtxOptions {
  const Target *target = nullptr;
  /// Capabilities that the kernel uses and no single instruction shows (256-bit accesses): they raise the PTX ISA.
  CapabilitySet uses;
  /// PTX ISA to use at least: 78 for 7.8.  0: the lowest that the target and the instructions need.
  unsigned minimumIsa = 0;
  /// `.loc` on every instruction; off: no location in the PTX at all.
  bool lineInfo = false;
  /// Also return the LLVM IR before and after O3.
  bool keepLlvmIr = false;
  /// LLVM IR that takes the place of what O3 leaves; empty: nothing does.
  std::string replacement = {};
  /// Called before each of LLVM's passes, and of the back end as one.
  std::function<void(llvm::StringRef pass)> beforePass = {};
  /// Called after each, with its part ("llvm" or "ptx") and milliseconds.
  std::function<void(const char *part, llvm::StringRef pass, double milliseconds)> afterPass = {};
  /// With `afterPass`: the back end's passes one by one.  Its timers are the process's: only in a process with one
  /// compile.
  bool timeBackEnd = false;
};

struct PtxOutput {
  std::string ptx;
  unsigned isa = 0;         ///< 70 for 7.0
  std::string isaText;      ///< "7.0"
  LlvmCounts counts;        ///< of the LLVM IR before O3
  std::string llvmBeforeO3; ///< both empty without keepLlvmIr
  std::string llvmAfterO3;
  double llvmMilliseconds = 0; ///< NVVM to LLVM, translation and O3
  double ptxMilliseconds = 0;  ///< back end
};

mlir::FailureOr<PtxOutput> emitPtx(mlir::ModuleOp module, const PtxOptions &options);

} // namespace kiln

#endif // KILN_CODEGEN_PTX_H
