// kiln-jit-child CACHE COMPILER PROGRAM-FILE..: one first call of the fake kernel `add` of each file, one after the
// other, on an emulated device; the results are checked.  Prints "compiles=N disk=N compiler=mapped|absent
// milliseconds=T"; ends with 1 if anything is wrong.
#include "kiln/Jit.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

using namespace kiln;

static int fail(const Status &s) {
  std::fprintf(stderr, "kiln-jit-child: %s\n", s.toString().c_str());
  return 1;
}

static bool mapped(const std::string &name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos)
      return true;
  return false;
}

/// One first call of the kernel in a file; how long its compile or its way from the cache took.
static Result<double> firstCall(Device &device, Jit &jit, const char *file) {
  KernelSource source;
  source.name = "add";
  std::ifstream program(file);
  source.programText.assign(std::istreambuf_iterator<char>(program), {});
  source.arguments = {{"x", "ptr<f32>", Specialise::Divisibility},
                      {"y", "ptr<f32>", Specialise::Divisibility},
                      {"out", "ptr<f32>", Specialise::Divisibility},
                      {"n", "i32", Specialise::None}};
  KILN_ASSIGN(JitKernel *const kernel, jit.kernel(source));
  constexpr int n = 1000;
  std::vector<float> x(n), y(n), out(n);
  for (int i = 0; i < n; ++i)
    x[i] = 0.25f * static_cast<float>(i), y[i] = 3 - static_cast<float>(i);
  KILN_ASSIGN(const auto bx, device.allocate(4 * n));
  KILN_ASSIGN(const auto by, device.allocate(4 * n));
  KILN_ASSIGN(const auto bo, device.allocate(4 * n));
  KILN_TRY(bx->copyFromHost(0, std::as_bytes(std::span(x))));
  KILN_TRY(by->copyFromHost(0, std::as_bytes(std::span(y))));
  KILN_TRY(kernel->launch({(n + 127) / 128}, nullptr, *bx, *by, *bo, n));
  KILN_TRY(bo->copyToHost(0, std::as_writable_bytes(std::span(out))));
  for (int i = 0; i < n; ++i)
    if (out[i] != x[i] + y[i])
      return Status(StatusCode::Internal, "element " + std::to_string(i) + " is wrong");
  LaunchArguments arguments;
  arguments.add(*bx).add(*by).add(*bo).add(n);
  KILN_ASSIGN(const auto loaded, kernel->prepare(arguments.view()));
  return loaded->report().milliseconds;
}

int main(int argc, char **argv) {
  if (argc < 4)
    return 1;
  auto device = openDevice("emulator:sm_80");
  if (!device)
    return fail(device.status());
  JitOptions options;
  options.knobs.cacheDir = argv[1];
  options.knobs.compiler = argv[2];
  auto jit = Jit::create(**device, options);
  if (!jit)
    return fail(jit.status());
  double milliseconds = 0;
  for (int i = 3; i < argc; ++i) {
    const Result<double> took = firstCall(**device, **jit, argv[i]);
    if (!took)
      return fail(took.status());
    milliseconds += *took;
  }
  const JitCounters counters = (*jit)->counters();
  const std::string compiler(argv[2]);
  std::printf("compiles=%llu disk=%llu compiler=%s llvm=%s milliseconds=%.3f\n",
              static_cast<unsigned long long>(counters.compiles), static_cast<unsigned long long>(counters.diskHits),
              mapped(compiler.substr(compiler.rfind('/') + 1)) ? "mapped" : "absent",
              mapped("libLLVM") || mapped("libMLIR") ? "mapped" : "absent", milliseconds);
  return 0;
}
