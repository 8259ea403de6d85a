#include "CodegenHarness.h"

#include "compiler/codegen/Containment.h"
#include "compiler/codegen/Ptx.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "support/Text.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

/// For the address sanitizer: a contained crash leaks LLVM's memory, and nvJitLink keeps some of its own.
extern "C" const char *__lsan_default_suppressions() {
  return "leak:libLLVM\nleak:libMLIR\nleak:libnvJitLink\n";
}

namespace kiln::test {

std::string Emitted::text() const {
  return contained.toString() + "\n" + join(diagnostics, "\n");
}

Emitted emit(std::string_view mlir, std::string_view target, const EmitOptions &options) {
  Emitted out;
  const Result<const Target *> row = findTarget(target);
  if (!row.ok()) {
    out.contained = row.status();
    return out;
  }
  out.contained = runContained([&] {
    mlir::DialectRegistry registry;
    registerPtxDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      std::string place;
      if (auto file = llvm::dyn_cast<mlir::FileLineColLoc>(diagnostic.getLocation()))
        place = file.getFilename().str() + ":" + std::to_string(file.getLine()) + ": ";
      out.diagnostics.push_back(place + diagnostic.str());
    });
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::parseSourceString<mlir::ModuleOp>(llvm::StringRef(mlir), &context, options.fileName);
    if (!module)
      return;
    PtxOptions ptx;
    ptx.target = *row;
    ptx.uses = options.uses;
    ptx.minimumIsa = options.minimumIsa;
    ptx.lineInfo = options.lineInfo;
    ptx.keepLlvmIr = options.keepLlvmIr;
    mlir::FailureOr<PtxOutput> made = emitPtx(*module, ptx);
    if (mlir::failed(made))
      return;
    out.ok = true;
    out.ptx = std::move(made->ptx);
    out.isaText = std::move(made->isaText);
    out.llvmBeforeO3 = std::move(made->llvmBeforeO3);
    out.llvmAfterO3 = std::move(made->llvmAfterO3);
    out.counts = made->counts;
    out.milliseconds = made->llvmMilliseconds + made->ptxMilliseconds;
  });
  return out;
}

std::string sample(const std::string &name) {
  const std::string path = std::string(KILN_SOURCE_DIR "/tests/codegen/data/") + name;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string kernelWith(std::string_view body) {
  return "module {\nllvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {\n" + std::string(body) +
         "\nllvm.return\n}\n}\n";
}

} // namespace kiln::test
