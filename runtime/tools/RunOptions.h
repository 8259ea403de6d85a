//===- RunOptions.h - The command line of `kiln run` ----------------------===//
#ifndef KILN_RUNTIME_TOOLS_RUNOPTIONS_H
#define KILN_RUNTIME_TOOLS_RUNOPTIONS_H

#include "kiln/Device.h"

namespace CLI {
class App;
}

namespace kiln::tools {

struct RunOptions {
  std::string file, entry, grid, block, cluster, device, target, codeTarget, dtype, timeline, timelineBlock;
  std::uint32_t sharedBytes = 0;
  std::vector<std::string> arguments, buffers, outputs;
  unsigned repeat = 1, timelineLaunch = 0;
  bool cooperative = false, time = false, json = false, noChecks = false, counters = false, explainMiss = false;
  EmulatorOptions emulator;
};

void addRunOptions(CLI::App &command, RunOptions &options);
/// --code-target, of the commands that compile.
void addCodeTarget(CLI::App &command, RunOptions &options);

/// --timeout and --threads, of every command that has them.
Status checkBudgets(const EmulatorOptions &options);

/// "4", "4,2" or "4,2,1": positive, missing ones are 1.  `option` names it in messages.
Result<Dim3> parseDims(const std::string &option, const std::string &text);

/// --output N:FILE or NAME:FILE.
struct OutputRequest {
  std::string buffer;    ///< number of an argument, or name of a --buffer
  unsigned argument = 0; ///< its index
  std::string file;
};
Result<OutputRequest> parseOutputRequest(const std::string &text);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_RUNOPTIONS_H
