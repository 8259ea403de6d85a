//===- Compile.h - One kernel from text to PTX --------------------------------===//
//
// The whole road in one function, for one request and in the calling thread: parse, the stages (Stages.h), PTX
// (codegen/Ptx.h), metadata.  Makes its own MLIRContext, single threaded; nothing is kept between calls.  The C table
// (CompilerTable.h) wraps it in containment.
//
// The output depends on the request alone.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_COMPILE_H
#define KILN_PIPELINE_COMPILE_H

#include "compiler/codegen/Containment.h"
#include "compiler/pipeline/CompilerTable.h"
#include "compiler/pipeline/Diagnostics.h"
#include "compiler/pipeline/Stages.h"

#include <cstdio>

namespace kiln {

enum class Emit : unsigned char { Tile, TileGpu, Llvm, Ptx };

/// A request with its JSON read.
struct CompileJob {
  std::string program, fileName, kernel, codeTarget;
  std::vector<std::pair<unsigned, long long>> divisible, equals; ///< argument -> number
  bool noTensorMaps = false;                                     ///< passes make none
  Emit emit = Emit::Ptx;
  bool lineInfo = false;
  bool explain = false; ///< the metadata says what was made of the kernel (KernelReport.h)
  std::vector<std::string> plugins;
  StageInsertions passes;
  std::string stress;    ///< the pass that makes warps late, which `passes` then holds too; empty: none
  bool inHelper = false; ///< this process was made for this compile: plugins may be loaded into it
  std::string dumpDirectory;
  bool dumpPasses = false; ///< there too: the text after every pass
  bool timePasses = false; ///< the metadata says how long every pass took, MLIR's and LLVM's
  /// Name of a dump and the text that takes the place of that stage's output.
  std::vector<std::pair<std::string, std::string>> overrides;
  Isolation isolation = Isolation::Thread;
  double deadlineSeconds = 300; ///< of a helper process
};

/// Fails on malformed JSON, unknown knobs and facts.
Result<CompileJob> readRequest(const KilnCompileRequest &request);

struct JobOutput {
  int status = KILN_COMPILE_REFUSED;
  std::string text, metadata;
  std::vector<Message> messages;
};

/// Which pass a compile is in.  A crash leaves its thread without unwinding: this lies outside, has no pointers, and is
/// read when the thread is gone.
class CompileProgress {
public:
  void enter(const char *what, std::string_view name) {
    const int wanted = std::snprintf(text, sizeof text, "%s%.*s", what, static_cast<int>(name.size()), name.data());
    (void)wanted; // longer names are cut
  }
  /// "pass kiln-assign-layouts"; empty before the first.
  std::string where() const { return text; }

private:
  char text[160] = {};
};

JobOutput compileJob(const CompileJob &job, CompileProgress &progress);

} // namespace kiln

#endif // KILN_PIPELINE_COMPILE_H
