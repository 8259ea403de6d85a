// Block barriers and what can go wrong with them.  S numbers are the seeded bugs of the emulator specification, each
// with its correct twin.
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

struct Outcome {
  Launched launched;
  std::vector<std::uint32_t> values;
};

/// Runs one block; `body` leaves a result in %r1.  %r2 = thread, %r3 = warp, `cells` is shared memory of 1024 words and
/// %r4 the thread's own cell.
Outcome block(const std::string &body, unsigned threads, const std::string &target = "sm_90a") {
  Emulator gpu(target);
  auto &out = gpu.upload(std::vector<std::uint32_t>(threads, 0xABABABAB), "out");
  Outcome o;
  o.launched = gpu.run(kernelText(".param .u64 out", std::string(threadIndex) + R"(
    .shared .align 4 .u32 cells[1024]; mov.u32 %r2, %tid.x; shr.u32 %r3, %r2, 5; mov.u32 %r4, cells; shl.b32 %r5, %r2, 2; add.u32 %r4, %r4, %r5;
    mov.u32 %r1, 0;)" + body + R"(
    ld.param.u64 %rd63, [out]; add.s64 %rd63, %rd63, %rd60; st.global.u32 [%rd63], %r1;)",
                                  target),
                       {1}, {threads}, {out});
  o.values = gpu.download<std::uint32_t>(out);
  return o;
}

std::string ids(const std::string &body, unsigned threads) {
  return block(body, threads).launched.ids();
}

#define EXPECT_CLEAN(o) EXPECT_TRUE((o).launched.clean()) << (o).launched.text()

} // namespace

TEST(Barriers, ExchangeThroughSharedMemory) {
  const Outcome o = block(R"(
    mul.lo.u32 %r6, %r2, 3; st.shared.u32 [%r4], %r6; bar.sync 0;
    mov.u32 %r7, %ntid.x; sub.u32 %r7, %r7, %r2; sub.u32 %r7, %r7, 1; shl.b32 %r7, %r7, 2; mov.u32 %r8, cells; add.u32 %r8, %r8, %r7; ld.shared.u32 %r1, [%r8];)",
                          1024);
  EXPECT_CLEAN(o);
  for (unsigned i = 0; i < 1024; ++i)
    EXPECT_EQ(o.values[i], (1023 - i) * 3);
}

TEST(Barriers, ManyGenerations) {
  const Outcome o = block(R"(
    st.shared.u32 [%r4], %r2; mov.u32 %r6, 0;
  LOOP: bar.sync 0; ld.shared.u32 %r7, [cells+4]; bar.sync 0; setp.eq.u32 %p1, %r2, 1; add.u32 %r8, %r7, 1; @%p1 st.shared.u32 [%r4], %r8;
    add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 100; @%p2 bra LOOP;
    bar.sync 0; ld.shared.u32 %r1, [cells+4];)",
                          96);
  EXPECT_CLEAN(o);
  for (std::uint32_t v : o.values)
    EXPECT_EQ(v, 101u);
}

TEST(Barriers, Reductions) {
  const Outcome o = block(R"(
    and.b32 %r6, %r2, 3; setp.eq.u32 %p1, %r6, 0; bar.red.popc.u32 %r7, 0, %p1; bar.red.popc.u32 %r8, 0, !%p1;
    setp.lt.u32 %p2, %r2, 1000; bar.red.and.pred %p3, 0, %p2; bar.red.or.pred %p4, 0, %p1; bar.red.or.pred %p5, 0, !%p2;
    selp.u32 %r9, 100000, 0, %p3; selp.u32 %r10, 200000, 0, %p4; selp.u32 %r11, 400000, 0, %p5;
    mad.lo.u32 %r1, %r8, 100, %r7; add.u32 %r1, %r1, %r9; add.u32 %r1, %r1, %r10; add.u32 %r1, %r1, %r11;)",
                          128);
  EXPECT_CLEAN(o);
  for (std::uint32_t v : o.values)
    EXPECT_EQ(v, 32u + 96 * 100 + 300000);
}

