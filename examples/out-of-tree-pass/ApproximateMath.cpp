// approximate-math{ops=math.exp,arith.divf}: the hardware's approximations in place of precise functions.
//
// Kiln gives exp, log, sin, division and their like in two grades (docs/numbers.md): precise, and approx where an
// operation carries fastmath<afn>.  A kernel's author chooses for each operation; this pass chooses for a whole kernel,
// which answers the question "what would it cost, what would it gain" without touching the kernel.  One remark a
// function says how many operations it changed.
#include "compiler/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {

struct ApproximateMath : PassWrapper<ApproximateMath, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ApproximateMath)

  ApproximateMath() = default;
  ApproximateMath(const ApproximateMath &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "approximate-math"; }
  StringRef getDescription() const override { return "Let f32 functions use the hardware's approximations"; }

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kiln::tile::isKernel(kernel))
      return;
    llvm::SmallVector<StringRef> chosen(ops.begin(), ops.end());
    if (chosen.empty())
      chosen = {"arith.divf", "math.cos", "math.exp", "math.exp2", "math.log", "math.log2", "math.sin", "math.sqrt"};
    unsigned changed = 0;
    kernel.walk([&](Operation *op) {
      auto fast = dyn_cast<arith::ArithFastMathInterface>(op);
      if (!fast || !llvm::is_contained(chosen, op->getName().getStringRef()))
        return;
      // f64 has no approximations, and 16-bit types round most of one away.  elementTypeOf looks into tiles.
      if (!kiln::tile::elementTypeOf(op->getResult(0).getType()).isF32())
        return;
      const arith::FastMathFlags flags = fast.getFastMathFlagsAttr().getValue();
      if (bitEnumContainsAll(flags, arith::FastMathFlags::afn))
        return;
      op->setAttr(fast.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(&getContext(), flags | arith::FastMathFlags::afn));
      ++changed;
    });
    kernel.emitRemark() << changed << " operations approximate";
  }

  ListOption<std::string> ops{*this, "ops", llvm::cl::desc("operations to change, as in arith.divf,math.exp")};
};

} // namespace

// MLIR's own entry point of pass plugins: kiln-opt and the JIT both look for it.
extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "approximate-math", "0.1", [] { PassRegistration<ApproximateMath>(); }};
}
