//===- CodegenHarness.h - MLIR text to PTX, contained, with diagnostics ---===//
#ifndef KILN_TESTS_CODEGEN_CODEGENHARNESS_H
#define KILN_TESTS_CODEGEN_CODEGENHARNESS_H

#include "compiler/codegen/LlvmCounts.h"
#include "compiler/target/Target.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

struct Emitted {
  Status contained; ///< of the containment
  bool ok = false;  ///< PTX was made
  std::string ptx, isaText, llvmBeforeO3, llvmAfterO3;
  LlvmCounts counts;
  double milliseconds = 0;              ///< LLVM and back end
  std::vector<std::string> diagnostics; ///< "file:line: message"
  std::string text() const;             ///< all of what went wrong
};

struct EmitOptions {
  std::string fileName = "sample.mlir";
  CapabilitySet uses;
  unsigned minimumIsa = 0;
  bool lineInfo = false, keepLlvmIr = false;
};

/// Parses `mlir` (LLVM and NVVM dialects) and makes PTX of it, in a contained thread.
Emitted emit(std::string_view mlir, std::string_view target, const EmitOptions &options = {});

/// The text of tests/codegen/data/`name`.
std::string sample(const std::string &name);

/// A kernel "k" of no arguments with `body` in it.
std::string kernelWith(std::string_view body);

} // namespace kiln::test

#endif // KILN_TESTS_CODEGEN_CODEGENHARNESS_H
