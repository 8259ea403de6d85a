#include "compiler/pipeline/LoweredKernel.h"

#include "compiler/passes/TargetRules.h"
#include "compiler/pipeline/GivenStage.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace kiln {
namespace {

bool isLoweredKernel(LLVM::LLVMFuncOp f) {
  return f->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
}

LogicalResult checkOperations(ModuleOp module) {
  bool good = true;
  module.walk([&](Operation *op) {
    if (op == module || isa_and_present<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect()))
      return;
    op->emitError() << op->getName()
                    << " has no place in a kernel at stage llvm: operations are those of llvm and nvvm";
    good = false;
  });
  return success(good);
}

FailureOr<LLVM::LLVMFuncOp> pick(ModuleOp module, llvm::StringRef name) {
  llvm::SmallVector<LLVM::LLVMFuncOp> kernels;
  std::string names;
  for (auto f : module.getOps<LLVM::LLVMFuncOp>())
    if (isLoweredKernel(f)) {
      kernels.push_back(f);
      names += (names.empty() ? "" : ", ") + f.getName().str();
    }
  if (name.empty() && kernels.size() > 1)
    return module.emitError() << "the program has several kernels: " << names << "; name one", failure();
  LLVM::LLVMFuncOp chosen;
  for (LLVM::LLVMFuncOp f : kernels)
    if (name.empty() || f.getName() == name)
      chosen = f;
  if (!chosen)
    return module.emitError() << "the program has no kernel '" << name << "'; it has " << names, failure();
  if (chosen.isExternal())
    return chosen.emitError() << "kernel '" << chosen.getName() << "' has no body", failure();
  for (LLVM::LLVMFuncOp f : kernels)
    if (f != chosen)
      f.erase();
  return chosen;
}

} // namespace

bool isLowered(ModuleOp module) {
  for (auto f : module.getOps<func::FuncOp>())
    if (tile::isKernel(f))
      return false;
  return llvm::any_of(module.getOps<LLVM::LLVMFuncOp>(), isLoweredKernel);
}

FailureOr<Metadata> describeLoweredKernel(ModuleOp module, llvm::StringRef name, const Target &target) {
  if (failed(checkOperations(module)) || failed(checkTargetName(module, target)))
    return failure();
  const FailureOr<LLVM::LLVMFuncOp> kernel = pick(module, name);
  if (failed(kernel))
    return failure();
  if (const Status status = checkLaunch(*kernel, target); !status.ok()) {
    (void)tile_gpu::report(*kernel, status);
    return failure();
  }
  FailureOr<Metadata> metadata = describeLowered(*kernel);
  if (succeeded(metadata))
    metadata->target = std::string(target.name);
  return metadata;
}

} // namespace kiln
