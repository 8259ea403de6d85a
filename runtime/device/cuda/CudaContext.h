//===- CudaContext.h - The context of one GPU -----------------------------===//
//
// The GPU's primary context, or one that somebody else made and keeps.  Shared by a CudaDevice and everything it makes,
// so that a primary context outlives them all.  Each driver call runs inside a
// ContextScope, which makes the context current on the calling thread and puts back what was current before: callers
// may use any thread and other CUDA libraries.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_CUDA_CUDACONTEXT_H
#define KILN_RUNTIME_DEVICE_CUDA_CUDACONTEXT_H

#include "kiln/Device.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/Driver.h"

#include <atomic>
#include <mutex>
#include <set>

namespace kiln::cuda {

struct DeviceLimits {
  Dim3 grid, block;
  std::uint32_t threadsPerBlock = 0;
  std::uint32_t sharedOptIn = 0; ///< bytes, static and dynamic together
};

class CudaContext {
public:
  static Result<std::shared_ptr<CudaContext>> create(std::shared_ptr<const Driver> driver, int ordinal);
  /// Over an existing context, which the caller keeps; nullptr: the calling thread's current one.
  static Result<std::shared_ptr<CudaContext>> adopt(std::shared_ptr<const Driver> driver, ContextHandle context);
  ~CudaContext();
  CudaContext(const CudaContext &) = delete;
  CudaContext &operator=(const CudaContext &) = delete;

  const Driver &driver() const { return *driverTable; }
  ContextHandle handle() const { return context; }
  const DeviceInfo &info() const { return deviceInfo; }
  const DeviceLimits &limits() const { return deviceLimits; }

  Result<GpuFacts> facts() const;

  /// As Driver::check; an error that a kernel caused also names the kernel launched last.
  Status check(ErrorCode error, const std::string &what) const;

  /// A copy of `name` that lives as long as the context.
  const char *intern(const std::string &name);
  void launched(const char *internedName) { lastKernel.store(internedName, std::memory_order_relaxed); }

private:
  CudaContext(std::shared_ptr<const Driver> driver, DeviceHandle device, ContextHandle context, DeviceInfo info,
              DeviceLimits limits, bool retained);

  std::shared_ptr<const Driver> driverTable;
  DeviceHandle device;
  ContextHandle context;
  DeviceInfo deviceInfo;
  DeviceLimits deviceLimits;
  bool retained; ///< the primary context, to be released
  std::mutex namesMutex;
  std::set<std::string> names;
  std::atomic<const char *> lastKernel{nullptr};
};

class ContextScope {
public:
  explicit ContextScope(const CudaContext &context);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;
  /// Whether the context became current.
  Status status() const;

private:
  const CudaContext &context;
  ContextHandle previous = nullptr;
  ErrorCode error = 0;
  bool changed = false;
};

/// Whether work in the context can be given to the stream: not if it was made by the Device of another GPU.
bool takes(const CudaContext &context, const Stream &stream);

/// What the driver says about GPU `ordinal`, without making a context on it.
Result<DeviceInfo> describeDevice(const Driver &driver, int ordinal);

} // namespace kiln::cuda

#endif // KILN_RUNTIME_DEVICE_CUDA_CUDACONTEXT_H
