// The picture of one block's time: what its cells, waits and asynchronous works say.
#include "PtxHarness.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace kiln;
using namespace kiln::test;

namespace {

struct Drawn {
  Launched launched;
  Timeline timeline;
};

Drawn draw(Emulator &gpu, const std::string &text, Dim3 grid, Dim3 block, const std::vector<Argument> &arguments,
           Dim3 index = {0, 0, 0}) {
  EXPECT_TRUE(gpu.device().record({.counters = true, .timeline = true, .timelineBlock = index}).ok());
  Drawn out;
  out.launched = gpu.run(text, grid, block, arguments);
  const std::vector<Timeline> all = gpu.device().takeTimelines();
  EXPECT_EQ(all.size(), 1u) << out.launched.text();
  if (!all.empty())
    out.timeline = all[0];
  return out;
}

std::uint64_t instructionsOf(const Timeline &t, unsigned warp) {
  std::uint64_t sum = 0;
  for (const TimelineCell &c : t.warps[warp])
    for (const std::uint32_t n : c.instructions)
      sum += n;
  return sum;
}
std::uint64_t waitingOf(const Timeline &t, unsigned warp, WaitKind kind) {
  std::uint64_t sum = 0;
  for (const TimelineCell &c : t.warps[warp])
    if (c.waiting && t.waits.at(c.wait).kind == kind)
      sum += c.waiting;
  return sum;
}

/// Warp 1 adds `n` times while warp 0 waits at the barrier.
std::string unequalWarps(unsigned n) {
  return kernelText("", "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; mov.u32 %r2, 0; @%p1 bra meet;\n"
                        "again: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, " +
                            std::to_string(n) + "; @%p2 bra again;\nmeet: bar.sync 3;");
}

} // namespace

TEST(Timeline, CellsHoldEveryInstructionOfTheBlock) {
  Emulator gpu("sm_90a");
  auto &out = gpu.allocate(4 * 64 * 3, "out");
  const std::string text =
      kernelText(".param .u64 out", std::string(threadIndex) + "ld.param.u64 %rd1, [out]; add.u64 %rd2, %rd1, %rd60;"
                                                               "st.global.u32 [%rd2], %r60;");
  const Drawn d = draw(gpu, text, {3}, {64}, {out}, {2, 0, 0});
  EXPECT_TRUE(d.launched.clean()) << d.launched.text();
  const Timeline &t = d.timeline;
  const LaunchCounters c = gpu.device().takeCounters().at(0);
  ASSERT_EQ(t.warps.size(), 2u);
  EXPECT_EQ(t.index[0], 2u);
  EXPECT_EQ(instructionsOf(t, 0) * 6, c.total.instructions);
  EXPECT_EQ(t.ticks, instructionsOf(t, 0)) << "the warps run in step";
  EXPECT_TRUE(t.left[0] && t.left[1]);
  EXPECT_EQ(t.ends[1], t.ticks);
  for (const TimelineCell &cell : t.warps[1])
    EXPECT_LT(cell.firstPlace, t.places.size());
}

TEST(Timeline, AWaitLastsUntilTheOtherWarpHasCome) {
  Emulator gpu("sm_90a");
  const Drawn d = draw(gpu, unequalWarps(20), {1}, {64}, {});
  EXPECT_TRUE(d.launched.clean()) << d.launched.text();
  const Timeline &t = d.timeline;
  EXPECT_EQ(waitingOf(t, 0, WaitKind::Barrier), instructionsOf(t, 1) - instructionsOf(t, 0));
  EXPECT_EQ(waitingOf(t, 1, WaitKind::Barrier), 0u);
  ASSERT_EQ(t.waits.size(), 1u);
  EXPECT_TRUE(t.waits[0].what.starts_with("barrier 3 at ptx line")) << t.waits[0].what;
}

TEST(Timeline, LongRunsHaveCoarserCells) {
  Emulator gpu("sm_90a");
  const Drawn d = draw(gpu, unequalWarps(100000), {1}, {64}, {});
  const Timeline &t = d.timeline;
  EXPECT_GT(t.ticksPerCell, 1u);
  EXPECT_LE(t.warps[1].size(), 2048u);
  EXPECT_GE(t.warps[1].size(), 512u);
  EXPECT_EQ(instructionsOf(t, 0) + instructionsOf(t, 1), gpu.device().takeCounters().at(0).total.instructions);
  EXPECT_EQ(waitingOf(t, 0, WaitKind::Barrier), instructionsOf(t, 1) - instructionsOf(t, 0));
}

