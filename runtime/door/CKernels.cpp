// kiln_kernel_*: text kernels for C.  A handle is a number that is given once, never an address: one that was closed,
// or made up, is known as such.
#include "runtime/door/CStatus.h"
#include "runtime/door/DoorKernel.h"

#include <mutex>

namespace kiln::door {
namespace {

class Handles {
public:
  kiln_kernel *add(OpenKernel *kernel) {
    const std::lock_guard lock(mutex);
    open[++last] = kernel;
    return reinterpret_cast<kiln_kernel *>(last);
  }
  /// nullptr: it is none.
  OpenKernel *of(kiln_kernel *handle) {
    const std::lock_guard lock(mutex);
    const auto found = open.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == open.end() ? nullptr : found->second;
  }
  bool remove(kiln_kernel *handle) {
    const std::lock_guard lock(mutex);
    return open.erase(reinterpret_cast<std::uintptr_t>(handle)) != 0;
  }

private:
  std::mutex mutex;
  std::uintptr_t last = 0;
  std::map<std::uintptr_t, OpenKernel *> open;
};

Handles &handles() {
  static Handles *const one = new Handles; // threads may call while the process ends
  return *one;
}

constexpr const char *opening = "kiln_kernel_open", *launching = "kiln_kernel_launch", *closing = "kiln_kernel_close";

Failure notOpen(const char *function) {
  return wrong(function, "argument 'kernel' is no kernel that is open",
               "give what kiln_kernel_open wrote, and close it last");
}

Failure valueOf(const kiln_value &value, std::size_t number, FfiValue &out) {
  const auto named = [&](const std::string &what, const char *remedy) {
    return wrong(launching, "argument " + std::to_string(number) + what, remedy);
  };
  out = {ffiNone, 0, {0}};
  switch (value.kind) {
  case KILN_TENSOR:
    if (!value.of.tensor)
      return named(" is a tensor and NULL", "give a tensor");
    out.type = ffiTensorPointer, out.object = value.of.tensor;
    return {};
  case KILN_WHOLE:
    out.type = ffiWhole, out.whole = value.of.whole;
    return {};
  case KILN_NUMBER:
    out.type = ffiNumber, out.number = value.of.number;
    return {};
  }
  return named(" has the kind " + std::to_string(static_cast<int>(value.kind)),
               "give KILN_TENSOR, KILN_WHOLE or KILN_NUMBER");
}

Failure launch(kiln_kernel *kernel, const std::uint32_t *grid, const kiln_value *arguments, std::size_t count,
               const kiln_options *options) {
  OpenKernel *const open = handles().of(kernel);
  if (!open)
    return notOpen(launching);
  if (!grid)
    return wrong(launching, "argument 'grid' is NULL", "give three extents");
  if (count && !arguments)
    return wrong(launching, "argument 'arguments' is NULL", "give " + std::to_string(count) + " values");
  if (count > LaunchArguments::maxBytes)
    return wrong(launching, "argument 'count' is " + std::to_string(count), "pass one for each parameter");
  Surroundings where;
  if (Failure f = surroundingsOf(launching, options, where); !f.kind.empty())
    return f;
  if (where.workspace || where.workspaceBytes)
    return wrong(launching, "its kiln_options have a workspace, which a kernel of the caller's does not use",
                 "pass memory as a tensor");
  std::vector<FfiValue> values(count);
  for (std::size_t i = 0; i < count; ++i)
    if (Failure f = valueOf(arguments[i], i, values[i]); !f.kind.empty())
      return f;
  const Status s = launchOpen(*open, {grid[0], grid[1], grid[2]}, values, where.stream);
  return s.ok() ? Failure() : failureOf(launching, s);
}

} // namespace
} // namespace kiln::door

KILN_API kiln_status kiln_kernel_open(const char *text, std::size_t size, const char *name, DLDevice device,
                                      kiln_kernel **kernel) {
  using namespace kiln::door;
  return guarded([&]() -> Failure {
    if (!kernel)
      return wrong(opening, "argument 'kernel' is NULL", "give the address of a kiln_kernel *");
    *kernel = nullptr;
    if (!text)
      return wrong(opening, "argument 'text' is NULL", "give a module of the tile dialect");
    const auto open = openText({device.device_type, device.device_id}, {text, size}, name ? name : "");
    if (!open)
      return failureOf(opening, open.status());
    *kernel = handles().add(*open);
    return {};
  });
}

KILN_API kiln_status kiln_kernel_launch(kiln_kernel *kernel, const std::uint32_t grid[3], const kiln_value *arguments,
                                        std::size_t count, const kiln_options *options) {
  using namespace kiln::door;
  return guarded([&] { return launch(kernel, grid, arguments, count, options); });
}

KILN_API kiln_status kiln_kernel_close(kiln_kernel *kernel) {
  using namespace kiln::door;
  return guarded([&] { return !kernel || handles().remove(kernel) ? Failure() : notOpen(closing); });
}
