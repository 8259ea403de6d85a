//===- OwnProgram.h - This program with other arguments, as another process ----===//
#ifndef KILN_RUNTIME_TOOLS_OWNPROGRAM_H
#define KILN_RUNTIME_TOOLS_OWNPROGRAM_H

#include "compiler/codegen/Process.h"
#include "runtime/tools/Report.h"

namespace kiln::tools {

Result<ProcessSpec> ownProgram(std::vector<std::string> arguments);

/// The JSON object among the lines of a command, which may say other things on standard error; null: there is none.
Json reportIn(const std::string &output);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_OWNPROGRAM_H
