#include "runtime/device/cuda/CudaKernel.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::cuda {

static std::string dims(const Dim3 &d) {
  return format("(%u, %u, %u)", d.x, d.y, d.z);
}

CudaKernel::CudaKernel(std::shared_ptr<CudaContext> context, FunctionHandle function, KernelInfo info)
    : context(std::move(context)), function(function), kernelInfo(std::move(info)),
      internedName(this->context->intern(kernelInfo.name)) {}

Result<std::unique_ptr<CudaKernel>> CudaKernel::create(std::shared_ptr<CudaContext> context, FunctionHandle function,
                                                       const std::string &name, const KernelInfo *known) {
  KernelInfo info;
  if (known)
    info = *known;
  info.name = name;
  std::unique_ptr<CudaKernel> kernel(new CudaKernel(std::move(context), function, std::move(info)));
  KILN_TRY(kernel->readAttributes());
  KILN_TRY(kernel->readParameters(known != nullptr));
  return kernel;
}

Status CudaKernel::readAttributes() {
  const Driver &driver = context->driver();
  const struct {
    std::uint32_t &to;
    int which;
  } rows[] = {{kernelInfo.staticSharedBytes, function_attribute::sharedBytes},
              {kernelInfo.localBytesPerThread, function_attribute::localBytes},
              {kernelInfo.registersPerThread, function_attribute::registers},
              {kernelInfo.maxThreadsPerBlock, function_attribute::maxThreadsPerBlock}};
  for (const auto &row : rows) {
    int value = 0;
    KILN_TRY(context->check(driver.funcGetAttribute(&value, row.which, function),
                            "reading the attributes of kernel '" + kernelInfo.name + "' (cuFuncGetAttribute)"));
    row.to = static_cast<std::uint32_t>(value);
  }
  int value = 0; // drivers before clusters answer with an error
  clusterRequired = driver.funcGetAttribute(&value, function_attribute::clusterSizeMustBeSet, function) == 0 && value;
  // A kernel that declares its cluster "must" be given one as well.
  Dim3 declared{0, 0, 0};
  for (const auto &[to, which] : {std::pair(&declared.x, function_attribute::requiredClusterX),
                                  std::pair(&declared.y, function_attribute::requiredClusterY),
                                  std::pair(&declared.z, function_attribute::requiredClusterZ)}) {
    value = 0;
    if (driver.funcGetAttribute(&value, which, function) == 0 && value > 0)
      *to = static_cast<std::uint32_t>(value);
  }
  if (declared.count())
    declaredCluster = declared;
  value = 0;
  if (driver.funcGetAttribute(&value, function_attribute::maxDynamicSharedBytes, function) == 0 && value > 0)
    dynamicLimit = static_cast<std::uint32_t>(value);
  return {};
}

Status CudaKernel::readParameters(bool namesKnown) {
  const Driver &driver = context->driver();
  parametersKnown = namesKnown;
  if (driver.funcGetParamInfo) {
    // Offsets and sizes are the driver's to decide; names and types come from the PTX, where there is any.
    std::vector<ParameterInfo> parameters;
    std::size_t offset = 0, bytes = 0;
    while (driver.funcGetParamInfo(function, parameters.size(), &offset, &bytes) == 0) {
      const std::size_t i = parameters.size();
      ParameterInfo p = i < kernelInfo.parameters.size() ? kernelInfo.parameters[i] : ParameterInfo{};
      if (p.type.empty() || p.size != bytes) {
        const bool scalar = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
        p.type = scalar ? "b" + std::to_string(8 * bytes) : "b8[" + std::to_string(bytes) + "]";
        p.align = scalar ? static_cast<std::uint32_t>(bytes) : 1;
      }
      p.offset = static_cast<std::uint32_t>(offset);
      p.size = static_cast<std::uint32_t>(bytes);
      parameters.push_back(std::move(p));
    }
    kernelInfo.parameters = std::move(parameters);
    parametersKnown = true;
  } else if (std::ranges::any_of(kernelInfo.parameters, [](const ParameterInfo &p) { return p.align > 16; }))
    // Parameters begin at an address that is the architecture's, and no multiple of 64.
    return {StatusCode::Unsupported,
            "kernel '" + kernelInfo.name +
                "' has a parameter that is aligned to more than 16 bytes, and this driver (" + driver.versionText() +
                ") does not say where it lies",
            "install a driver of CUDA 12.4 or newer"};
  kernelInfo.parameterBytes = 0;
  std::uint32_t align = 1;
  for (const ParameterInfo &p : kernelInfo.parameters) {
    kernelInfo.parameterBytes = std::max(kernelInfo.parameterBytes, p.offset + p.size);
    align = std::max(align, p.align);
  }
  paddedBytes = (kernelInfo.parameterBytes + align - 1) / align * align;
  return {};
}

