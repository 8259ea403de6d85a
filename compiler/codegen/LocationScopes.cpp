#include "compiler/codegen/LocationScopes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace kiln {

mlir::FileLineColLoc firstFileLocation(mlir::Location location) {
  if (auto file = llvm::dyn_cast<mlir::FileLineColLoc>(location))
    return file.getLine() ? file : mlir::FileLineColLoc();
  if (auto name = llvm::dyn_cast<mlir::NameLoc>(location))
    return firstFileLocation(name.getChildLoc());
  if (auto call = llvm::dyn_cast<mlir::CallSiteLoc>(location)) {
    mlir::FileLineColLoc callee = firstFileLocation(call.getCallee());
    return callee ? callee : firstFileLocation(call.getCaller());
  }
  if (auto fused = llvm::dyn_cast<mlir::FusedLoc>(location))
    for (mlir::Location part : fused.getLocations())
      if (mlir::FileLineColLoc file = firstFileLocation(part))
        return file;
  return {};
}

/// Gives every operation and block argument of `function` one file location, if the function holds any.
static void completeLocations(mlir::LLVM::LLVMFuncOp function) {
  mlir::FileLineColLoc own = firstFileLocation(function.getLoc()), nearest;
  function.walk([&](mlir::Operation *op) {
    if (op != function)
      nearest = firstFileLocation(op->getLoc());
    return nearest ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  if (!own)
    own = nearest;
  if (!own)
    return;
  function->setLoc(own);
  if (!nearest)
    nearest = own;
  function.walk<mlir::WalkOrder::PreOrder>([&](mlir::Block *block) {
    for (mlir::BlockArgument argument : block->getArguments()) {
      mlir::FileLineColLoc file = firstFileLocation(argument.getLoc());
      argument.setLoc(file ? file : nearest);
    }
    for (mlir::Operation &op : *block) {
      if (mlir::FileLineColLoc file = firstFileLocation(op.getLoc()))
        nearest = file;
      op.setLoc(nearest);
    }
  });
}

mlir::LogicalResult addLocationScopes(mlir::ModuleOp module) {
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      completeLocations(function);
  mlir::PassManager passes(module.getContext());
  mlir::LLVM::DIScopeForLLVMFuncOpPassOptions options;
  options.emissionKind = mlir::LLVM::DIEmissionKind::DebugDirectivesOnly;
  passes.addPass(mlir::LLVM::createDIScopeForLLVMFuncOpPass(options));
  // Helper functions without any location get no scope: once inlined, their instructions take the call's line.  Between
  // the two steps their calls of each other would not verify.
  passes.enableVerifier(false);
  if (mlir::failed(passes.run(module)))
    return mlir::failure();
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
    if (!firstFileLocation(function.getLoc()))
      function->setLoc(mlir::UnknownLoc::get(module.getContext()));
  return mlir::success();
}

void completeLocations(llvm::Module &module) {
  auto usable = [](const llvm::DebugLoc &location) { return location && location.getLine() != 0; };
  for (llvm::Function &function : module) {
    llvm::DISubprogram *scope = function.getSubprogram();
    if (!scope)
      continue;
    const llvm::DebugLoc start = llvm::DILocation::get(module.getContext(), scope->getLine(), 0, scope);
    for (llvm::BasicBlock &block : function) {
      llvm::DebugLoc nearest = start;
      for (llvm::Instruction &instruction : block)
        if (usable(instruction.getDebugLoc())) {
          nearest = instruction.getDebugLoc();
          break;
        }
      for (llvm::Instruction &instruction : block) {
        if (usable(instruction.getDebugLoc()))
          nearest = instruction.getDebugLoc();
        else
          instruction.setDebugLoc(nearest);
      }
    }
  }
}

} // namespace kiln
