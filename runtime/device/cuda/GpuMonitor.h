//===- GpuMonitor.h - What happens to a GPU while it is measured ---------------===//
//
// Whether it throttles, its clocks, and who else has it, as NVML says: libnvidia-ml, loaded at run time by our own
// declarations, as the driver is (Driver.h).  What NVML refuses or lacks stays unknown; nothing fails for it.
//
// Between `begin` and `end` lies what is measured; `look` goes in between, as often as one likes.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_CUDA_GPUMONITOR_H
#define KILN_RUNTIME_DEVICE_CUDA_GPUMONITOR_H

#include "support/Status.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace kiln::cuda {

struct Nvml; // the library's functions

/// How a GPU was while something was measured.  Nothing: not known.
struct GpuConditions {
  std::optional<unsigned> smMegahertz, memoryMegahertz; ///< the least that was seen
  std::optional<unsigned> busyBefore;                   ///< percent of the time shortly before
  /// What makes the measurement doubtful: "throttled: power cap", "used by another process: 1234 (python)".
  std::vector<std::string> notes;
};

class GpuMonitor {
public:
  static constexpr const char *defaultLibrary = "libnvidia-ml.so.1";

  /// Of the GPU at this place of the bus.  Processes that descend from `ours`, and itself, are no others.
  static Result<std::unique_ptr<GpuMonitor>> open(const std::string &pciBusId, pid_t ours,
                                                  const std::string &library = defaultLibrary);
  ~GpuMonitor();

  /// This process is no other either: what holds the GPU for the same sweep.
  void include(pid_t process) { included = process; }

  void begin();
  void look(); ///< a few microseconds
  GpuConditions end();
  /// What was refused so far, in a line; empty: nothing.
  std::string unknown() const;

private:
  GpuMonitor(std::unique_ptr<Nvml> nvml, void *device, pid_t ours);
  bool check(int error, const char *what);
  void lookAtProcesses();

  std::unique_ptr<Nvml> nvml;
  void *device;
  pid_t ours, included = 0;
  std::uint64_t reasons = 0;
  std::set<unsigned> others;
  GpuConditions seen;
  std::set<std::string> refused;
};

/// Whether a process is `ancestor`, or descends from it.
bool descendsFrom(pid_t process, pid_t ancestor);

} // namespace kiln::cuda

#endif // KILN_RUNTIME_DEVICE_CUDA_GPUMONITOR_H