std::string CudaKernel::describe(const LaunchConfig &c) const {
  return "launching kernel '" + kernelInfo.name + "' with grid " + dims(c.grid) + ", block " + dims(c.block) +
         (c.cluster.count() ? ", cluster " + dims(c.cluster) : "") + ", " + std::to_string(c.dynamicSharedBytes) +
         " bytes of dynamic shared memory";
}

Status CudaKernel::checkLaunch(const LaunchConfig &c, std::size_t argumentBytes) const {
  const DeviceLimits &limits = context->limits();
  const std::string &name = kernelInfo.name;
  const auto refuse = [&](const std::string &what, std::string remedy) {
    return Status::invalid("kernel '" + name + "': " + what, std::move(remedy));
  };
  if (!c.grid.count() || !c.block.count())
    return refuse("grid " + dims(c.grid) + " and block " + dims(c.block) + " must have no zero", "use 1");
  if (c.grid.x > limits.grid.x || c.grid.y > limits.grid.y || c.grid.z > limits.grid.z)
    return refuse("grid " + dims(c.grid) + " is larger than the GPU's " + dims(limits.grid), "launch a smaller grid");
  if (c.block.x > limits.block.x || c.block.y > limits.block.y || c.block.z > limits.block.z ||
      c.block.count() > limits.threadsPerBlock)
    return refuse("block " + dims(c.block) + " is larger than the GPU's " + dims(limits.block) + " or " +
                      std::to_string(limits.threadsPerBlock) + " threads",
                  "launch a smaller block");
  if (kernelInfo.requiredBlock.x && !(c.block == kernelInfo.requiredBlock))
    return refuse("block " + dims(c.block) + " is not the kernel's required block (.reqntid) " +
                      dims(kernelInfo.requiredBlock),
                  "launch with that block");
  if (c.block.count() > kernelInfo.maxThreadsPerBlock)
    return refuse("block " + dims(c.block) + " has " + std::to_string(c.block.count()) +
                      " threads; the kernel allows " + std::to_string(kernelInfo.maxThreadsPerBlock) +
                      " (its registers or .maxntid)",
                  "launch a smaller block");
  if (std::uint64_t(c.dynamicSharedBytes) + kernelInfo.staticSharedBytes > limits.sharedOptIn)
    return refuse(
        std::to_string(c.dynamicSharedBytes) + " bytes of dynamic and " + std::to_string(kernelInfo.staticSharedBytes) +
            " of static shared memory are more than the GPU's " + std::to_string(limits.sharedOptIn) + " a block",
        "use less shared memory");
  if (c.cluster.count() && declaredCluster.count() && !(c.cluster == declaredCluster))
    return refuse("the cluster is " + dims(c.cluster) + ", the kernel requires " + dims(declaredCluster) +
                      " (.reqnctapercluster)",
                  "leave it out, or give that");
  if (c.cooperative && !context->driver().launchKernelEx)
    return Status(StatusCode::Unsupported,
                  "kernel '" + name + "': this driver (" + context->driver().versionText() +
                      ") makes no cooperative launches here",
                  "install a driver for CUDA 11.8 or newer");
  if (c.cluster.count()) {
    if (!context->driver().launchKernelEx)
      return Status(StatusCode::Unsupported,
                    "kernel '" + name + "': this driver (" + context->driver().versionText() + ") launches no clusters",
                    "install a driver of CUDA 11.8 or newer");
    if (c.grid.x % c.cluster.x || c.grid.y % c.cluster.y || c.grid.z % c.cluster.z)
      return refuse("grid " + dims(c.grid) + " is no multiple of the cluster " + dims(c.cluster), "round the grid up");
  } else if (clusterRequired)
    return refuse("the kernel needs a cluster size at launch", "give one");
  if (parametersKnown && (argumentBytes < kernelInfo.parameterBytes || argumentBytes > paddedBytes))
    return refuse("its " + std::to_string(kernelInfo.parameters.size()) + " parameters take " +
                      std::to_string(kernelInfo.parameterBytes) + " bytes, " + std::to_string(argumentBytes) +
                      " were given",
                  "pack each parameter at its natural offset");
  return {};
}

