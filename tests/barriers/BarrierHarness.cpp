#include "tests/barriers/BarrierHarness.h"

#include "compiler/passes/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

namespace kiln::test {
namespace {

mlir::DialectRegistry dialects() {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                  mlir::ub::UBDialect, tile::TileDialect, tile_gpu::TileGpuDialect>();
  return registry;
}

} // namespace

BarrierHarness::BarrierHarness() : context(dialects(), mlir::MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects(); // mutations make operations that a kernel does not have
  context.getDiagEngine().registerHandler([this](mlir::Diagnostic &d) {
    errors += d.str() + "\n";
    for (mlir::Diagnostic &note : d.getNotes())
      errors += "  note: " + note.str() + "\n";
  });
}

mlir::OwningOpRef<mlir::ModuleOp> BarrierHarness::parse(std::string_view text) {
  errors.clear();
  return mlir::parseSourceString<mlir::ModuleOp>(llvm::StringRef(text.data(), text.size()), &context);
}

bool BarrierHarness::stage(mlir::ModuleOp module, const SpecializeFacts &facts) {
  errors.clear();
  mlir::PassManager pm(&context);
  for (const Status &built : {buildTileStage(pm, facts), buildTileGpuStage(pm)})
    if (!built.ok()) {
      errors = built.toString();
      return false;
    }
  return mlir::succeeded(pm.run(module));
}

bool BarrierHarness::prepare(mlir::ModuleOp module, std::int64_t scratchBytes) {
  errors.clear();
  mlir::PassManager pm(&context);
  ExpandSharedOptions options;
  options.scratchBytes = scratchBytes;
  pm.addPass(createExpandShared(options));
  pm.addPass(createAllocateShared());
  pm.addPass(createCountGroups());
  pm.addPass(createInsertBarriers());
  return mlir::succeeded(pm.run(module));
}

bool BarrierHarness::verifies(mlir::ModuleOp module) {
  errors.clear();
  mlir::PassManager pm(&context);
  pm.addPass(createVerifyBarriers());
  return mlir::succeeded(pm.run(module));
}

bool BarrierHarness::insertAdds(mlir::ModuleOp module) {
  errors.clear();
  mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
  mlir::PassManager pm(&context);
  pm.addPass(createInsertBarriers());
  return mlir::failed(pm.run(*copy)) || barriers(*copy).size() != barriers(module).size();
}

std::vector<mlir::Operation *> BarrierHarness::barriers(mlir::ModuleOp module) {
  std::vector<mlir::Operation *> out;
  module.walk([&](mlir::Operation *op) {
    if (mlir::isa<tile_gpu::BarrierOp, tile_gpu::WarpBarrierOp>(op))
      out.push_back(op);
  });
  return out;
}

bool BarrierHarness::isAccess(mlir::Operation *op) {
  return mlir::isa<tile_gpu::LocalStoreOp, tile_gpu::LocalLoadOp, tile_gpu::ExchangeStoreOp, tile_gpu::ExchangeLoadOp,
                   tile_gpu::GatherSharedOp>(op);
}

std::string BarrierHarness::text(mlir::ModuleOp module) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  module.print(stream);
  return out;
}

} // namespace kiln::test
