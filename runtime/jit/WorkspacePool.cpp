#include "runtime/jit/WorkspacePool.h"

#include "kiln/Operation.h"

#include <algorithm>

namespace kiln {

Result<DeviceAddress> WorkspacePool::get(std::size_t bytes, Stream &stream) {
  if (stream.isCapturing())
    return Status(StatusCode::NotReady,
                  "a workspace of " + std::to_string(bytes) +
                      " bytes is needed inside a graph capture, and only the "
                      "caller can keep one as long as the graph",
                  "pass a workspace of as many bytes as the operation says");
  const std::lock_guard lock(mutex);
  const auto found =
      std::find_if(blocks.begin(), blocks.end(), [&](const Block &b) { return b.stream == stream.id(); });
  if (found != blocks.end())
    blocks.splice(blocks.begin(), blocks, found);
  else {
    if (blocks.size() == maxStreams)
      blocks.pop_back();
    blocks.push_front({stream.id(), nullptr});
  }
  Block &block = blocks.front();
  if (!block.buffer || block.buffer->size() < bytes) {
    std::size_t size = bytes;
    if (block.buffer) {
      KILN_TRY(stream.synchronize());
      // A slowly growing need does not allocate at each call.
      size = std::max(bytes, block.buffer->size() + block.buffer->size() / 2);
      block.buffer.reset();
    }
    KILN_ASSIGN(block.buffer, device.allocate(size, "workspace"));
  }
  return block.buffer->address();
}

Result<DeviceAddress> chooseWorkspace(Jit &jit, std::string_view operation, std::size_t needed,
                                      const RunOptions &options) {
  // Made where something is wrong, and only there: calls allocate nothing.
  const auto name = [&] { return "operation '" + std::string(operation) + "': "; };
  if (!options.workspace) {
    if (options.workspaceBytes)
      return Status::invalid(name() + "the workspace is a null pointer with " + std::to_string(options.workspaceBytes) +
                                 " bytes",
                             "give its address");
    Result<DeviceAddress> out = jit.workspace(needed, options.stream);
    if (!out)
      return out.takeStatus().withContext("operation '" + std::string(operation) + "'");
    return out;
  }
  if (options.workspaceBytes < needed)
    return Status::invalid(name() + "the workspace has " + std::to_string(options.workspaceBytes) + " bytes, " +
                               std::to_string(needed) + " are needed",
                           "ask the operation how many a call needs");
  if (options.workspace % WorkspacePool::alignment)
    return Status::invalid(name() + "the workspace does not lie at a multiple of " +
                               std::to_string(WorkspacePool::alignment) + " bytes",
                           "align it");
  return options.workspace;
}

} // namespace kiln
