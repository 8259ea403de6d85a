// Host memory of a device that has no use for any special one.
#include "kiln/Device.h"

#include <cstdint>
#include <new>

namespace kiln {

namespace {
class PlainHostMemory final : public HostMemory {
public:
  PlainHostMemory(std::unique_ptr<std::byte[]> memory, std::size_t count) : memory(std::move(memory)), count(count) {}
  std::span<std::byte> bytes() override { return {memory.get(), count}; }

private:
  std::unique_ptr<std::byte[]> memory;
  std::size_t count;
};
} // namespace

Result<std::unique_ptr<HostMemory>> Device::allocateHost(std::size_t bytes) {
  std::unique_ptr<std::byte[]> memory;
  if (bytes <= std::size_t(PTRDIFF_MAX))
    memory.reset(new (std::nothrow) std::byte[bytes]());
  if (!memory)
    return Status(StatusCode::OutOfMemory, "the host has no memory of " + std::to_string(bytes) + " bytes",
                  "ask for less");
  return std::unique_ptr<HostMemory>(std::make_unique<PlainHostMemory>(std::move(memory), bytes));
}

} // namespace kiln
