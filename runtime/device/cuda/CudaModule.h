//===- CudaModule.h - Modules and kernels on a GPU ------------------------===//
#ifndef KILN_RUNTIME_DEVICE_CUDA_CUDAMODULE_H
#define KILN_RUNTIME_DEVICE_CUDA_CUDAMODULE_H

#include "runtime/device/cuda/CudaContext.h"

namespace kiln::cuda {

/// Compiled by the driver; a refusal carries the first lines of its compiler's log.
Result<std::unique_ptr<Module>> loadPtxModule(std::shared_ptr<CudaContext> context, std::string_view text,
                                              std::string_view fileName);

Result<std::unique_ptr<Module>> loadCubinModule(std::shared_ptr<CudaContext> context, std::span<const std::byte> image);

} // namespace kiln::cuda

#endif // KILN_RUNTIME_DEVICE_CUDA_CUDAMODULE_H
