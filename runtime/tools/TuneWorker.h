//===- TuneWorker.h - A configuration in other processes ----------------------===//
//
// Compiles, measures and checks configurations by this program's own commands, in processes with deadlines: what traps,
// hangs or corrupts memory costs itself only.  Each is compiled by a process of its own.  One process measures one
// after the other (TuneMeasurer.h), and another takes its place after anything but a good answer; on the emulator
// `kiln check` also runs each whole with every check on.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_TUNEWORKER_H
#define KILN_RUNTIME_TOOLS_TUNEWORKER_H

#include "compiler/codegen/Conversation.h"
#include "compiler/target/Target.h"
#include "runtime/tools/TuneCall.h"
#include "runtime/tune/Sweep.h"

#include <map>
#include <mutex>
#include <thread>

namespace kiln::tools {

/// What an exit status says of a configuration.
tune::Outcome outcomeOf(int exitStatus);

/// Where code for a device is compiled: "offline:sm_90a:132", or the device where no assembler is found.
std::string compilerFor(const DeviceInfo &device, const Knobs &knobs);

/// "cuda:0", "cuda:1", "cuda:3" of "0-1,3".  The failure names the part that is no number, or is there twice.
Result<std::vector<std::string>> gpusNamed(const std::string &text);

/// Thread safe: each measurer has a process of its own, on its device.
class TuneWorker {
public:
  TuneRequest request;
  std::string dtype;                  ///< "bf16"
  std::vector<std::string> devices;   ///< "emulator:sm_90a"; measurer N is on the Nth, where there are several
  std::string compiler;               ///< the device that compiles: no GPU's time, where an assembler is found
  std::vector<std::string> checkWith; ///< on the emulator: --with of the call that is checked
  bool isPredicted = false;
  double seconds = 300; ///< that each step may take
  Target target;

  /// Sets all of the above.  Without `devices` the call's own; without `checkWith` the words of --with.
  Status setUp(const TuneCall &call, const TuneRequest &request, std::vector<std::string> devices,
               std::vector<std::string> checkWith, double seconds);

  /// Compiles all kernels of the call and looks at what they take.  A failure says that no process can be started.
  Result<tune::Entry> prepare(const tune::Space &space, const tune::Configuration &configuration) const;
  /// Starts the process that measures, which makes inputs and the reference at once.
  void getReady(unsigned measurer);
  /// What was prepared.
  Result<tune::Entry> measure(const tune::Space &space, const tune::Configuration &configuration, unsigned measurer);

private:
  std::uint64_t spillOfDefault() const;
  Result<Conversation *> processOf(unsigned measurer);
  Status ask(const std::vector<std::string> &chosen, unsigned measurer, tune::Entry &entry);
  Status check(const std::vector<std::string> &chosen, tune::Entry &entry) const;
  std::vector<std::string> command(const char *name, const std::vector<std::string> &with,
                                   const std::vector<std::string> &chosen) const;
  std::vector<std::string> onDevice(std::vector<std::string> command, const std::string &device) const;
  void sayOnce(const std::string &unknown);
  mutable std::once_flag defaultIsKnown;
  mutable std::uint64_t defaultSpill = 0;
  std::mutex mutex; ///< of what follows
  bool hasSaid = false;
  /// By measurer, and who started it: a process ends with that thread.
  std::map<std::pair<unsigned, std::thread::id>, std::unique_ptr<Conversation>> processes;
};

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_TUNEWORKER_H
