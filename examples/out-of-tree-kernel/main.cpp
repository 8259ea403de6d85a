// silu [DEVICE]: runs the kernel on random numbers and compares each result with float64.
#include "Silu.h"

#include "kiln/Jit.h"
#include "kiln/Tensor.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

using namespace kiln;

static Result<double> run(const char *deviceName) {
  KILN_ASSIGN(std::unique_ptr<Device> device, openDevice(deviceName));
  KILN_ASSIGN(std::unique_ptr<Jit> jit, Jit::create(*device)); // settings from the environment
  const SiluConfig config;
  KILN_ASSIGN(const KernelSource source, sourceOf(silu(config)));
  KILN_ASSIGN(JitKernel * kernel, jit->kernel(source));

  const std::int64_t n = 100'003;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> x(n), out(n);
  for (float &value : x)
    value = normal(random);
  KILN_ASSIGN(std::unique_ptr<Buffer> xBuffer, device->allocate(n * sizeof(float), "x"));
  KILN_ASSIGN(std::unique_ptr<Buffer> outBuffer, device->allocate(n * sizeof(float), "out"));
  KILN_TRY(xBuffer->copyFromHost(0, std::as_bytes(std::span(x))));
  KILN_TRY(outBuffer->poison(std::byte{0xCD}));

  // The first launch compiles, or finds the kernel in the cache on disk; `prepare` does only that, and tells.
  const std::uint32_t blocks = (n + config.block - 1) / config.block;
  KILN_ASSIGN(const LoadedKernel *loaded, kernel->prepare(ArgumentPack(*xBuffer, *outBuffer, n).view()));
  std::printf("silu on %s: %s\n", device->info().name.c_str(), loaded->report().toString().c_str());
  KILN_TRY(kernel->launch({blocks}, nullptr, *xBuffer, *outBuffer, n));
  KILN_TRY(device->defaultStream().synchronize());
  KILN_TRY(outBuffer->copyToHost(0, std::as_writable_bytes(std::span(out))));

  double largest = 0;
  std::uint64_t sum = 0xcbf29ce484222325; // of all bits, to tell two results apart
  for (std::int64_t i = 0; i < n; ++i) {
    const double wanted = siluOnHost(x[i]);
    const double error = std::abs(out[i] - wanted) / std::abs(wanted);
    largest = error <= largest ? largest : error; // NaN counts
    std::uint32_t bits;
    std::memcpy(&bits, &out[i], sizeof bits);
    sum = (sum ^ bits) * 0x100000001b3;
  }
  std::printf("largest relative error %.2e, bits %016llx\n", largest, static_cast<unsigned long long>(sum));
  return largest;
}

int main(int argc, char **argv) {
  const Result<double> error = run(argc > 1 ? argv[1] : "auto");
  if (!error) {
    std::fprintf(stderr, "silu: %s\n", error.status().toString().c_str());
    return error.status().exitCode();
  }
  if (!(*error < 1e-5)) {
    std::fprintf(stderr, "silu: the results are wrong\n");
    return 1;
  }
  return 0;
}
