// What the race checks hold, and that they do not forget to save memory: tables are swept while a kernel runs.
#include "runtime/device/emulator/EmulatorDevice.h"
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

/// 400 rounds of 128 threads on a ring of three stages of 16 KiB; one copy is always in flight, so that no barrier ends
/// everything.  `barrier` stands after the wait, with %r8 the round.
Launched runRing(Emulator &gpu, const std::string &barrier) {
  auto &in = gpu.upload(std::vector<std::uint32_t>(4096, 1), "in");
  std::string copy;
  for (unsigned i = 0; i < 8; ++i)
    copy += "cp.async.cg.shared.global [%r11+" + std::to_string(i * 2048) + "], [%rd1+" + std::to_string(i * 2048) +
            "], 16;\n";
  std::string use;
  for (unsigned i = 0; i < 8; ++i)
    use += "ld.shared.u32 %r20, [%r12+" + std::to_string(i * 2048) + "]; add.u32 %r21, %r20, %r21;\n";
  return gpu.run(kernelText(".param .u64 in", R"(
    .shared .align 16 .b8 ring[49152]; mov.u32 %r2, %tid.x; mov.u32 %r4, ring; mad.lo.u32 %r6, %r2, 16, %r4; xor.b32 %r7, %r2, 64; mad.lo.u32 %r7, %r7, 16, %r4;
    ld.param.u64 %rd1, [in]; mul.wide.u32 %rd3, %r2, 16; add.u64 %rd1, %rd1, %rd3; mov.u32 %r21, 0;
    mov.u32 %r11, %r6; )" + copy + "cp.async.commit_group; add.u32 %r11, %r6, 16384;" +
                                                  copy +
                                                  R"(cp.async.commit_group;
    mov.u32 %r8, 0; mov.u32 %r9, 0; mov.u32 %r10, 32768;
  LOOP: cp.async.wait_group 1; )" + barrier + R"(
    add.u32 %r11, %r6, %r10; )" + copy + R"( cp.async.commit_group; add.u32 %r12, %r7, %r9;
    .loc 1 30 1
    )" + use + R"(
    mov.u32 %r10, %r9; add.u32 %r9, %r9, 16384; setp.eq.u32 %p2, %r9, 49152; selp.b32 %r9, 0, %r9, %p2;
    add.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 400; @%p3 bra LOOP; cp.async.wait_all;)"),
                 {1}, {128}, {in});
}

} // namespace

TEST(RaceMemory, EightTimesSharedMemoryAtMost) {
  constexpr double shared = 49152;
  Emulator gpu;
  const Launched good = runRing(gpu, "bar.sync 0;");
  ASSERT_TRUE(good.clean()) << good.text();
  // With one bit a byte that says whether it was written.
  const double held = static_cast<double>(raceMemory(gpu.device()).shared) + shared / 8;
  RecordProperty("times", std::to_string(held / shared));
  EXPECT_LE(held, 8 * shared) << held / shared;
  EXPECT_GE(held, 3 * shared);
  // What was swept away was no longer needed: a barrier left out late is found.
  const Launched bad = runRing(gpu, "setp.eq.u32 %p1, %r8, 350; @!%p1 bar.sync 0;");
  EXPECT_TRUE(bad.has("race.shared")) << bad.text();
}

TEST(RaceMemory, ThreeTimesGlobalMemoryAtMost) {
  // Every warp reads and writes its words over and over; each time is an access of its own, because of the barriers.
  constexpr unsigned blocks = 64, threads = 512, words = 8;
  constexpr double used = blocks * threads * words * 4;
  auto text = [](const std::string &last) {
    std::string touch;
    for (unsigned i = 0; i < words; ++i)
      touch += "ld.global.u32 %r20, [%rd1+" + std::to_string(i * blocks * threads * 4) +
               "]; add.u32 %r20, %r20, 1; st.global.u32 [%rd1+" + std::to_string(i * blocks * threads * 4) +
               "], %r20;\n";
    return kernelText(".param .u64 cells", std::string(threadIndex) + R"(
    ld.param.u64 %rd1, [cells]; add.u64 %rd1, %rd1, %rd60; mov.u32 %r8, 0;
  LOOP: )" + touch + R"( bar.sync 0; add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 60; @%p1 bra LOOP;
  )" + last);
  };
  EmulatorOptions options;
  options.hostThreads = 1;
  Emulator gpu("sm_90a", options);
  auto &cells = gpu.upload(std::vector<std::uint32_t>(blocks * threads * words, 1), "cells");
  const Launched good = gpu.run(text(""), {blocks}, {threads}, {cells});
  ASSERT_TRUE(good.clean()) << good.text();
  // A number for every word, a bit for every byte, and what the numbers mean.
  const double held = used + used / 8 + static_cast<double>(raceMemory(gpu.device()).global);
  RecordProperty("times", std::to_string(held / used));
  EXPECT_LE(held, 3 * used) << held / used;
  const Launched bad =
      gpu.run(text("mov.u32 %r9, %ctaid.x; setp.eq.u32 %p2, %r9, 63; @%p2 ld.global.u32 %r20, [%rd1+-2048];"), {blocks},
              {threads}, {cells});
  EXPECT_EQ(bad.ids(), "race.global") << bad.text();
}
