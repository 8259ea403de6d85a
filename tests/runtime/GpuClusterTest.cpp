// Clusters of the GPU against the models that the emulator is tested with; skipped without a GPU of sm_90 or newer.
#include "tests/emulator/ClusterPrograms.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

/// What is wrong; empty: nothing.
std::string runOn(Device &device, const ClusterProgram &p) {
  const std::vector<std::uint32_t> before(p.expected.size(), notStored), zeros(64, 0);
  std::vector<std::uint32_t> after(p.expected.size());
  auto run = [&]() -> Status {
    KILN_ASSIGN(const auto out, device.allocate(before.size() * 4, "out"));
    KILN_ASSIGN(const auto cells, device.allocate(zeros.size() * 4, "cells"));
    KILN_TRY(out->copyFromHost(0, std::as_bytes(std::span(before))));
    KILN_TRY(cells->copyFromHost(0, std::as_bytes(std::span(zeros))));
    KILN_ASSIGN(const auto module, device.loadPtx(clusterKernel(p.body, p.directives, device.info().target->name)));
    KILN_ASSIGN(Kernel *const kernel, module->kernel("k"));
    LaunchConfig config;
    config.grid = p.shape.grid;
    config.block = p.shape.block;
    config.cluster = p.shape.cluster;
    const DeviceAddress arguments[] = {out->address(), cells->address()};
    KILN_TRY(kernel->launch(config, std::as_bytes(std::span(arguments))));
    KILN_TRY(device.defaultStream().synchronize());
    return out->copyToHost(0, std::as_writable_bytes(std::span(after)));
  };
  if (const Status s = run(); !s.ok())
    return p.name + ": " + s.toString();
  for (std::size_t i = 0; i < after.size(); ++i)
    if (after[i] != p.expected[i])
      return p.name + ": thread " + std::to_string(i) + " stored " + std::to_string(after[i]) + ", not " +
             std::to_string(p.expected[i]);
  return {};
}

} // namespace

TEST(GpuCluster, ProgramsDoWhatTheModelsSay) {
  auto device = openDevice("cuda:0");
  if (!device)
    GTEST_SKIP() << device.status().toString();
  if ((*device)->info().sm < 90 || !(*device)->info().target)
    GTEST_SKIP() << (*device)->info().name << " has no clusters";
  std::vector<ClusterProgram> programs = memoryPrograms();
  for (ClusterProgram &p : asyncPrograms())
    programs.push_back(std::move(p));
  std::mt19937 random(11);
  for (unsigned i = 0; i < pick(30u, 300u); ++i)
    programs.push_back(programOf(randomPhases(random)));
  unsigned failures = 0;
  for (const ClusterProgram &p : programs)
    if (const std::string why = runOn(**device, p); !why.empty()) {
      ADD_FAILURE() << why;
      if (++failures == 10 || why.find("CUDA_ERROR") != std::string::npos) // the device may be of no more use
        break;
    }
}
