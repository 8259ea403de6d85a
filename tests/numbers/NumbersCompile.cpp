#include "tests/numbers/NumbersCompile.h"

#include "compiler/codegen/Ptx.h"
#include "compiler/passes/Passes.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <chrono>

namespace kiln::test {

CompiledNumbers compileNumbers(std::string_view text, bool keepLowered) {
  CompiledNumbers out;
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, tile_gpu::TileGpuDialect>();
  registerPtxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &d) { out.errors += d.str() + "\n"; });
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(llvm::StringRef(text.data(), text.size()), &context);
  if (!module)
    return out;
  const Result<const Target *> target = tile_gpu::targetOf(*module);
  if (!target.ok()) {
    out.errors += target.status().toString();
    return out;
  }
  mlir::PassManager numbers(&context), rest(&context);
  numbers.addPass(createLowerNumbers());
  rest.addPass(mlir::createArithToLLVMConversionPass());
  const auto start = std::chrono::steady_clock::now();
  if (mlir::failed(numbers.run(*module)))
    return out;
  out.lowerMilliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (keepLowered) {
    llvm::raw_string_ostream stream(out.lowered);
    module->print(stream);
  }
  if (mlir::failed(rest.run(*module)))
    return out;
  PtxOptions options;
  options.target = *target;
  mlir::FailureOr<PtxOutput> ptx = emitPtx(*module, options);
  if (mlir::failed(ptx))
    return out;
  out.ptx = ptx->ptx;
  out.ok = true;
  return out;
}

} // namespace kiln::test
