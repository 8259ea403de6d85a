// Implementations of torch's operations, as torch takes them.
#include "runtime/door/TorchOperation.h"

#include <array>
#include <mutex>
#include <string>
#include <utility>

namespace kiln::door {
namespace {

constexpr std::size_t mostOperations = 128;

// A kernel of torch's is a function and nothing more: each operation has one of its own.
const TorchOperation *operations[mostOperations];
const TorchAbi *torch = nullptr;

/// No object is destroyed here: torch's exception leaves through this frame, by torch's own runtime of C++.
template <std::size_t number> void call(TorchValue *stack, std::uint64_t, std::uint64_t) {
  if (const char *const wrong = operations[number]->run(stack))
    torch->aoti_torch_check(false, "kiln", "kiln", 0, wrong);
}
template <std::size_t... numbers>
constexpr std::array<TorchKernel, sizeof...(numbers)> callsOf(std::index_sequence<numbers...>) {
  return {call<numbers>...};
}
constexpr auto calls = callsOf(std::make_index_sequence<mostOperations>());

} // namespace

Failure implementInTorch(const kernels::Family &family, const std::string &name, const std::string &key,
                         const TorchOperation::Names &names, bool &isDone) {
  static std::mutex mutex;
  static std::size_t count = 0;
  const std::lock_guard lock(mutex);
  isDone = false;
  if (!torch)
    torch = TorchAbi::find();
  if (!torch || count == mostOperations || (key == "CUDA" && !torch->aoti_torch_get_current_cuda_stream))
    return {};
  std::unique_ptr<TorchOperation> made;
  if (Failure f = TorchOperation::create(family, *torch, name, names, made); !f.kind.empty())
    return f;
  if (!made)
    return {};
  operations[count] = made.get();
  // The registration lasts as long as the library's handle, which nobody takes away.
  TorchLibrary library = nullptr;
  if (torch->aoti_torch_library_init_impl("kiln", key.c_str(), "kiln", 0, &library) ||
      torch->torch_library_impl(library, name.c_str(), calls[count], torchVersion))
    return {}; // Python's serves
  (void)made.release();
  ++count;
  isDone = true;
  return {};
}

} // namespace kiln::door