TEST(Barriers, ProducerArrivesConsumerSyncs) {
  const Outcome o = block(R"(
    setp.ge.u32 %p1, %r3, 2; @%p1 bra CONSUMER;
    add.u32 %r6, %r2, 500; st.shared.u32 [%r4], %r6; bar.arrive 3, 128; bra DONE;
  CONSUMER: bar.sync 3, 128; add.u32 %r7, %r4, -256; ld.shared.u32 %r1, [%r7];
  DONE: )",
                          128);
  EXPECT_CLEAN(o);
  for (unsigned i = 64; i < 128; ++i)
    EXPECT_EQ(o.values[i], i - 64 + 500);
}

TEST(Barriers, IdFromARegisterAndHalvesOfTheBlock) {
  const Outcome o = block(R"(
    shr.u32 %r6, %r3, 1; add.u32 %r6, %r6, 4; st.shared.u32 [%r4], %r2; bar.sync %r6, 64; xor.b32 %r7, %r5, 128; mov.u32 %r8, cells; add.u32 %r8, %r8, %r7; ld.shared.u32 %r1, [%r8];)",
                          128);
  EXPECT_CLEAN(o);
  for (unsigned i = 0; i < 128; ++i)
    EXPECT_EQ(o.values[i], i ^ 32);
}

TEST(Barriers, UnalignedFormMayBeReachedByPartsOfAWarp) {
  const Outcome o = block(R"(
    st.shared.u32 [%r4], %r2; and.b32 %r6, %r2, 1; setp.eq.u32 %p1, %r6, 0; @%p1 bra EVEN;
    barrier.sync 0; bra JOIN;
  EVEN: barrier.sync 0;
  JOIN: xor.b32 %r7, %r5, 252; mov.u32 %r8, cells; add.u32 %r8, %r8, %r7; ld.shared.u32 %r1, [%r8];)",
                          64);
  EXPECT_CLEAN(o);
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(o.values[i], i ^ 63);
}

TEST(Barriers, WarpsThatExitAreNotWaitedFor) {
  const Outcome o = block("setp.eq.u32 %p1, %r3, 1; @%p1 exit; bar.sync 0; mov.u32 %r1, 5;", 96);
  EXPECT_CLEAN(o);
  EXPECT_EQ(o.values[0], 5u);
  EXPECT_EQ(o.values[32], 0xABABABABu);
  EXPECT_EQ(o.values[64], 5u);
}

TEST(Barriers, EarlyReturnOfLanesBeforeABarrierIsAccepted) {
  const Outcome o =
      block("setp.ge.u32 %p1, %r2, 50; @%p1 bra OUT; bar.sync 0; mov.u32 %r1, 5; bra GO;\nOUT: ret;\nGO: ", 64);
  EXPECT_CLEAN(o);
  EXPECT_EQ(o.values[49], 5u);
}

TEST(Barriers, ClusterOfOne) {
  const Outcome o = block(R"(
    st.shared.u32 [%r4], %r2; barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; xor.b32 %r7, %r5, 252; mov.u32 %r8, cells; add.u32 %r8, %r8, %r7;
    mapa.shared::cluster.u32 %r8, %r8, 0; ld.shared::cluster.u32 %r1, [%r8]; mov.u32 %r9, %cluster_ctarank; mov.u32 %r10, %cluster_nctarank; add.u32 %r1, %r1, %r9; add.u32 %r1, %r1, %r10;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)",
                          64);
  EXPECT_CLEAN(o);
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(o.values[i], (i ^ 63) + 1);
  EXPECT_EQ(ids("barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", 32),
            "barrier.cluster");
  EXPECT_EQ(ids("barrier.cluster.wait.aligned;", 32), "barrier.cluster");
}

