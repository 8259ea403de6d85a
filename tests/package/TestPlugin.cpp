// A pass plugin for tests: `test-seven` puts KILN_TEST_VALUE in the place of every f32 constant 7.
//   KILN_TEST_API      the version that it claims of MLIR's plugin interface
//   KILN_TEST_CRASH    it crashes when its passes are registered
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

#include <cstdlib>

#ifndef KILN_TEST_API
#define KILN_TEST_API MLIR_PLUGIN_API_VERSION
#endif

using namespace mlir;

namespace {

struct TestSeven : PassWrapper<TestSeven, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestSeven)
  TestSeven() = default;
  TestSeven(const TestSeven &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "test-seven"; }

  void runOnOperation() override {
    if (erase)
      return getOperation().getBody()->clear();
    getOperation().walk([&](arith::ConstantOp op) {
      const auto value = dyn_cast<FloatAttr>(op.getValue());
      const auto tile = dyn_cast<SplatElementsAttr>(op.getValue());
      const FloatAttr other = FloatAttr::get(Float32Type::get(&getContext()), KILN_TEST_VALUE + 0.0);
      if (value && value.getType().isF32() && value.getValueAsDouble() == 7)
        op.setValueAttr(other);
      else if (tile && tile.getElementType().isF32() && tile.getSplatValue<APFloat>().convertToDouble() == 7)
        op.setValueAttr(DenseElementsAttr::get(tile.getType(), llvm::ArrayRef<Attribute>(other)));
    });
  }

  Option<bool> erase{*this, "erase", llvm::cl::desc("erase the kernel instead"), llvm::cl::init(false)};
};

void registerPasses() {
#ifdef KILN_TEST_CRASH
  std::abort();
#endif
  PassRegistration<TestSeven>();
}

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {KILN_TEST_API, "test", "1", registerPasses};
}
