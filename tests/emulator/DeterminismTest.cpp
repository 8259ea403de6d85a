// Results, findings and counts depend neither on the number of host threads nor on the CPU level.
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

struct Observed {
  std::vector<std::uint32_t> words;
  std::string findings;
  std::uint64_t instructions = 0;
  bool operator==(const Observed &) const = default;
};

/// A kernel with divergence, shared memory, shuffles, uninitialised reads in some blocks, and atomics given by
/// `atomics`.
Observed observe(unsigned threads, std::string_view level, const std::string &atomics, bool outOfBounds = false) {
  EmulatorOptions options;
  options.hostThreads = threads;
  options.cpuLevel = std::string(level);
  Emulator gpu("sm_90a", options);
  std::mt19937 random(42);
  std::vector<std::uint32_t> values(64 * 128);
  for (auto &v : values)
    v = random();
  auto &in = gpu.upload(values, "in");
  auto &out = gpu.upload(std::vector<std::uint32_t>(64 * 128, 1), "out");
  auto &cells = gpu.upload(std::vector<std::uint32_t>(8, 0), "cells");
  auto &hole = gpu.allocate(64 * 128 * 4, "hole");
  const Launched r =
      gpu.run(kernelText(".param .u64 in, .param .u64 out, .param .u64 cells, .param .u64 hole",
                         std::string(threadIndex) + R"(
    .shared .align 4 .b8 tile[512];
    ld.param.u64 %rd1, [in]; add.u64 %rd1, %rd1, %rd60; ld.global.u32 %r1, [%rd1]; mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x;
    and.b32 %r4, %r1, 15; mov.u32 %r5, 0;
  LOOP: mad.lo.u32 %r5, %r5, 1664525, %r1; sub.u32 %r4, %r4, 1; setp.ge.s32 %p1, %r4, 0; @%p1 bra LOOP;
    mov.u32 %r6, tile; shl.b32 %r7, %r2, 2; add.u32 %r6, %r6, %r7; st.shared.u32 [%r6], %r5; bar.sync 0;
    xor.b32 %r7, %r7, 508; mov.u32 %r8, tile; add.u32 %r8, %r8, %r7; ld.shared.u32 %r9, [%r8]; shfl.sync.bfly.b32 %r10, %r9, 5, 31, -1; add.u32 %r10, %r10, %r5;
    and.b32 %r11, %r3, 7; setp.ne.u32 %p2, %r11, 5; ld.param.u64 %rd2, [hole]; add.u64 %rd2, %rd2, %rd60; @!%p2 ld.global.u32 %r12, [%rd2];
    ld.param.u64 %rd3, [cells]; )" +
                             atomics +
                             (outOfBounds ? "setp.ge.u32 %p3, %r3, 37; @%p3 ld.global.u32 %r13, [%rd3+32];" : "") + R"(
    cvt.rn.f32.u32 %f1, %r10; ex2.approx.f32 %f2, %f1; sin.approx.f32 %f3, %f1; fma.rn.f32 %f4, %f1, %f3, %f2; mov.b32 %r14, %f4; xor.b32 %r10, %r10, %r14;
    ld.param.u64 %rd4, [out]; add.u64 %rd4, %rd4, %rd60; st.global.u32 [%rd4], %r10;)"),
              {64}, {128}, {in, out, cells, hole});
  Observed o;
  if (!outOfBounds)
    o.words = gpu.download<std::uint32_t>(out);
  const auto counters = gpu.download<std::uint32_t>(cells);
  if (!outOfBounds)
    o.words.insert(o.words.end(), counters.begin(), counters.end());
  o.findings = r.text();
  o.instructions = outOfBounds ? 0 : r.statistics.warpInstructions;
  return o;
}

} // namespace

TEST(Determinism, HostThreads) {
  for (const std::string atomics :
       {"red.global.add.u32 [%rd3], %r10;", "atom.global.add.u32 %r13, [%rd3], 1; add.u32 %r10, %r10, %r13;",
        "mov.b32 %f9, %r60; red.global.add.f32 [%rd3+4], %f9;"}) {
    const Observed one = observe(1, "", atomics);
    EXPECT_NE(one.findings.find("uninit.global"), std::string::npos) << one.findings;
    for (unsigned threads : {2u, 4u})
      EXPECT_EQ(observe(threads, "", atomics), one)
          << atomics << observe(threads, "", atomics).findings << one.findings;
  }
}

TEST(Determinism, FatalFindings) {
  const Observed one = observe(1, "", "", true);
  EXPECT_NE(one.findings.find("oob.global"), std::string::npos) << one.findings;
  EXPECT_NE(one.findings.find("block 37"), std::string::npos) << one.findings;
  for (int repeat = 0; repeat < 3; ++repeat)
    for (unsigned threads : {2u, 4u})
      EXPECT_EQ(observe(threads, "", "", true), one) << observe(threads, "", "", true).findings << one.findings;
}

TEST(Determinism, CpuLevels) {
  const Observed best = observe(1, "", "");
  for (const std::string &level : usableLevels())
    EXPECT_EQ(observe(2, level, ""), best) << level;
}

TEST(Determinism, UnwrittenRegistersHoldPoisonInEveryBlock) {
  EmulatorOptions options;
  options.hostThreads = 2;
  Emulator gpu("sm_90a", options);
  auto &out = gpu.upload(std::vector<std::uint32_t>(32 * 32, 0), "out");
  const Launched r = gpu.run(
      kernelText(".param .u64 out",
                 std::string(threadIndex) +
                     R"(ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, %rd60; st.global.u32 [%rd1], %r1; mov.u32 %r1, 5;
    st.shared.u32 [%r2], %r1;)"),
      {32}, {32}, {out});
  for (std::uint32_t v : gpu.download<std::uint32_t>(out))
    EXPECT_TRUE(v == 0xDEADBEEF || v == 0);
  EXPECT_EQ(r.ids(), "misaligned"); // the poison is no address
}
