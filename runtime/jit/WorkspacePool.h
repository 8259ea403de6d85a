//===- WorkspacePool.h - Scratch memory, one block a stream ---------------===//
//
// Work on one stream runs in order, so calls on it share one block, which grows as needed.  A block that is replaced or
// pushed out (`maxStreams`, least recently used first) is freed by the device, which waits for the work that uses it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_WORKSPACEPOOL_H
#define KILN_RUNTIME_JIT_WORKSPACEPOOL_H

#include "kiln/Device.h"

#include <list>
#include <mutex>

namespace kiln {

class WorkspacePool {
public:
  static constexpr std::size_t alignment = 256; ///< of the address; what every device's allocator gives
  static constexpr unsigned maxStreams = 32;

  explicit WorkspacePool(Device &device) : device(device) {}

  /// Valid until the stream's next `get`.  Refused while the stream captures: a graph outlives the order of its stream.
  Result<DeviceAddress> get(std::size_t bytes, Stream &stream);

private:
  struct Block {
    std::uint64_t stream = 0; ///< Stream::id
    std::unique_ptr<Buffer> buffer;
  };
  Device &device;
  std::mutex mutex;
  std::list<Block> blocks; ///< most recently used first
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_WORKSPACEPOOL_H
