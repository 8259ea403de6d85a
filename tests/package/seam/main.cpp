// Launches a recorded kernel and an operation of the library; prints where their code came from, then /proc/self/maps.
#include "Silu.h"

#include "kernels/softmax/SoftmaxOperation.h"
#include "kiln/Jit.h"

#include <cstdio>
#include <fstream>
#include <iostream>

using namespace kiln;

static Status launch() {
  KILN_ASSIGN(std::unique_ptr<Device> device, openDevice("emulator:sm_80"));
  KILN_ASSIGN(std::unique_ptr<Jit> jit, Jit::create(*device));
  KILN_ASSIGN(std::unique_ptr<Buffer> x, device->allocate(4096, "x"));
  KILN_ASSIGN(std::unique_ptr<Buffer> out, device->allocate(4096, "out"));
  KILN_TRY(x->fill(std::byte{0}));
  KILN_ASSIGN(const KernelSource source, sourceOf(silu()));
  KILN_ASSIGN(JitKernel * kernel, jit->kernel(source));
  KILN_TRY(kernel->launch({1}, nullptr, *x, *out, std::int64_t(1024)));
  KILN_ASSIGN(const Tensor from, Tensor::dense(*device, *x, DType::F32, {4, 256}));
  KILN_ASSIGN(const Tensor to, Tensor::dense(*device, *out, DType::F32, {4, 256}));
  kernels::SoftmaxOperation softmax(*jit);
  KILN_TRY(softmax.run({from, to}));
  KILN_TRY(device->defaultStream().synchronize());
  const JitCounters c = jit->counters();
  std::printf("compiled %llu, from disk %llu\n", static_cast<unsigned long long>(c.compiles),
              static_cast<unsigned long long>(c.diskHits));
  return {};
}

int main() {
  const Status status = launch();
  std::fflush(stdout);
  if (!status.ok()) {
    std::cerr << status.toString() << "\n";
    return status.exitCode();
  }
  std::cout << std::ifstream("/proc/self/maps").rdbuf();
}
