//===- RunRecording.h - --counters and --timeline of `kiln run` -----------===//
#ifndef KILN_RUNTIME_TOOLS_RUNRECORDING_H
#define KILN_RUNTIME_TOOLS_RUNRECORDING_H

#include "runtime/io/File.h"
#include "runtime/tools/Report.h"
#include "runtime/tools/RunOptions.h"

#include <optional>

namespace kiln::tools {

class RunRecording {
public:
  explicit RunRecording(const RunOptions &options) : o(options) {}
  /// Checks the options and opens the picture's file, so that nothing runs for a folder that cannot be written.
  Status prepare();
  /// The device's launches from now on.
  Status start(Device &device);
  /// Draws, also of launches with findings, and adds to the report.
  Status finish(Device &device, Json &report);
  /// The counters, for a terminal.
  void print() const;

private:
  const RunOptions &o;
  Recording recording;
  std::optional<OutputFile> picture;
  std::vector<LaunchCounters> counters;
};

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_RUNRECORDING_H
