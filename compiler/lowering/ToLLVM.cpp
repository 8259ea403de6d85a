// kiln-to-llvm: scalars, control flow and functions to the LLVM dialect; kernels become such.
#include "compiler/passes/Pass.h"

#include "compiler/lowering/Lowering.h"
#include "compiler/tile_gpu/TensorMaps.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "mlir/Rewrite/PatternApplicator.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/ToLLVM.inc"

namespace {

/// Parameters that hold a tensor map's bytes.  A grid constant is never copied to local memory, where the copy engine
/// could not read it.
void markTensorMaps(LLVM::LLVMFuncOp function) {
  Builder b(function.getContext());
  const Type bytes = LLVM::LLVMArrayType::get(b.getI8Type(), TensorMap::size);
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (!tile_gpu::recipeOf(function, i))
      continue;
    function.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(bytes));
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(TensorMap::alignment));
    function.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(), b.getUnitAttr());
  }
}

void markKernel(LLVM::LLVMFuncOp function) {
  auto threads = function->getAttrOfType<IntegerAttr>(lowering::threadsAttr);
  auto registers = function->getAttrOfType<IntegerAttr>(lowering::maxRegistersAttr);
  auto cluster = function->getAttrOfType<DenseI32ArrayAttr>(lowering::clusterAttr);
  const bool oneBlock(function->removeAttr(lowering::oneBlockAttr));
  function->removeAttr(lowering::clusterAttr);
  function->removeAttr(lowering::threadsAttr);
  function->removeAttr(lowering::maxRegistersAttr);
  if (!threads)
    return;
  Builder b(function.getContext());
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({static_cast<int32_t>(threads.getInt())}));
  markTensorMaps(function);
  if (cluster)
    function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(), cluster);
  if (oneBlock)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(1));
  if (registers)
    function->setAttr(NVVM::NVVMDialect::getMaxnregAttrName(), registers);
}

/// Loops and conditionals become branches, the last one first: the block of each is cut there, and what comes after is
/// moved, up to the next cut.  From the first one on, all of the rest would be moved each time: half of a second for a
/// thousand guarded loads.
LogicalResult makeBranches(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  populateSCFToControlFlowConversionPatterns(patterns);
  const FrozenRewritePatternSet frozen(std::move(patterns));
  PatternApplicator applicator(frozen);
  applicator.applyDefaultCostModel();
  llvm::SmallVector<Operation *> structured;
  module.walk([&](Operation *op) {
    if (isa<scf::SCFDialect>(op->getDialect()) && op->getNumRegions() > 0)
      structured.push_back(op);
  });
  PatternRewriter rewriter(module.getContext());
  for (Operation *op : llvm::reverse(structured)) {
    rewriter.setInsertionPoint(op);
    if (failed(applicator.matchAndRewrite(op, rewriter)))
      return op->emitError("'") << op->getName() << "' cannot become branches";
  }
  return success();
}

struct ToLLVM : impl::ToLLVMBase<ToLLVM> {
  void runOnOperation() override {
    if (failed(makeBranches(getOperation())))
      return signalPassFailure();
    MLIRContext *context = &getContext();
    LowerToLLVMOptions options(context);
    options.overrideIndexBitwidth(64);
    LLVMTypeConverter converter(context, options);
    LLVMConversionTarget target(*context);
    target.addLegalDialect<NVVM::NVVMDialect>();
    target.addLegalOp<ModuleOp>();
    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);
    ConversionConfig config;
    config.allowPatternRollback = false;
    config.foldingMode = DialectConversionFoldingMode::Never;
    if (failed(applyFullConversion(getOperation(), target, std::move(patterns), config)))
      return signalPassFailure();
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>())
      markKernel(function);
  }
};

} // namespace
} // namespace kiln
