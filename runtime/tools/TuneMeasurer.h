//===- TuneMeasurer.h - Configurations measured by one process ----------------===//
//
// A process that measures one configuration of a call after the other: the device is opened once, inputs are made once
// and the reference is computed once.  On a GPU it times the call, compares the results with float64, and looks at
// the memory around all tensors and at the inputs, which nobody may write; on the emulator the time is the performance
// model's.  After anything but a good answer the process ends: the next configuration meets memory and a device that
// nothing has touched.
//
// A request is a line, the configuration as a JSON array of the words of --with; an answer is the row of `kiln bench`,
// or {"outcome": .., "message": ..}.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_TUNEMEASURER_H
#define KILN_RUNTIME_TOOLS_TUNEMEASURER_H

#include "runtime/device/cuda/GpuMonitor.h"
#include "runtime/model/Hardware.h"
#include "runtime/tools/BenchTiming.h"
#include "runtime/tools/Report.h"
#include "runtime/tools/TuneCall.h"

namespace kiln::tools {

class TuneMeasurer {
public:
  /// `isPredicted`: by the performance model, of an emulator; else by a clock, an emulator's by the host's.
  TuneMeasurer(const TuneRequest &request, bool isPredicted) : request(request), isPredicted(isPredicted) {}

  /// What no configuration changes, while the first one is compiled: the device, the inputs, the reference.
  Status getReady();
  /// What a configuration takes.
  Result<Json> measure(const std::vector<std::string> &configuration);

private:
  Status open();
  Result<FamilyCall> callOf(const std::vector<std::string> &configuration) const;
  Result<Json> timed(const FamilyCall &of, bool isCompared);
  Result<Json> timedAt(const FamilyCall &of, bool isCompared);
  /// The results of the launches before, with float64; nothing: they are good.
  Result<std::optional<std::string>> wrongResults(const FamilyCall &of);
  struct Seen {
    Spread times;
    cuda::GpuConditions conditions;
  };
  /// On a GPU that throttled or that somebody else used a second time; if that happens again, the quicker of the two.
  /// What counts of these samples.
  double timeOf(const Spread &times) const;
  Result<Seen> timeSeen(const std::function<Status()> &launch);
  Status makeInputs(const FamilyCall &of);
  struct Expected {
    kernels::HostTensors values;
    kernels::Limits limits; ///< of products they cost as much as the values
  };
  Result<Expected *> expectedOf(const FamilyCall &of);

  TuneRequest request;
  const bool isPredicted;
  model::Hardware hardware;       ///< of a prediction
  std::unique_ptr<Device> device; // before what it makes
  std::unique_ptr<Jit> jit;
  std::optional<L2Flush> flush;
  std::unique_ptr<cuda::GpuMonitor> monitor; ///< of a GPU where NVML is
  std::string noMonitor;                     ///< why there is none
  std::optional<kernels::Arrays> inputs;
  std::optional<kernels::PlacedCall> placed;   ///< of the last configuration; its inputs serve the next
  kernels::Arrays outputs;                     ///< of the last configuration, whose memory the next one's take
  kernels::HostTensors host;                   ///< the inputs in float64
  std::map<std::string, Expected> expected;    ///< by the options that results depend on
  std::set<std::vector<std::string>> compared; ///< configurations whose results were good: those that are confirmed
  std::size_t turn = 0;                        ///< configurations that were timed
};

/// In the process: answers until it is to end; main's exit status.
int serveMeasurements(const TuneRequest &request, bool isPredicted);

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_TUNEMEASURER_H
