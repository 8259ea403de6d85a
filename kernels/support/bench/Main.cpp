// kiln-bench-calls: host time of a call of every operation, checks and plan included, over bare launches of its
// kernels, on a device that does nothing.
#include "kernels/support/bench/HostCalls.h"
#include "runtime/jit/bench/Nanoseconds.h"

#include <cstdio>

using namespace kiln;
using namespace kiln::kernels;

namespace {

constexpr unsigned batch = 100, batches = 500;

Status measure(const Family &family) {
  KILN_ASSIGN(JitOptions options, JitOptions::fromEnvironment());
  KILN_ASSIGN(const std::unique_ptr<HostCall> call, HostCall::create(family, std::move(options)));
  KILN_TRY(call->run());
  bool failed = false;
  const double called = nanoseconds(batches, batch, [&] { failed |= !call->run().ok(); });
  // The same launches bare: packed arguments to a kernel that is loaded.
  const std::vector<std::byte> packed(LaunchArguments::maxBytes);
  NullKernel bare("bare");
  const double launched = nanoseconds(batches, batch, [&] {
    for (std::size_t i = 0; i < call->launches; ++i)
      failed |= !bare.launch({}, packed).ok();
  });
  if (failed)
    return Status(StatusCode::Internal, "a launch failed");
  std::printf("%-28s %zu launches  call %8.1f ns   over bare %8.1f ns\n", call->name.c_str(), call->launches, called,
              called - launched);
  return {};
}

} // namespace

int main() {
  for (const Family &family : families())
    if (const Status s = measure(family); !s.ok()) {
      std::fprintf(stderr, "kiln-bench-calls: %s: %s\n", std::string(family.name()).c_str(), s.toString().c_str());
      return s.exitCode();
    }
  return 0;
}
