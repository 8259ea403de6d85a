#include "runtime/device/cuda/Driver.h"

#include "support/Text.h"

#include <dlfcn.h>

namespace kiln::cuda {

bool isSticky(ErrorCode error) {
  return error == errorIllegalAddress || error == errorLaunchTimeout || error == errorAssert ||
         (error >= errorHardwareStack && error <= errorLaunchFailed);
}

static StatusCode statusCode(ErrorCode error) {
  switch (error) {
  case errorOutOfMemory:
    return StatusCode::OutOfMemory;
  case errorInvalidImage:
  case errorNoBinaryForGpu:
  case errorInvalidPtx:
  case errorJitCompilerNotFound:
  case errorUnsupportedPtxVersion:
  case errorInvalidSource:
    return StatusCode::CompileError;
  case errorNotFound:
    return StatusCode::NotFound;
  default:
    return StatusCode::DeviceError;
  }
}

static std::string remedy(ErrorCode error) {
  switch (error) {
  case errorOutOfMemory:
    return "free memory on the GPU or ask for less";
  case errorNoDevice:
    return "check that the machine has a GPU and that CUDA_VISIBLE_DEVICES does not hide it";
  case errorNoBinaryForGpu:
    return "compile for this GPU's compute capability";
  case errorJitCompilerNotFound:
    return "install libnvidia-ptxjitcompiler of the driver, or load a cubin";
  case errorUnsupportedPtxVersion:
    return "compile to an older PTX ISA version or install a newer driver";
  case errorLaunchOutOfResources:
    return "the kernel needs more registers or shared memory than a block may have: launch fewer threads";
  default:
    return isSticky(error) ? "a kernel faulted and its context is lost; run it on the emulator, which names the access"
                           : std::string();
  }
}

std::string Driver::versionText() const {
  return format("CUDA %d.%d", version / 1000, version % 1000 / 10);
}

std::string Driver::errorText(ErrorCode error) const {
  const char *name = nullptr, *text = nullptr;
  if (getErrorName(error, &name) != 0 || !name)
    return "CUDA error " + std::to_string(error);
  if (getErrorString(error, &text) != 0 || !text)
    return name;
  return std::string(name) + " (" + text + ")";
}

Status Driver::check(ErrorCode error, const std::string &what) const {
  if (error == 0)
    return {};
  return {statusCode(error), what + ": " + errorText(error), remedy(error)};
}

Result<std::shared_ptr<const Driver>> Driver::open(const std::string &library) {
  void *handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = ::dlerror();
    return Status(StatusCode::DeviceError, "no CUDA driver: " + std::string(why ? why : library + " cannot be loaded"),
                  "install the NVIDIA driver, or use the emulator: --device emulator");
  }
  auto driver = std::make_shared<Driver>();
#define KILN_CUDA_OPTIONAL(name, symbol, parameters)                                                                   \
  driver->name = reinterpret_cast<decltype(driver->name)>(::dlsym(handle, symbol));
#define KILN_CUDA_FUNCTION(name, symbol, parameters)                                                                   \
  KILN_CUDA_OPTIONAL(name, symbol, parameters)                                                                         \
  if (!driver->name)                                                                                                   \
    return Status(StatusCode::DeviceError, "the CUDA driver " + library + " has no function " symbol,                  \
                  "install a driver of CUDA 11.0 or newer");
#include "runtime/device/cuda/DriverFunctions.def"
  KILN_TRY(driver->check(driver->init(0), "the CUDA driver does not start (cuInit)"));
  KILN_TRY(driver->check(driver->driverGetVersion(&driver->version), "cuDriverGetVersion"));
  return std::shared_ptr<const Driver>(std::move(driver));
}

} // namespace kiln::cuda
