// A libkiln-compiler that answers with what it was asked, or crashes on demand: the other end of kiln-compile-helper.
#include "compiler/pipeline/CompilerTable.h"

#include <cstdlib>
#include <string>
#include <unistd.h>

namespace {

char *volatile eaten; ///< keeps allocations from being left out

struct Answer {
  KilnCompileResult result{};
  std::string output;
};

KilnCompileResult *compile(const KilnCompileRequest *request) {
  auto text = [](const KilnText &t) { return std::string(t.data, t.size); };
  if (text(request->program) == "crash")
    std::abort();
  if (text(request->program) == "eat")
    for (;;)
      eaten = new char[std::size_t(64) << 20];
  if (text(request->program) == "hang")
    for (;;)
      ::pause();
  auto *answer = new Answer;
  answer->output = text(request->codeTarget) + " " + text(request->program) + " " + text(request->options);
  answer->result.status = KILN_COMPILE_REFUSED;
  answer->result.output = {answer->output.data(), answer->output.size()};
  answer->result.metadata = {"{}", 2};
  answer->result.diagnostics = {"", 0};
  answer->result.owner = answer;
  return &answer->result;
}

void release(KilnCompileResult *result) {
  delete static_cast<Answer *>(result->owner);
}

} // namespace

extern "C" const KilnCompilerTable *kilnCompilerTable() {
  static const KilnCompilerTable table = {KILN_COMPILER_ABI, "fake", compile, release, nullptr};
  return &table;
}
