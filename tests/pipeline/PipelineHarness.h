//===- PipelineHarness.h - The compiler under test, and the library's kernels --===//
//
// The compiler is reached as users reach it: through the C table of libkiln-compiler.so, opened with dlopen.  kiln-opt
// is run as a program.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_PIPELINE_PIPELINEHARNESS_H
#define KILN_TESTS_PIPELINE_PIPELINEHARNESS_H

#include "compiler/pipeline/CompilerTable.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// Ends the program with the reason if there is none.
const KilnCompilerTable &compiler();

struct CompileOptions {
  std::string_view target = "sm_80";
  std::string_view facts = ""; ///< JSON, as the JIT gives it
  bool lineInfo = false;
  std::string_view emit = "ptx";
  std::string_view isolation = "none"; ///< none: in this thread, a crash is the process's
  std::string_view fileName = "";
  std::string_view dumpDirectory = "";
  std::string_view plugin = "", passes = "";
  double deadlineSeconds = 300;
};

struct Compiled {
  int status = 0;
  std::string output;
  std::string metadata; ///< without the times
  std::string diagnostics;
};

Compiled compile(std::string_view program, const CompileOptions &options);

struct LibraryKernel {
  std::string name; ///< "softmax bf16 looping=true"
  std::string text;
  std::string file; ///< "kernels/softmax/Softmax.cpp"
};

/// Every family in f32, f16 and bf16; `all`: also the configurations that their operations choose among.
std::vector<LibraryKernel> libraryKernels(bool all);

/// Runs build/bin/kiln-opt on a text; its standard output.  A failure is a test failure.
std::string kilnOpt(const std::vector<std::string> &arguments, std::string_view input);

} // namespace kiln::test

#endif // KILN_TESTS_PIPELINE_PIPELINEHARNESS_H
