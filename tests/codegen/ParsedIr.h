//===- ParsedIr.h - A module of LLVM IR from text ---------------------------===//
#ifndef KILN_TESTS_CODEGEN_PARSEDIR_H
#define KILN_TESTS_CODEGEN_PARSEDIR_H

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

namespace kiln::test {

/// Null, and a failure of the test, if it is none.
inline std::unique_ptr<llvm::Module> parsedIr(const std::string &text, llvm::LLVMContext &context) {
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
  if (!module)
    ADD_FAILURE() << problem.getMessage().str() << '\n' << text;
  return module;
}

} // namespace kiln::test

#endif // KILN_TESTS_CODEGEN_PARSEDIR_H
