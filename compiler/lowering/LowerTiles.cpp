// kiln-lower-tiles: the conversion of Lowering.h, function by function.
#include "compiler/passes/Pass.h"
#include "compiler/target/KernelOptions.h"

#include "compiler/lowering/Emit.h"
#include "compiler/lowering/PackCarried.h"
#include "compiler/lowering/SinkLoads.h"

#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/LowerTiles.inc"

using namespace kiln::lowering;

namespace {

/// What a pointer points to, which its type does not say afterwards.
void keepElements(func::FuncOp kernel) {
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (auto pointer = dyn_cast<tile::PtrType>(kernel.getArgumentTypes()[i]))
      kernel.setArgAttr(i, tile::elementAttr, TypeAttr::get(pointer.getPointee()));
}

/// The attributes of `tile` name things that are gone now: those that LLVM knows take their place.  A kernel's
/// arguments keep what its caller has to know: names, elements, and the facts that the code relies on.
void convertAttributes(func::FuncOp function) {
  Builder b(function.getContext());
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    const auto divisibility = function.getArgAttrOfType<IntegerAttr>(i, tile::divisibilityAttr);
    const bool pointer = isa<LLVM::LLVMPointerType>(function.getArgumentTypes()[i]);
    if (pointer && divisibility) {
      // LLVM's alignments are powers of two.
      const int64_t n = divisibility.getInt();
      function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(n & -n));
    }
    if (pointer && function.getArgAttr(i, tile::noaliasAttr))
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    for (llvm::StringRef name : {tile::noaliasAttr, tile::specializeAttr})
      function.removeArgAttr(i, name);
    if (!tile::isKernel(function))
      for (llvm::StringRef name : {tile::divisibilityAttr, tile::equalsAttr, tile::nameAttr})
        function.removeArgAttr(i, name);
    if (!tile::isKernel(function) || !pointer)
      function.removeArgAttr(i, tile::elementAttr);
  }
  if (tile::isKernel(function))
    function->setAttr(threadsAttr, b.getI32IntegerAttr(static_cast<int>(tile_gpu::threadsOf(function))));
  if (auto registers = function->getAttrOfType<IntegerAttr>(tile::maxRegistersAttr))
    function->setAttr(maxRegistersAttr, b.getI32IntegerAttr(static_cast<int>(registers.getInt())));
  if (const auto cluster = tile::clusterOf(function); llvm::any_of(cluster, [](int32_t n) { return n != 1; }))
    function->setAttr(lowering::clusterAttr, b.getDenseI32ArrayAttr(cluster));
  // Those of the launcher are in the metadata by now; a kernel keeps what its text has to say to the assembler.
  for (const KernelOptionInfo &option : kernelOptions)
    if (!tile::isKernel(function) || option.reader != KernelOptionInfo::Reader::Assembler)
      function->removeAttr("tile." + std::string(option.attribute));
  for (const KernelExtentsInfo &option : kernelExtents)
    function->removeAttr("tile." + std::string(option.attribute));
  function->removeAttr(tile::kernelAttr);
}

void declareSharedMemory(ModuleOp module) {
  int64_t bytes = 0;
  for (auto f : module.getOps<func::FuncOp>())
    if (auto n = f->getAttrOfType<IntegerAttr>(tile_gpu::sharedBytesAttr))
      bytes = std::max(bytes, n.getInt());
  if (bytes == 0 || module.lookupSymbol(sharedSymbol))
    return;
  OpBuilder b(module.getBodyRegion());
  LLVM::GlobalOp::create(b, module.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false,
                         LLVM::Linkage::External, sharedSymbol, Attribute(), /*alignment=*/1024, sharedSpace);
}

LogicalResult lowerFunction(func::FuncOp function) {
  const std::unique_ptr<LoweringContext> context = LoweringContext::create(function);
  if (!context)
    return failure();
  const TileTypeConverter converter(*context);
  ConversionTarget target(*function.getContext());
  RewritePatternSet patterns(function.getContext());
  target.addIllegalDialect<tile::TileDialect, tile_gpu::TileGpuDialect>();
  target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  target.addDynamicallyLegalDialect<arith::ArithDialect, math::MathDialect, ub::UBDialect>(
      [&](Operation *op) { return converter.isLegal(op); });
  target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp f) {
    return converter.isSignatureLegal(f.getFunctionType()) && converter.isLegal(&f.getBody());
  });
  target.addDynamicallyLegalOp<func::ReturnOp>([&](func::ReturnOp op) { return converter.isLegal(op); });
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns, target);
  populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns, converter);
  populateReturnOpTypeConversionPattern(patterns, converter);
  populateElementwisePatterns(patterns, converter, *context);
  populateShapePatterns(patterns, converter, *context);
  populateMemoryPatterns(patterns, converter, *context);
  populateViewPatterns(patterns, converter, *context);
  populateAtomicPatterns(patterns, converter, *context);
  populateConvertPatterns(patterns, converter, *context);
  populateLocalPatterns(patterns, converter, *context);
  populateAsyncPatterns(patterns, converter, *context);
  populateBulkPatterns(patterns, converter, *context);
  populateBarrierPatterns(patterns, converter, *context);
  populateMbarrierPatterns(patterns, converter, *context);
  populateCheckPatterns(patterns, converter, *context);
  populateProgramPatterns(patterns, converter, *context);
  populateReducePatterns(patterns, converter, *context);
  populateDotPatterns(patterns, converter, *context);
  populateWarpgroupDotPatterns(patterns, converter, *context);
  ConversionConfig config;
  config.allowPatternRollback = false;
  config.foldingMode = DialectConversionFoldingMode::Never;
  return applyPartialConversion(function, target, std::move(patterns), config);
}

struct LowerTiles : impl::LowerTilesBase<LowerTiles> {
  void getDependentDialects(DialectRegistry &registry) const override {
    impl::LowerTilesBase<LowerTiles>::getDependentDialects(registry);
    registry.insert<scf::SCFDialect, ub::UBDialect>(); // branches round accesses
  }
  void runOnOperation() override {
    declareSharedMemory(getOperation());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (function.isDeclaration())
        continue;
      if (tile::isKernel(function))
        keepElements(function);
      for (auto roles : function.getOps<tile_gpu::RolesOp>())
        if (roles.getComputeRegisters())
          function->setAttr(oneBlockAttr, UnitAttr::get(&getContext()));
      if (failed(lowerFunction(function)))
        return signalPassFailure();
      sinkSharedLoads(function);
      packCarried(function);
      convertAttributes(function);
    }
  }
};

} // namespace
} // namespace kiln
