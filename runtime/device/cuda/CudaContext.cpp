#include "runtime/device/cuda/CudaContext.h"

#include "support/Text.h"

namespace kiln::cuda {

static Result<int> deviceAttribute(const Driver &driver, DeviceHandle device, int which, const char *name) {
  int value = 0;
  KILN_TRY(driver.check(driver.deviceGetAttribute(&value, which, device),
                        std::string("cuDeviceGetAttribute of the ") + name + " of device " + std::to_string(device)));
  return value;
}

/// The row of the target table that describes this GPU; the one with the suffix, if there is one, since the GPU runs
/// it.
static const Target *targetOf(unsigned sm) {
  const Target *found = nullptr;
  for (const Target &t : allTargets())
    if (t.sm == sm && (!found || t.archSpecific))
      found = &t;
  return found;
}

Result<DeviceInfo> describeDevice(const Driver &driver, int ordinal) {
  DeviceHandle device = 0;
  const std::string name = "cuda:" + std::to_string(ordinal);
  KILN_TRY(driver.check(driver.deviceGet(&device, ordinal), "cuDeviceGet of " + name));
  char text[256] = {};
  KILN_TRY(driver.check(driver.deviceGetName(text, sizeof text - 1, device), "cuDeviceGetName of " + name));
  std::size_t bytes = 0;
  KILN_TRY(driver.check(driver.deviceTotalMem(&bytes, device), "cuDeviceTotalMem of " + name));
  KILN_ASSIGN(const int major, deviceAttribute(driver, device, attribute::major, "compute capability"));
  KILN_ASSIGN(const int minor, deviceAttribute(driver, device, attribute::minor, "compute capability"));
  KILN_ASSIGN(const int processors, deviceAttribute(driver, device, attribute::multiprocessors, "multiprocessors"));
  DeviceInfo info{};
  info.kind = DeviceKind::Cuda;
  info.name = name;
  info.description = text;
  info.sm = static_cast<unsigned>(major * 10 + minor);
  info.target = targetOf(info.sm);
  info.multiprocessors = static_cast<unsigned>(processors);
  info.memoryBytes = bytes;
  info.driver = driver.versionText();
  return info;
}

static Result<DeviceLimits> readLimits(const Driver &driver, DeviceHandle device) {
  DeviceLimits limits;
  const struct {
    std::uint32_t &to;
    int which;
    const char *name;
  } rows[] = {{limits.grid.x, attribute::maxGridX, "largest grid"},
              {limits.grid.y, attribute::maxGridY, "largest grid"},
              {limits.grid.z, attribute::maxGridZ, "largest grid"},
              {limits.block.x, attribute::maxBlockX, "largest block"},
              {limits.block.y, attribute::maxBlockY, "largest block"},
              {limits.block.z, attribute::maxBlockZ, "largest block"},
              {limits.threadsPerBlock, attribute::maxThreadsPerBlock, "threads of a block"},
              {limits.sharedOptIn, attribute::sharedPerBlockOptIn, "shared memory of a block"}};
  for (const auto &row : rows) {
    KILN_ASSIGN(const int value, deviceAttribute(driver, device, row.which, row.name));
    row.to = static_cast<std::uint32_t>(value);
  }
  return limits;
}

Result<std::shared_ptr<CudaContext>> CudaContext::create(std::shared_ptr<const Driver> driver, int ordinal) {
  int count = 0;
  KILN_TRY(driver->check(driver->deviceGetCount(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count)
    return Status(StatusCode::NotFound,
                  "there is no device cuda:" + std::to_string(ordinal) + "; the driver lists " + std::to_string(count) +
                      (count == 1 ? " GPU" : " GPUs"),
                  count ? "use cuda:0" + (count > 1 ? " to cuda:" + std::to_string(count - 1) : std::string())
                        : "use the emulator: emulator:sm_90a");
  KILN_ASSIGN(DeviceInfo info, describeDevice(*driver, ordinal));
  DeviceHandle device = 0;
  KILN_TRY(driver->check(driver->deviceGet(&device, ordinal), "cuDeviceGet of " + info.name));
  KILN_ASSIGN(const DeviceLimits limits, readLimits(*driver, device));
  ContextHandle context = nullptr;
  KILN_TRY(driver->check(driver->primaryCtxRetain(&context, device),
                         "the primary context of " + info.name + " (cuDevicePrimaryCtxRetain)"));
  return std::shared_ptr<CudaContext>(
      new CudaContext(std::move(driver), device, context, std::move(info), limits, true));
}

Result<std::shared_ptr<CudaContext>> CudaContext::adopt(std::shared_ptr<const Driver> driver, ContextHandle context) {
  ContextHandle current = nullptr;
  KILN_TRY(driver->check(driver->ctxGetCurrent(&current), "cuCtxGetCurrent"));
  if (!context)
    context = current;
  if (!context)
    return Status::invalid("the calling thread has no current CUDA context",
                           "give a context, or call openDevice(\"cuda:0\"), which uses the GPU's primary one");
  DeviceHandle device = 0;
  if (context != current)
    KILN_TRY(driver->check(driver->ctxSetCurrent(context), "making the given context current (cuCtxSetCurrent)"));
  const ErrorCode error = driver->ctxGetDevice(&device);
  if (context != current)
    driver->ctxSetCurrent(current);
  KILN_TRY(driver->check(error, "the GPU of the given context (cuCtxGetDevice)"));
  // A device handle is found by its number: the driver has no way back.
  int count = 0, ordinal = 0;
  KILN_TRY(driver->check(driver->deviceGetCount(&count), "cuDeviceGetCount"));
  for (; ordinal < count; ++ordinal) {
    DeviceHandle one = 0;
    KILN_TRY(driver->check(driver->deviceGet(&one, ordinal), "cuDeviceGet of cuda:" + std::to_string(ordinal)));
    if (one == device)
      break;
  }
  KILN_ASSIGN(DeviceInfo info, describeDevice(*driver, ordinal));
  KILN_ASSIGN(const DeviceLimits limits, readLimits(*driver, device));
  return std::shared_ptr<CudaContext>(
      new CudaContext(std::move(driver), device, context, std::move(info), limits, false));
}

CudaContext::CudaContext(std::shared_ptr<const Driver> driver, DeviceHandle device, ContextHandle context,
                         DeviceInfo info, DeviceLimits limits, bool retained)
    : driverTable(std::move(driver)), device(device), context(context), deviceInfo(std::move(info)),
      deviceLimits(limits), retained(retained) {}

CudaContext::~CudaContext() {
  if (retained)
    driverTable->primaryCtxRelease(device);
}

Result<GpuFacts> CudaContext::facts() const {
  GpuFacts out;
  KILN_ASSIGN(const int l2, deviceAttribute(driver(), device, attribute::l2Bytes, "L2's size"));
  if (l2 <= 0)
    return Status(StatusCode::Unsupported, "the driver names no L2 of " + deviceInfo.name);
  out.l2Bytes = static_cast<std::size_t>(l2);
  char text[64] = {};
  KILN_TRY(check(driver().deviceGetPCIBusId(text, sizeof text - 1, device), "cuDeviceGetPCIBusId"));
  out.pciBusId = text;
  return out;
}

Status CudaContext::check(ErrorCode error, const std::string &what) const {
  if (error == 0) [[likely]]
    return {};
  std::string whole = what + " on " + deviceInfo.name;
  const char *kernel = lastKernel.load(std::memory_order_relaxed);
  if (isSticky(error) && kernel)
    whole += std::string(", after kernel '") + kernel + "' was launched";
  return driverTable->check(error, whole);
}

const char *CudaContext::intern(const std::string &name) {
  const std::lock_guard<std::mutex> lock(namesMutex);
  return names.insert(name).first->c_str();
}

ContextScope::ContextScope(const CudaContext &context) : context(context) {
  error = context.driver().ctxGetCurrent(&previous);
  if (error == 0 && previous != context.handle()) {
    error = context.driver().ctxSetCurrent(context.handle());
    changed = error == 0;
  }
}

ContextScope::~ContextScope() {
  if (changed)
    context.driver().ctxSetCurrent(previous);
}

Status ContextScope::status() const {
  if (error == 0) [[likely]]
    return {};
  return context.check(error, "making the context current (cuCtxSetCurrent)");
}

} // namespace kiln::cuda
