#include "compiler/pipeline/Dialects.h"

#include "compiler/codegen/Ptx.h"
#include "compiler/passes/Passes.h"
#include "compiler/pipeline/Stages.h"
#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Transforms/Passes.h"

#include <mutex>

namespace kiln {

void registerDialects(mlir::DialectRegistry &registry) {
  registry
      .insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect, mlir::math::MathDialect,
              mlir::scf::SCFDialect, mlir::ub::UBDialect, tile::TileDialect, tile_gpu::TileGpuDialect>();
  mlir::func::registerInlinerExtension(registry);
  registerPtxDialects(registry);
}

void registerPasses() {
  static std::once_flag once;
  std::call_once(once, [] {
    mlir::registerTransformsPasses();
    mlir::registerConvertNVVMToLLVMPass();
    mlir::registerSCFToControlFlowPass();
    mlir::registerReconcileUnrealizedCastsPass();
    registerKilnPasses();
    registerStages();
  });
}

} // namespace kiln
