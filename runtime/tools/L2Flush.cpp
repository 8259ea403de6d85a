#include "runtime/tools/L2Flush.h"

#include "runtime/device/cuda/CudaDevice.h"

namespace kiln::tools {

Result<L2Flush> L2Flush::create(Device &device) {
  if (device.info().kind != DeviceKind::Cuda)
    return Status::invalid("--flush-l2: " + device.info().name + " has no caches",
                           "leave it out; it is for launches that a GPU is timed with");
  Result<cuda::GpuFacts> facts = cuda::factsOf(device);
  if (!facts)
    return Status(facts.status().code(), "--flush-l2: " + facts.status().message(),
                  "time without it: leave it out of kiln bench, and give --no-flush-l2 to kiln tune");
  L2Flush out;
  KILN_ASSIGN(out.from, device.allocate(2 * facts->l2Bytes, "to flush the L2 from"));
  KILN_ASSIGN(out.to, device.allocate(2 * facts->l2Bytes, "to flush the L2 into"));
  KILN_TRY(out.from->fill(std::byte(0)));
  return out;
}

} // namespace kiln::tools
