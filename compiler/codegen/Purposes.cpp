#include "compiler/codegen/Purposes.h"

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Target/LLVMIR/LLVMTranslationInterface.h"
#include "mlir/Target/LLVMIR/ModuleTranslation.h"

namespace kiln {
namespace {

class PurposeTranslation : public mlir::LLVMTranslationDialectInterface {
public:
  using LLVMTranslationDialectInterface::LLVMTranslationDialectInterface;

  mlir::LogicalResult amendOperation(mlir::Operation *op, llvm::ArrayRef<llvm::Instruction *> instructions,
                                     mlir::NamedAttribute attribute, mlir::LLVM::ModuleTranslation &) const override {
    if (attribute.getName() != tile_gpu::purposeAttr)
      return mlir::success();
    const auto purpose = llvm::dyn_cast<mlir::StringAttr>(attribute.getValue());
    if (!purpose)
      return op->emitError() << "'" << tile_gpu::purposeAttr << "' is " << attribute.getValue() << ", not a string";
    for (llvm::Instruction *instruction : instructions)
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(instruction))
        call->addFnAttr(llvm::Attribute::get(call->getContext(), purposeKey, purpose.getValue()));
    return mlir::success();
  }
};

} // namespace

void registerPurposes(mlir::DialectRegistry &registry) {
  registry.insert<tile_gpu::TileGpuDialect>();
  registry.addExtension(
      +[](mlir::MLIRContext *, tile_gpu::TileGpuDialect *dialect) { dialect->addInterfaces<PurposeTranslation>(); });
}

} // namespace kiln
