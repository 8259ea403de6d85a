#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include "compiler/tile_gpu/TileGpuDialect.cpp.inc"

using namespace mlir;

namespace kiln::tile_gpu {
namespace {

/// `#blocked` before the first use instead of the whole text at every one.
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attr, llvm::raw_ostream &os) const override {
    if (auto layout = dyn_cast<LayoutAttr>(attr))
      os << llvm::StringRef(layout.encoding().keyword());
    else if (auto shared = dyn_cast<SharedLayoutAttr>(attr))
      os << llvm::StringRef(shared.encoding().keyword());
    else
      return AliasResult::NoAlias;
    return AliasResult::FinalAlias;
  }
};

} // namespace

void TileGpuDialect::initialize() {
  registerTypes();
  registerLayouts();
  registerTensorMaps();
  registerOps();
  addInterfaces<Aliases>();
}

Operation *TileGpuDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

void TileGpuDialect::registerOps() {
  addOperations<
#define GET_OP_LIST
#include "compiler/tile_gpu/TileGpuOps.cpp.inc"
      >();
}

} // namespace kiln::tile_gpu
