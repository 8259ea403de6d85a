//===- Child.h - A compile in a helper process with a deadline ------------===//
//
// One request, one response, both byte strings of the caller's own format, length prefixed over a socket.  The parent
// (`runInChild`) spawns the helper program, sends the request, and kills it at the deadline; a crash is reported with
// the signal's name and the last lines that the helper wrote to stderr.  The helper's main calls `serveChild`. Nothing
// here includes LLVM.  Thread safe; no state is kept between calls.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_CHILD_H
#define KILN_CODEGEN_CHILD_H

#include "support/Status.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct ChildOptions {
  std::string program;                ///< path of the helper program
  std::vector<std::string> arguments; ///< after argv[0]
  double deadlineSeconds = 300;       ///< wall clock, start included
  std::size_t maxResponseBytes = std::size_t(1) << 30;
};

/// The helper's response.  Failures: NotFound (no such program), CompileError (deadline), Internal (crash, broken
/// answer).
Result<std::string> runInChild(std::string_view request, const ChildOptions &options);

/// In the helper: reads the request, calls `handler`, writes its answer; returns main's exit status.  The helper ends
/// with its parent, even while `handler` runs.
int serveChild(const std::function<std::string(std::string_view request)> &handler);

/// The path of the program `name` in the folder of the shared object (or program) that contains `addressWithin`; empty
/// if there is none.
std::string programBeside(const void *addressWithin, std::string_view name);

} // namespace kiln

#endif // KILN_CODEGEN_CHILD_H
