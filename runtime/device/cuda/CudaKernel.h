//===- CudaKernel.h - One kernel on a GPU ---------------------------------===//
//
// A launch checks every limit before the driver sees it and takes no lock and allocates nothing, unless the kernel
// needs more dynamic shared memory, or a larger cluster, than in any launch before.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_CUDA_CUDAKERNEL_H
#define KILN_RUNTIME_DEVICE_CUDA_CUDAKERNEL_H

#include "runtime/device/cuda/CudaContext.h"

namespace kiln::cuda {

class CudaKernel final : public Kernel {
public:
  /// `known` is what the PTX says about the entry; nullptr for a cubin.
  static Result<std::unique_ptr<CudaKernel>> create(std::shared_ptr<CudaContext> context, FunctionHandle function,
                                                    const std::string &name, const KernelInfo *known);
  const KernelInfo &info() const override { return kernelInfo; }
  Status launch(const LaunchConfig &config, std::span<const std::byte> arguments) override;

private:
  CudaKernel(std::shared_ptr<CudaContext> context, FunctionHandle function, KernelInfo info);
  Status readAttributes();
  Status readParameters(bool namesKnown);
  Status checkLaunch(const LaunchConfig &config, std::size_t argumentBytes) const;
  Status optIn(const LaunchConfig &config);
  std::string describe(const LaunchConfig &config) const;

  std::shared_ptr<CudaContext> context;
  FunctionHandle function;
  KernelInfo kernelInfo;
  const char *internedName;
  bool parametersKnown = false;
  bool clusterRequired = false;  ///< a launch must give a cluster
  Dim3 declaredCluster{0, 0, 0}; ///< the kernel's own; none: 0
  std::uint32_t paddedBytes = 0; ///< parameterBytes with the padding at the end of a C struct
  std::mutex optInMutex;
  std::atomic<std::uint32_t> dynamicLimit{0}; ///< dynamic shared bytes that the function accepts now
  std::atomic<bool> largeClusters{false};
};

} // namespace kiln::cuda

#endif // KILN_RUNTIME_DEVICE_CUDA_CUDAKERNEL_H
