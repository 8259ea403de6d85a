#include "tests/runtime/FakeNvml.h"

using kiln::test::FakeNvml;

extern "C" FakeNvml *fakeNvml() {
  static FakeNvml the;
  return &the;
}

#define ENTER(name)                                                                                                    \
  if (const auto found = fakeNvml()->failures.find(name); found != fakeNvml()->failures.end())                         \
  return found->second

extern "C" {

const char *nvmlErrorString(int error) {
  return error == 4 ? "Insufficient Permissions" : "as NVML explains it";
}
int nvmlInit_v2() {
  ENTER("nvmlInit_v2");
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, void **device) {
  ENTER("nvmlDeviceGetHandleByPciBusId_v2");
  *device = fakeNvml();
  return fakeNvml()->pciBusId == pciBusId ? 0 : 6;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *, unsigned long long *reasons) {
  ENTER("nvmlDeviceGetCurrentClocksThrottleReasons");
  *reasons = fakeNvml()->reasons;
  return 0;
}
int nvmlDeviceGetClockInfo(void *, int clock, unsigned *megahertz) {
  ENTER("nvmlDeviceGetClockInfo");
  *megahertz = clock == 2 ? fakeNvml()->memoryMegahertz : fakeNvml()->smMegahertz;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void *, unsigned *rates) {
  ENTER("nvmlDeviceGetUtilizationRates");
  rates[0] = fakeNvml()->utilisation, rates[1] = 0;
  return 0;
}
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned instances[2];
};
int nvmlDeviceGetComputeRunningProcesses_v3(void *, unsigned *count, Process *processes) {
  ENTER("nvmlDeviceGetComputeRunningProcesses_v3");
  const auto all = static_cast<unsigned>(fakeNvml()->processes.size());
  const bool fits = all <= *count;
  *count = all;
  for (unsigned i = 0; fits && i < all; ++i)
    processes[i] = {fakeNvml()->processes[i], 1, {0, 0}};
  return fits ? 0 : 7;
}
}
