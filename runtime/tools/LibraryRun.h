//===- LibraryRun.h - `kiln run KERNEL` and `kiln demo` -----------------------===//
#ifndef KILN_RUNTIME_TOOLS_LIBRARYRUN_H
#define KILN_RUNTIME_TOOLS_LIBRARYRUN_H

#include "kiln/Jit.h"
#include "runtime/tools/RunOptions.h"

namespace kiln::tools {

/// Whether the word names a kernel of the library rather than a file.
bool namesLibraryKernel(const std::string &word);

/// `extras`: the words that `kiln run` does not know itself: --<parameter> FILE.npy, --<number> V.
int runLibraryKernel(const RunOptions &options, const std::vector<std::string> &extras);

/// "kernel  parameters" of every family, for --help.
std::string libraryHelp();

/// The environment's options, with --code-target.
Result<JitOptions> chosenJitOptions(const RunOptions &options);

/// The device of --device and --target.
Result<std::unique_ptr<Device>> openChosenDevice(const RunOptions &options);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_LIBRARYRUN_H
