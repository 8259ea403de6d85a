//===- TuneOptions.h - What `kiln tune` is told ---------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_TUNEOPTIONS_H
#define KILN_RUNTIME_TOOLS_TUNEOPTIONS_H

#include "runtime/tools/TuneCall.h"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace CLI {
class App;
}

namespace kiln::tools {

/// What the command line says; the defaults are its own.
struct TuneOptions {
  TuneRequest request;
  std::vector<std::string> words, checkWith;
  std::string search = "model", shapes, calls, journal, replay, exported, compared, output;
  std::uint64_t seed = 1;
  std::size_t keep = 64, budget = 0;
  std::optional<std::size_t> confirm;
  bool save = false, noSave = false;
  double seconds = 0, timeout = 300;
  unsigned jobs = 0;
  std::string devices;     ///< "0-3"
  std::string queue, work; ///< addresses
  bool mpi = false;
  double idle = 0, silence = 15;
  std::string answer; ///< of a process that measures: predicted or timed
  bool dryRun = false;
  pid_t endsWith = 0; ///< the program whose call a sweep in the background is of
};

/// The options and the help of the command, which are read into `options`.
void declare(CLI::App &command, TuneOptions &options);
/// Refuses numbers that mean nothing.
Status checkNumbers(const TuneOptions &options);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_TUNEOPTIONS_H
