//===- CudaDevice.h - A GPU as a Device -----------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
#define KILN_RUNTIME_DEVICE_CUDA_CUDADEVICE_H

#include "kiln/Device.h"
#include "runtime/device/cuda/Driver.h"

namespace kiln::cuda {

/// GPU `ordinal` of the driver.
Result<std::unique_ptr<Device>> createCudaDevice(std::shared_ptr<const Driver> driver, int ordinal);

/// Over a context that the caller keeps; nullptr: the calling thread's current one.
Result<std::unique_ptr<Device>> createCudaDevice(std::shared_ptr<const Driver> driver, ContextHandle context);

/// What only those ask for who measure.
struct GpuFacts {
  std::size_t l2Bytes = 0;
  std::string pciBusId; ///< "00000000:19:00.0": which of the machine's GPUs it is, whatever CUDA_VISIBLE_DEVICES says
};
/// Refused of a device that is no GPU.
Result<GpuFacts> factsOf(const Device &device);

/// Every GPU that the driver lists.  A note is a line on a GPU, or a driver, that does not answer.
std::vector<DeviceInfo> listCudaDevices(const Driver &driver, std::vector<std::string> &notes);

} // namespace kiln::cuda

#endif // KILN_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
