// kiln-bench-door: host time of a call of every operation through the door, and of the operation's own part of it, on a
// device that does nothing.
#include "runtime/door/bench/NullCall.h"
#include "runtime/jit/bench/Nanoseconds.h"

#include <cstdio>

using namespace kiln;
using namespace kiln::door;

namespace {

constexpr unsigned batch = 100, batches = 200;

Status measure(const std::string &name) {
  KILN_ASSIGN(JitOptions options, JitOptions::fromEnvironment());
  NullCall call;
  KILN_TRY(call.make(name, std::move(options)));
  KILN_TRY(call.direct());
  if (const Failure f = call.throughDoor(); !f.kind.empty())
    return Status(StatusCode::Internal, f.message, f.remedy);
  bool isRight = true;
  const double own = nanoseconds(batches, batch, [&] { isRight &= call.direct().ok(); });
  const double all = nanoseconds(batches, batch, [&] { isRight &= call.throughDoor().kind.empty(); });
  if (!isRight)
    return Status(StatusCode::Internal, "a launch failed");
  std::printf("%-28s through the door %8.1f ns   of it the operation %8.1f ns\n", name.c_str(), all, own);
  return {};
}

} // namespace

int main(int argc, char **argv) {
  for (const kernels::Family &family : kernels::families()) {
    if (argc > 1 && family.name() != argv[1])
      continue;
    if (const Status s = measure(std::string(family.name())); !s.ok()) {
      std::fprintf(stderr, "kiln-bench-door: %s: %s\n", std::string(family.name()).c_str(), s.toString().c_str());
      return s.exitCode();
    }
  }
  return 0;
}
