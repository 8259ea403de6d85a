#include "compiler/passes/Pass.h"

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

#include <numeric>

using namespace mlir;

namespace kiln {
#include "compiler/passes/Specialize.inc"

namespace {

struct Fact {
  unsigned argument;
  int64_t value;
};

struct Specialize : impl::SpecializeBase<Specialize> {
  using impl::SpecializeBase<Specialize>::SpecializeBase;

  void runOnOperation() override {
    if (failed(setTarget()) || failed(pickKernel()) || failed(stateFacts()))
      signalPassFailure();
  }

private:
  LogicalResult setTarget() {
    ModuleOp module = getOperation();
    if (target.empty())
      return success();
    Result<const Target *> found = findTarget(target.getValue());
    if (!found)
      return tile_gpu::report(module, found.status());
    // A program written for one target (an author's tile_gpu text) is not silently compiled for another.
    if (auto written = module->getAttrOfType<StringAttr>(tile_gpu::targetAttr);
        written && written.getValue() != target.getValue())
      return module.emitError() << "the program is written for " << written.getValue() << ", not for " << target;
    module->setAttr(tile_gpu::targetAttr, StringAttr::get(&getContext(), target));
    return success();
  }

  LogicalResult pickKernel() {
    ModuleOp module = getOperation();
    llvm::SmallVector<func::FuncOp> kernels;
    for (auto f : module.getOps<func::FuncOp>())
      if (tile::isKernel(f))
        kernels.push_back(f);
    std::string names;
    for (func::FuncOp f : kernels)
      names += (names.empty() ? "" : ", ") + f.getName().str();
    if (kernels.empty())
      return module.emitError() << "the program has no kernel: give a func.func the attribute tile.kernel";
    if (kernel.empty() && kernels.size() > 1)
      return module.emitError() << "the program has several kernels: " << names << "; name one";
    for (func::FuncOp f : kernels)
      if (kernel.empty() || f.getName() == kernel.getValue())
        chosen = f;
    if (!chosen)
      return module.emitError() << "the program has no kernel '" << kernel << "'; it has " << names;
    if (chosen.isDeclaration())
      return chosen.emitError() << "kernel '" << chosen.getName() << "' has no body";
    chosen.setPublic(); // what is private and not called would be removed
    for (func::FuncOp f : kernels)
      if (f != chosen)
        f.erase();
    return success();
  }

  FailureOr<Fact> parse(llvm::StringRef text, llvm::StringRef what) {
    Fact fact;
    const auto [left, right] = text.split('=');
    if (left.getAsInteger(10, fact.argument) || right.getAsInteger(10, fact.value))
      return chosen.emitError() << what << " '" << text << "': expected ARGUMENT=NUMBER";
    if (fact.argument >= chosen.getNumArguments())
      return chosen.emitError() << what << " '" << text << "': kernel '" << chosen.getName() << "' has "
                                << chosen.getNumArguments() << " arguments";
    return fact;
  }

  LogicalResult stateFacts() {
    OpBuilder builder = OpBuilder::atBlockBegin(&chosen.getBody().front());
    if (noTensorMaps)
      chosen->setAttr(tile_gpu::noTensorMapsAttr, builder.getUnitAttr());
    for (const std::string &text : divisible) {
      const FailureOr<Fact> fact = parse(text, "divisible");
      if (failed(fact))
        return failure();
      const Type type = chosen.getArgumentTypes()[fact->argument];
      if (fact->value < 1 || fact->value > INT32_MAX || !(isa<tile::PtrType>(type) || type.isInteger()))
        return chosen.emitError() << "divisible '" << text << "': " << tile::argumentName(chosen, fact->argument)
                                  << " is a " << type << ", and divisors are positive";
      // What the author states holds too.
      auto stated = chosen.getArgAttrOfType<IntegerAttr>(fact->argument, tile::divisibilityAttr);
      const int64_t both = std::lcm(fact->value, stated ? stated.getInt() : 1);
      if (both > INT32_MAX)
        return chosen.emitError() << "divisible '" << text << "': " << tile::argumentName(chosen, fact->argument)
                                  << " is a multiple of " << stated.getInt() << ", and of both only from " << both
                                  << " on";
      chosen.setArgAttr(fact->argument, tile::divisibilityAttr, builder.getI32IntegerAttr(int32_t(both)));
    }
    for (const std::string &text : equals) {
      const FailureOr<Fact> fact = parse(text, "equals");
      if (failed(fact))
        return failure();
      BlockArgument argument = chosen.getArgument(fact->argument);
      auto type = dyn_cast<IntegerType>(argument.getType());
      if (!type || !llvm::isIntN(type.getWidth(), fact->value))
        return chosen.emitError() << "equals '" << text << "': " << tile::argumentName(chosen, fact->argument)
                                  << " is a " << argument.getType();
      const IntegerAttr value = builder.getIntegerAttr(type, fact->value);
      auto stated = chosen.getArgAttrOfType<IntegerAttr>(fact->argument, tile::equalsAttr);
      if (stated && stated.getValue() != value.getValue())
        return chosen.emitError() << "equals '" << text << "': the program is written for "
                                  << tile::argumentName(chosen, fact->argument) << " = " << stated.getInt();
      chosen.setArgAttr(fact->argument, tile::equalsAttr, value); // the text alone says what it is for
      Value constant = arith::ConstantOp::create(builder, chosen.getLoc(), value);
      argument.replaceAllUsesWith(constant);
    }
    return success();
  }

  func::FuncOp chosen;
};

} // namespace
} // namespace kiln
