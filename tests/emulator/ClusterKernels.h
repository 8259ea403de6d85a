//===- ClusterKernels.h - What the tests of clusters share ----------------===//
//
// A kernel body runs as `k` with one word of output a thread, under the schedule that a Setting names.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_CLUSTERKERNELS_H
#define KILN_TESTS_EMULATOR_CLUSTERKERNELS_H

#include "tests/emulator/PtxHarness.h"
#include "tests/support/TestTier.h"

#include <string>
#include <vector>

namespace kiln::test {

struct ClusterSetting {
  Schedule schedule = Schedule::InOrder;
  std::uint64_t seed = 0;
  unsigned threads = 1; ///< of the host
  std::string text() const {
    return std::string(scheduleName(schedule)) + " seed " + std::to_string(seed) + " threads " +
           std::to_string(threads);
  }
};

/// In order, and `seeds` seeds of every other schedule.
inline std::vector<ClusterSetting> clusterSettings(unsigned seeds = 20) {
  std::vector<ClusterSetting> out = {{}, {Schedule::InOrder, 0, 4}};
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    for (Schedule s : {Schedule::Random, Schedule::Adversarial})
      out.push_back({s, seed, 1});
  return out;
}

struct ClusterShape {
  Dim3 grid{2}, cluster{2}, block{64};
};

constexpr std::uint32_t notStored = 0xABABABAB;

struct ClusterOutcome {
  Launched launched;
  std::vector<std::uint32_t> values; ///< by linear block, then thread; notStored where nothing was stored
};

/// The PTX of a body.  %r2 = thread of the block, %r10 = rank, %r11 = blocks of the cluster, %r12 = linear block, %r4 =
/// address of the thread's word in `tile` (1024 words of shared memory), %r5 = 4 * %r2, `bar` = 8 bytes of shared
/// memory, %rd2 = the thread's word in `out`, %rd1 = `cells`, 64 words of global memory that hold 0.
inline std::string clusterKernel(const std::string &body, std::string_view directives = "",
                                 std::string_view target = "sm_90a") {
  return kernelText(".param .u64 out, .param .u64 cells", R"(
    .shared .align 128 .b8 tile[4096];
    .shared .align 8 .b64 bar;
    mov.u32 %r2, %tid.x; mov.u32 %r4, tile; shl.b32 %r5, %r2, 2; add.u32 %r4, %r4, %r5;
    mov.u32 %r10, %cluster_ctarank; mov.u32 %r11, %cluster_nctarank;
    mov.u32 %r12, %ctaid.z; mov.u32 %r13, %nctaid.y; mov.u32 %r14, %ctaid.y; mad.lo.u32 %r12, %r12, %r13, %r14;
    mov.u32 %r13, %nctaid.x; mov.u32 %r14, %ctaid.x; mad.lo.u32 %r12, %r12, %r13, %r14;
    mov.u32 %r13, %ntid.x; mad.lo.u32 %r13, %r12, %r13, %r2; mul.wide.u32 %rd3, %r13, 4;
    ld.param.u64 %rd2, [out]; add.u64 %rd2, %rd2, %rd3; ld.param.u64 %rd1, [cells];
)" + body,
                    target, ".file 1 \"k.cu\"\n", directives);
}

inline ClusterOutcome runCluster(const std::string &body, const ClusterShape &shape, const ClusterSetting &s = {},
                                 std::string_view directives = "", std::string_view target = "sm_90a") {
  EmulatorOptions o;
  o.schedule = s.schedule;
  o.seed = s.seed;
  o.hostThreads = s.threads;
  Emulator gpu(target, o);
  const std::size_t threads = shape.grid.count() * shape.block.count();
  auto &out = gpu.upload(std::vector<std::uint32_t>(threads, notStored), "out");
  auto &cells = gpu.upload(std::vector<std::uint32_t>(64, 0), "cells");
  ClusterOutcome outcome;
  outcome.launched =
      gpu.run(clusterKernel(body, directives, target), shape.grid, shape.block, {out, cells}, 0, {}, shape.cluster);
  outcome.values = gpu.download<std::uint32_t>(out);
  return outcome;
}

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_CLUSTERKERNELS_H
