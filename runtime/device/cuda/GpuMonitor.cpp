#include "runtime/device/cuda/GpuMonitor.h"

#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdint>
#include <dlfcn.h>
#include <fstream>
#include <unistd.h>

namespace kiln::cuda {

using ErrorCode = int; ///< nvmlReturn_t
using NvmlHandle = void *;

/// nvmlUtilization_t.
struct NvmlUtilization {
  unsigned gpu, memory;
};
/// nvmlProcessInfo_t of the functions with suffix _v2 and _v3.
struct NvmlProcess {
  unsigned pid;
  unsigned long long usedMemory;
  unsigned gpuInstance, computeInstance;
};
static_assert(sizeof(NvmlProcess) == 24);

struct Nvml {
// NOLINTBEGIN(bugprone-macro-parentheses): they declare members
#define KILN_NVML_FUNCTION(name, symbol, parameters) ErrorCode(*name) parameters = nullptr;
// NOLINTEND(bugprone-macro-parentheses)
#include "runtime/device/cuda/NvmlFunctions.def"
  const char *(*errorString)(ErrorCode) = nullptr;

  std::string errorText(ErrorCode error) const {
    const char *text = errorString ? errorString(error) : nullptr;
    return text ? text : "NVML error " + std::to_string(error);
  }
};

namespace {

constexpr ErrorCode insufficientSize = 7;
constexpr int smClock = 1, memoryClock = 2; // nvmlClockType_t

/// nvmlClocksThrottleReason*.  The others slow nothing down: an idle GPU, and clocks that somebody chose.
struct Reason {
  std::uint64_t bit;
  const char *name;
};
constexpr Reason throttles[] = {{0x4, "power cap"},
                                {0x8, "hardware slowdown"},
                                {0x10, "clocks of a group of GPUs"},
                                {0x20, "temperature (driver)"},
                                {0x40, "temperature (hardware)"},
                                {0x80, "power brake"}};

void lower(std::optional<unsigned> &least, unsigned value) {
  least = std::min(least.value_or(value), value);
}

std::string nameOf(unsigned process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(in, name);
  return std::to_string(process) + (name.empty() ? "" : " (" + name + ")");
}

} // namespace

bool descendsFrom(pid_t process, pid_t ancestor) {
  for (int generation = 0; process > 0 && generation < 1000; ++generation) { // a number may be given anew meanwhile
    if (process == ancestor)
      return true;
    std::ifstream in("/proc/" + std::to_string(process) + "/status");
    pid_t parent = 0;
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("PPid:\t"))
        parent = parseNumber<pid_t>(std::string_view(line).substr(6)).value_or(0);
    process = parent;
  }
  return false;
}

Result<std::unique_ptr<GpuMonitor>> GpuMonitor::open(const std::string &pciBusId, pid_t ours,
                                                     const std::string &library) {
  void *handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL); // stays loaded, as the driver does
  if (!handle) {
    const char *why = ::dlerror();
    return Status(StatusCode::NotFound, "no NVML: " + std::string(why ? why : library + " cannot be loaded"));
  }
  auto nvml = std::make_unique<Nvml>();
#define KILN_NVML_FUNCTION(name, symbol, parameters)                                                                   \
  nvml->name = reinterpret_cast<decltype(nvml->name)>(::dlsym(handle, symbol));
#include "runtime/device/cuda/NvmlFunctions.def"
  nvml->errorString = reinterpret_cast<const char *(*)(ErrorCode)>(::dlsym(handle, "nvmlErrorString"));
  if (!nvml->init || !nvml->handleByPciBusId)
    return Status(StatusCode::Unsupported, "NVML (" + library + ") is too old: it does not find GPUs by their bus");
  if (const ErrorCode error = nvml->init())
    return Status(StatusCode::DeviceError, "NVML does not start (nvmlInit_v2): " + nvml->errorText(error));
  NvmlHandle device = nullptr;
  if (const ErrorCode error = nvml->handleByPciBusId(pciBusId.c_str(), &device))
    return Status(StatusCode::DeviceError, "NVML does not find the GPU at " + pciBusId + ": " + nvml->errorText(error));
  return std::unique_ptr<GpuMonitor>(new GpuMonitor(std::move(nvml), device, ours));
}

GpuMonitor::GpuMonitor(std::unique_ptr<Nvml> nvml, void *device, pid_t ours)
    : nvml(std::move(nvml)), device(device), ours(ours) {}
GpuMonitor::~GpuMonitor() = default;

bool GpuMonitor::check(int error, const char *what) {
  if (error)
    refused.insert(std::string(what) + " (" + nvml->errorText(error) + ")");
  return error == 0;
}

void GpuMonitor::begin() {
  reasons = 0;
  others.clear();
  seen = {};
  if (NvmlUtilization rates{}; !nvml->utilization)
    refused.insert("utilisation");
  else if (check(nvml->utilization(device, &rates), "utilisation"))
    seen.busyBefore = rates.gpu;
  lookAtProcesses();
}

void GpuMonitor::look() {
  unsigned long long now = 0;
  if (!nvml->throttleReasons)
    refused.insert("throttling");
  else if (check(nvml->throttleReasons(device, &now), "throttling"))
    reasons |= now;
  if (!nvml->clockInfo) {
    refused.insert("clocks");
    return;
  }
  unsigned megahertz = 0;
  if (check(nvml->clockInfo(device, smClock, &megahertz), "the clock of multiprocessors"))
    lower(seen.smMegahertz, megahertz);
  if (check(nvml->clockInfo(device, memoryClock, &megahertz), "the clock of memory"))
    lower(seen.memoryMegahertz, megahertz);
}

GpuConditions GpuMonitor::end() {
  look();
  lookAtProcesses();
  std::vector<std::string> names;
  for (const Reason &reason : throttles)
    if (reasons & reason.bit)
      names.emplace_back(reason.name);
  if (!names.empty())
    seen.notes.push_back("throttled: " + join(names));
  for (const unsigned process : others)
    seen.notes.push_back("used by another process: " + nameOf(process));
  return seen;
}

void GpuMonitor::lookAtProcesses() {
  if (!nvml->computeProcesses) {
    refused.insert("processes");
    return;
  }
  std::vector<NvmlProcess> list(64);
  auto count = static_cast<unsigned>(list.size());
  ErrorCode error = nvml->computeProcesses(device, &count, list.data());
  if (error == insufficientSize) { // then `count` says how many; a few more may come
    list.resize(std::min(count, 1u << 16) + 16);
    count = static_cast<unsigned>(list.size());
    error = nvml->computeProcesses(device, &count, list.data());
  }
  if (!check(error, "processes"))
    return;
  list.resize(std::min<std::size_t>(count, list.size()));
  const auto isThis = [](const NvmlProcess &p) { return p.pid == static_cast<unsigned>(::getpid()); };
  // This process has the GPU too.  Where its number is not in the list, those of others mean nothing here either.
  if (!list.empty() && std::none_of(list.begin(), list.end(), isThis)) {
    refused.insert("processes (the driver numbers them as outside of this container)");
    return;
  }
  for (const NvmlProcess &p : list)
    if (static_cast<pid_t>(p.pid) != included && !descendsFrom(static_cast<pid_t>(p.pid), ours))
      others.insert(p.pid);
}

std::string GpuMonitor::unknown() const {
  return refused.empty() ? "" : "NVML does not say: " + join(std::vector<std::string>(refused.begin(), refused.end()));
}

} // namespace kiln::cuda