Status CudaKernel::optIn(const LaunchConfig &c) {
  const Driver &driver = context->driver();
  const bool large = c.cluster.count() > portableClusterBlocks;
  if (c.dynamicSharedBytes <= dynamicLimit.load(std::memory_order_acquire) &&
      (!large || largeClusters.load(std::memory_order_acquire)))
    return {};
  const std::lock_guard<std::mutex> lock(optInMutex);
  if (c.dynamicSharedBytes > dynamicLimit.load()) {
    KILN_TRY(context->check(driver.funcSetAttribute(function, function_attribute::maxDynamicSharedBytes,
                                                    static_cast<int>(c.dynamicSharedBytes)),
                            "allowing kernel '" + kernelInfo.name + "' " + std::to_string(c.dynamicSharedBytes) +
                                " bytes of dynamic shared memory (cuFuncSetAttribute)"));
    dynamicLimit.store(c.dynamicSharedBytes, std::memory_order_release);
  }
  if (large && !largeClusters.load()) {
    KILN_TRY(context->check(driver.funcSetAttribute(function, function_attribute::nonPortableClusterAllowed, 1),
                            "allowing kernel '" + kernelInfo.name + "' clusters of more than " +
                                std::to_string(portableClusterBlocks) + " blocks (cuFuncSetAttribute)"));
    largeClusters.store(true, std::memory_order_release);
  }
  return {};
}

Status CudaKernel::launch(const LaunchConfig &config, std::span<const std::byte> arguments) {
  LaunchConfig c = config;
  if (!c.cluster.count())
    c.cluster = declaredCluster;
  KILN_TRY(checkLaunch(c, arguments.size())); // with the kernel's own cluster
  if (c.stream && !takes(*context, *c.stream)) [[unlikely]]
    return Status::invalid("kernel '" + kernelInfo.name + "': the stream belongs to another device",
                           "give it one that createStream() of this device made");
  const ContextScope scope(*context);
  KILN_TRY(scope.status());
  KILN_TRY(optIn(c));
  const Driver &driver = context->driver();
  const StreamHandle stream = c.stream ? static_cast<StreamHandle>(c.stream->native()) : nullptr;
  std::size_t bytes = arguments.size();
  void *extra[] = {launchParamBufferPointer, const_cast<std::byte *>(arguments.data()), launchParamBufferSize, &bytes,
                   launchParamEnd};
  void **arg = bytes ? extra : nullptr;
  context->launched(internedName);
  ErrorCode error;
  if (c.cluster.count() || c.cooperative) {
    LaunchAttribute attributes[2];
    unsigned count = 0;
    if (c.cluster.count()) {
      LaunchAttribute &cluster = attributes[count++];
      cluster.id = LaunchAttribute::clusterDimension;
      cluster.value[0] = c.cluster.x;
      cluster.value[1] = c.cluster.y;
      cluster.value[2] = c.cluster.z;
    }
    if (c.cooperative) {
      LaunchAttribute &cooperative = attributes[count++];
      cooperative.id = LaunchAttribute::cooperative;
      cooperative.value[0] = 1;
    }
    const LaunchDescription launch{
        c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z, c.dynamicSharedBytes, stream, attributes, count};
    error = driver.launchKernelEx(&launch, function, nullptr, arg);
  } else
    error = driver.launchKernel(function, c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z,
                                c.dynamicSharedBytes, stream, nullptr, arg);
  if (error != 0) [[unlikely]]
    return context->check(error, describe(c) + " (cuLaunchKernel)");
  return {};
}

} // namespace kiln::cuda
