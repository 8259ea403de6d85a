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
  const std::string asked = argc > 1 ? argv[1] : "";
  if (argc > 2 || asked.starts_with("-")) {
    std::printf("usage: kiln-bench-door [OPERATION]\n\nHost time of a call of every operation, or of one.\n");
    return argc == 2 && (asked == "--help" || asked == "-h") ? 0 : 2;
  }
  const auto fail = [](std::string_view name, const Status &s) {
    std::fprintf(stderr, "kiln-bench-door: %s: %s\n", std::string(name).c_str(), s.toString().c_str());
    return s.exitCode();
  };
  if (const auto known = kernels::findFamily(asked); !asked.empty() && !known.ok())
    return fail(asked, known.status());
  for (const kernels::Family &family : kernels::families())
    if (asked.empty() || family.name() == asked)
      if (const Status s = measure(std::string(family.name())); !s.ok())
        return fail(family.name(), s);
  return 0;
}
