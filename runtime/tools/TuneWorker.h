//===- TuneWorker.h - A configuration in processes of its own -----------------===//
//
// Compiles, measures and checks one configuration by this program's own commands, each a process with a deadline: what
// traps, hangs or corrupts memory costs itself only.  On a GPU `kiln bench` times it and compares the results with
// float64; on the emulator the time is `kiln bench --predict`, and `kiln check` runs it whole with every check on.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_TUNEWORKER_H
#define KILN_RUNTIME_TOOLS_TUNEWORKER_H

#include "compiler/target/Target.h"
#include "runtime/tools/TuneCall.h"
#include "runtime/tune/Sweep.h"

namespace kiln::tools {

struct TuneWorker {
  TuneRequest request;
  std::string dtype, device;          ///< "bf16", "emulator:sm_90a"
  std::vector<std::string> checkWith; ///< on the emulator: --with of the call that is checked
  bool isPredicted = false;
  double seconds = 300; ///< that each process may take
  Target target;

  /// A failure says that no process can be started.
  Result<tune::Entry> operator()(const tune::Space &space, const tune::Configuration &configuration) const;
};

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_TUNEWORKER_H
