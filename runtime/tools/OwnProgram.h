//===- OwnProgram.h - This program with other arguments, as another process ----===//
#ifndef KILN_RUNTIME_TOOLS_OWNPROGRAM_H
#define KILN_RUNTIME_TOOLS_OWNPROGRAM_H

#include "compiler/codegen/Process.h"
#include "runtime/tools/Report.h"

namespace kiln::tools {

Result<ProcessSpec> ownProgram(std::vector<std::string> arguments);

/// The end of it, and what it printed.
struct OwnRun {
  ProcessEnd end;
  Json report; ///< the JSON object among its lines; null: there is none
  /// Why it failed: what the report says, else the last line.
  std::string message() const;
  Status failure(StatusCode code) const;
};
Result<OwnRun> runOwnProgram(std::vector<std::string> arguments, double seconds, int niceness = 0);

std::string lastLine(std::string text);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_OWNPROGRAM_H