TEST(BarrierFindings, S04PartialsReadWithoutABarrier) {
  const auto text = [](const std::string &barrier) {
    return R"(
    redux.sync.add.u32 %r6, %r2, -1; and.b32 %r7, %r2, 31; setp.eq.u32 %p1, %r7, 0; shl.b32 %r8, %r3, 2; mov.u32 %r9, cells; add.u32 %r8, %r8, %r9;
    @%p1 st.shared.u32 [%r8], %r6; )" +
           barrier + R"(
    setp.ge.u32 %p2, %r2, 4; mov.u32 %r10, 0; @!%p2 ld.shared.u32 %r10, [%r4]; setp.eq.u32 %p3, %r3, 0; @!%p3 bra DONE; redux.sync.add.u32 %r1, %r10, -1;
  DONE: )";
  };
  // Warp 0 runs first and reads what warps 1 to 3 have not written yet.
  EXPECT_EQ(ids(text(""), 128), "race.shared uninit.shared");
  const Outcome good = block(text("bar.sync 0;"), 128);
  EXPECT_CLEAN(good);
  EXPECT_EQ(good.values[0], 127u * 128 / 2);
}

TEST(BarrierFindings, S07GroupsUseDifferentBarriers) {
  const auto text = [](const std::string &id) {
    return "setp.eq.u32 %p1, %r3, 0; @%p1 bra A; bar.sync " + id + ", 64; bra B;\nA: bar.sync 1, 64;\nB: ";
  };
  const Outcome bad = block(text("2"), 64);
  EXPECT_EQ(bad.launched.ids(), "deadlock");
  const std::string &message = bad.launched.find("deadlock")->message;
  EXPECT_NE(message.find("no warp can run: warp 0 waits bar 1 (32 of 64 threads arrived: warps 0) at ptx line"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("; warp 1 waits bar 2 (32 of 64 threads arrived: warps 1) at ptx line"), std::string::npos)
      << message;
  EXPECT_FALSE(bad.launched.status.ok());
  EXPECT_CLEAN(block(text("1"), 64));
}

TEST(BarrierFindings, S08CountTooLarge) {
  const auto text = [](const std::string &count) {
    return "setp.ge.u32 %p1, %r3, 2; @%p1 bra DONE; bar.sync 1, " + count + ";\nDONE: ";
  };
  const Outcome bad = block(text("96"), 128);
  EXPECT_EQ(bad.launched.ids(), "deadlock");
  EXPECT_NE(bad.launched.find("deadlock")->message.find("64 of 96 threads arrived: warps 0,1"), std::string::npos);
  EXPECT_CLEAN(block(text("64"), 128));
}

TEST(BarrierFindings, S09DifferentCountsOfOneGeneration) {
  const auto text = [](const std::string &count) {
    return "setp.eq.u32 %p1, %r3, 0; @%p1 bra A; bar.sync 1, 128; bra B;\nA: bar.sync 1, " + count + ";\nB: ";
  };
  const Outcome bad = block(text("64"), 128);
  EXPECT_TRUE(bad.launched.has("barrier.count"));
  EXPECT_NE(bad.launched.find("barrier.count")->message.find("barrier 1 opened with 64 threads at ptx line"),
            std::string::npos)
      << bad.launched.text();
  EXPECT_NE(bad.launched.find("barrier.count")->message.find("now 128"), std::string::npos);
  EXPECT_CLEAN(block(text("128"), 128));
}

TEST(BarrierFindings, S10OneWarpArrivesTwice) {
  const auto text = [](const std::string &first) {
    return "setp.eq.u32 %p1, %r3, 1; @%p1 bra B; " + first + " bar.sync 1, 64;\nB: @%p1 bar.sync 1, 64;";
  };
  const Outcome bad = block(text("bar.arrive 1, 64; bar.arrive 1, 64;"), 64);
  EXPECT_EQ(bad.launched.ids(), "barrier.twice") << bad.launched.text();
  EXPECT_NE(bad.launched.find("barrier.twice")
                ->message.find("and again before barrier 1 completed (32 of 64 threads arrived: warps 0)"),
            std::string::npos)
      << bad.launched.text();
  EXPECT_CLEAN(block(text(""), 64));
}

// The first round of a hand-over: a warp arrives for its partner, which has not run yet, and then waits for it.
TEST(BarrierFindings, AnArrivalAndAWaitOfOneWarpIsANote) {
  const auto text = [](const std::string &second) {
    return "setp.eq.u32 %p2, %r3, 2; @%p2 bra OUT; setp.ne.u32 %p1, %r3, 1; @%p1 bra B; bar.arrive 1, 96; " + second +
           " bra OUT;\nB: bar.sync 1, 96;\nOUT: ";
  };
  const Outcome good = block(text("bar.sync 1, 96;"), 96);
  EXPECT_CLEAN(good);
  ASSERT_TRUE(good.launched.has("barrier.twice")) << good.launched.text();
  EXPECT_TRUE(good.launched.find("barrier.twice")->note);
  EXPECT_NE(good.launched.find("barrier.twice")->message.find("both arrivals count, and it waits now"),
            std::string::npos);
  const Outcome bad = block(text("bar.arrive 1, 96;"), 96);
  EXPECT_EQ(bad.launched.ids(), "barrier.twice") << bad.launched.text();
}

TEST(BarrierFindings, S11BarrierInDivergentCode) {
  const auto text = [](const std::string &condition) {
    return "setp." + condition +
           " %p1, %r2, 16; @!%p1 bra DONE; st.shared.u32 [%r4], %r2; bar.sync 0;\nDONE: add.u32 %r1, %r1, 1;";
  };
  const Outcome bad = block(text("lt.u32"), 64);
  EXPECT_EQ(bad.launched.ids(), "aligned.divergent") << bad.launched.text();
  const std::string &message = bad.launched.find("aligned.divergent")->message;
  EXPECT_NE(message.find("executed by lanes 0x0000ffff; lanes 0xffff0000 of the warp are at ptx line"),
            std::string::npos)
      << message;
  EXPECT_CLEAN(block(text("lt.u32").replace(0, 0, "mov.u32 %r2, 3;"), 64)); // the condition is the same for all
}

TEST(BarrierFindings, TwoAlignedBarriersInTheArmsOfAnIf) {
  const Outcome bad =
      block("setp.lt.u32 %p1, %r2, 16; @%p1 bra A; bar.sync 0; bra B;\nA: bar.sync 0;\nB: mov.u32 %r1, 4;", 32);
  EXPECT_EQ(bad.launched.ids(), "aligned.divergent");
  EXPECT_EQ(bad.values[0], 4u);
  EXPECT_EQ(bad.values[31], 4u);
}

TEST(BarrierFindings, S12ReductionMixedWithSync) {
  const auto text = [](const std::string &other) {
    return "setp.eq.u32 %p1, %r3, 0; @%p1 bra A; " + other + " bra B;\nA: bar.red.popc.u32 %r6, 1, 64, %p1;\nB: ";
  };
  const Outcome bad = block(text("bar.sync 1, 64;"), 64);
  EXPECT_EQ(bad.launched.ids(), "barrier.mixed");
  EXPECT_NE(bad.launched.find("barrier.mixed")->message.find("sync joins a generation opened by red at ptx line"),
            std::string::npos)
      << bad.launched.text();
  EXPECT_CLEAN(block(text("bar.red.popc.u32 %r6, 1, 64, %p1;"), 64));
}

TEST(BarrierFindings, S13EarlyReturnBeforeABarrierWithACount) {
  const auto text = [](const std::string &count) {
    return "setp.eq.u32 %p1, %r3, 3; @%p1 exit; bar.sync 1, " + count + ";";
  };
  const Outcome bad = block(text("128"), 128);
  EXPECT_EQ(bad.launched.ids(), "deadlock");
  EXPECT_NE(bad.launched.find("deadlock")->message.find("96 of 128 threads arrived: warps 0,1,2"), std::string::npos);
  EXPECT_CLEAN(block(text("96"), 128));
}

TEST(BarrierFindings, BarrierNumbersAndCounts) {
  EXPECT_EQ(ids("add.u32 %r6, %r1, 16; bar.sync %r6;", 32), "barrier.id");
  EXPECT_TRUE(block("add.u32 %r6, %r1, 40; bar.sync 1, %r6;", 64).launched.has("barrier.count"));
  const Outcome constant = block("bar.sync 16;", 32);
  EXPECT_EQ(constant.launched.status.code(), StatusCode::CompileError);
  EXPECT_NE(constant.launched.status.message().find("barrier number 16 is not in 0..15"), std::string::npos);
}
