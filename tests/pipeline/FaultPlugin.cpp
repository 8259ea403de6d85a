// A pass plugin for tests: `test-fault{kind=..}` fails in every way that a pass can.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/ErrorHandling.h"

#include <cstdlib>
#include <unistd.h>

using namespace mlir;

namespace {

char *volatile eaten; // keeps allocations from being left out

int overflowStack(volatile int *deep) {
  if (deep && deep[0] < 0)
    return 0; // never
  volatile int here[1024];
  here[0] = deep ? deep[0] + 1 : 0;
  return overflowStack(here) + here[0];
}

struct TestFault : PassWrapper<TestFault, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestFault)
  TestFault() = default;
  TestFault(const TestFault &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "test-fault"; }

  void runOnOperation() override {
    const std::string what = kind;
    if (what == "fatal")
      llvm::report_fatal_error("the pass gave up: reason 42");
    if (what == "segfault") {
      volatile int *nowhere = nullptr;
      *nowhere = 1;
    }
    if (what == "abort")
      std::abort();
    if (what == "overflow")
      eaten = reinterpret_cast<char *>(static_cast<intptr_t>(overflowStack(nullptr)));
    if (what == "exit")
      std::_Exit(7);
    if (what == "llvm-error") {
      llvm::LLVMContext context; // no handler: LLVM prints and ends the process with status 1
      context.emitError("an error without a handler");
    }
    while (what == "eat")
      eaten = static_cast<char *>(::operator new(std::size_t(64) << 20));
    while (what == "loop")
      ::usleep(1000);
    if (what == "fail")
      signalPassFailure(); // without a word
  }

  Option<std::string> kind{*this, "kind", llvm::cl::desc("how it fails"), llvm::cl::init("")};
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "test-fault", "1", [] { PassRegistration<TestFault>(); }};
}
