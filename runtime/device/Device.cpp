#include "kiln/Device.h"

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/emulator/EmulatorDevice.h"
#include "runtime/device/offline/OfflineDevice.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

namespace kiln {

static constexpr std::string_view defaultTarget = "sm_90a";

static Result<std::unique_ptr<Device>> openEmulator(std::string_view targetName, const EmulatorOptions &options) {
  KILN_ASSIGN(const Target *target, findTarget(targetName));
  return createEmulatorDevice(*target, options);
}

static Result<std::unique_ptr<Device>> openCuda(int ordinal) {
  KILN_ASSIGN(auto driver, cuda::Driver::open());
  return cuda::createCudaDevice(std::move(driver), ordinal);
}

Result<std::unique_ptr<Device>> openDevice(std::string_view name, const EmulatorOptions &options) {
  if (name.empty() || name == "auto") {
    if (auto driver = cuda::Driver::open()) {
      int count = 0;
      if ((*driver)->deviceGetCount(&count) == 0 && count > 0)
        return cuda::createCudaDevice(*driver, 0);
    }
    return openEmulator(defaultTarget, options);
  }
  if (name == "cuda")
    return openCuda(0);
  if (name == "emulator")
    return openEmulator(defaultTarget, options);
  if (name.starts_with("emulator:"))
    return openEmulator(name.substr(9), options);
  if (name.starts_with("offline:"))
    return openOffline(name);
  if (name.starts_with("cuda:")) {
    const std::string_view digits = name.substr(5);
    if (const std::optional<int> ordinal = parseNumber<int>(digits); ordinal && *ordinal >= 0)
      return openCuda(*ordinal);
    return Status(StatusCode::NotFound,
                  "device '" + std::string(name) + "': '" + std::string(digits) + "' is not the number of a GPU",
                  "use cuda:0, cuda:1, ...");
  }
  std::string remedy = "use auto, cuda:N, offline:TARGET, or emulator:TARGET with TARGET one of " + targetNames();
  if (findTarget(name))
    remedy = "to emulate it use emulator:" + std::string(name);
  return Status(StatusCode::NotFound, "unknown device '" + std::string(name) + "'", remedy);
}

Result<std::unique_ptr<Device>> deviceOf(void *nativeContext) {
  KILN_ASSIGN(auto driver, cuda::Driver::open());
  return cuda::createCudaDevice(std::move(driver), static_cast<cuda::ContextHandle>(nativeContext));
}

std::vector<DeviceInfo> listDevices(std::vector<std::string> &notes, const EmulatorOptions &emulator) {
  std::vector<DeviceInfo> out;
  if (auto driver = cuda::Driver::open())
    out = cuda::listCudaDevices(**driver, notes);
  else
    notes.push_back(driver.status().message());
  for (const Target &target : allTargets())
    out.push_back(emulatorInfo(target, emulator));
  return out;
}

} // namespace kiln