TEST(Timeline, CopiesFlyUntilTheirGroupIsWaitedFor) {
  const std::string text = kernelText(".param .u64 x", R"(
    .shared .align 16 .b8 tile[2048];
    ld.param.u64 %rd1, [x]; mov.u32 %r1, tile; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r2, 16, %r1;
    mul.wide.u32 %rd2, %r2, 16; add.u64 %rd3, %rd1, %rd2;
    cp.async.cg.shared.global [%r3], [%rd3], 16;
    cp.async.cg.shared.global [%r3+512], [%rd3+512], 16;
    cp.async.commit_group;
    cp.async.ca.shared.global [%r3+1024], [%rd3], 8;
    cp.async.commit_group;
    add.u32 %r4, %r1, 1;
    cp.async.wait_group 1;
    add.u32 %r4, %r1, 2; add.u32 %r4, %r1, 3;
    cp.async.wait_group 0;)");
  for (Schedule schedule : {Schedule::InOrder, Schedule::Random, Schedule::Adversarial}) {
    EmulatorOptions options;
    options.schedule = schedule;
    options.seed = 4;
    Emulator gpu("sm_90a", options);
    auto &x = gpu.upload(std::vector<std::uint32_t>(1024), "x");
    const Drawn d = draw(gpu, text, {1}, {32}, {x});
    EXPECT_TRUE(d.launched.clean()) << d.launched.text();
    const Timeline &t = d.timeline;
    ASSERT_EQ(t.works.size(), 2u) << scheduleName(schedule);
    EXPECT_EQ(t.works[0].works, 2u);
    EXPECT_EQ(t.works[0].bytes, 1024u);
    EXPECT_EQ(t.works[1].bytes, 256u);
    EXPECT_EQ(t.works[0].opcode, "cp.async.cg.shared.global");
    for (const TimelineWork &w : t.works) {
      EXPECT_LE(w.issued, w.delivered);
      EXPECT_LE(w.delivered, w.observed);
      EXPECT_NE(w.observed, TimelineWork::never);
    }
    EXPECT_EQ(t.works[0].observed + 3, t.works[1].observed) << "two additions and a wait between";
  }
}

TEST(Timeline, CopiesFlyUntilTheirMbarrierIsWaitedFor) {
  Emulator gpu("sm_90a");
  auto &x = gpu.upload(std::vector<std::uint32_t>(1024), "x");
  const std::string text = kernelText(".param .u64 x", R"(
    .shared .align 16 .b8 tile[512]; .shared .align 8 .b64 full;
    ld.param.u64 %rd1, [x]; mov.u32 %r1, tile; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r2, 16, %r1;
    mul.wide.u32 %rd2, %r2, 16; add.u64 %rd3, %rd1, %rd2; mov.u32 %r5, full;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 mbarrier.init.shared.b64 [%r5], 32;
    bar.sync 0;
    cp.async.cg.shared.global [%r3], [%rd3], 16;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r5];
    add.u32 %r4, %r1, 2; add.u32 %r4, %r1, 3;
  again: mbarrier.test_wait.parity.shared.b64 %p2, [%r5], 0;
    @!%p2 bra again;)",
                                      "sm_80");
  const Drawn d = draw(gpu, text, {1}, {32}, {x});
  EXPECT_TRUE(d.launched.clean()) << d.launched.text();
  const auto arrival = std::find_if(d.timeline.works.begin(), d.timeline.works.end(),
                                    [](const TimelineWork &w) { return w.opcode.find("arrive") != std::string::npos; });
  ASSERT_NE(arrival, d.timeline.works.end());
  EXPECT_EQ(arrival->observed, arrival->issued + 3);
}

TEST(Timeline, ADeadlockShowsWhoWaits) {
  Emulator gpu("sm_90a");
  const std::string text = kernelText("", "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra other;\n"
                                          "bar.sync 1, 64; ret;\nother: bar.sync 2, 64;");
  const Drawn d = draw(gpu, text, {1}, {64}, {});
  EXPECT_TRUE(d.launched.has("deadlock"));
  for (unsigned w : {0u, 1u}) {
    EXPECT_GT(waitingOf(d.timeline, w, WaitKind::Barrier), 0u);
    EXPECT_FALSE(d.timeline.left[w]);
    EXPECT_EQ(d.timeline.ends[w], d.timeline.ticks);
  }
}

TEST(Timeline, DrawingChangesNoResult) {
  const std::string text = kernelText(".param .u64 out", std::string(threadIndex) + R"(
      .shared .align 16 .b8 tile[512];
      ld.param.u64 %rd1, [out]; add.u64 %rd2, %rd1, %rd60;
      mov.u32 %r1, tile; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r2, 4, %r1;
      st.shared.u32 [%r3], %r60; bar.sync 0; xor.b32 %r4, %r3, 252; ld.shared.u32 %r5, [%r4];
      st.global.u32 [%rd2], %r5;)");
  std::vector<std::uint32_t> plain;
  LaunchCounters counted;
  for (const bool drawn : {false, true}) {
    Emulator gpu("sm_90a");
    auto &out = gpu.allocate(4 * 128 * 4, "out");
    ASSERT_TRUE(gpu.device().record({.counters = true, .timeline = drawn, .timelineBlock = {1, 0, 0}}).ok());
    EXPECT_TRUE(gpu.run(text, {4}, {128}, {out}).clean());
    const auto values = gpu.download<std::uint32_t>(out);
    const LaunchCounters c = gpu.device().takeCounters().at(0);
    if (drawn) {
      EXPECT_EQ(values, plain);
      EXPECT_TRUE(c == counted);
    }
    plain = values;
    counted = c;
  }
}

TEST(Timeline, ABlockOutsideTheGridIsRefused) {
  Emulator gpu("sm_90a");
  ASSERT_TRUE(gpu.device().record({.timeline = true, .timelineBlock = {3, 0, 0}}).ok());
  const Launched r = gpu.run(kernelText("", ""), {3}, {32}, {});
  EXPECT_NE(r.status.message().find("block 3,0,0 is to be drawn, the grid is 3,1,1"), std::string::npos) << r.text();
}
