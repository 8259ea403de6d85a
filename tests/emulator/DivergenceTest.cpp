// Divergent control flow: results lane by lane, where lanes meet again, and lanes that wait for each other.
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

/// Runs one block; `body` leaves a result in %r1 of every thread, which are returned.
std::vector<std::uint32_t> results(const std::string &body, unsigned threads = 32,
                                   LaunchStatistics *statistics = nullptr, const std::string &expectedIds = "") {
  Emulator gpu;
  auto &out = gpu.upload(std::vector<std::uint32_t>(threads, 0xABABABAB), "out");
  const Launched r = gpu.run(kernelText(".param .u64 out", std::string(threadIndex) + body + R"(
    ld.param.u64 %rd63, [out]; add.s64 %rd63, %rd63, %rd60; st.global.u32 [%rd63], %r1;)"),
                             {1}, {threads}, {out});
  EXPECT_TRUE(r.status.ok()) << r.text();
  EXPECT_EQ(r.ids(), expectedIds) << r.text();
  if (statistics)
    *statistics = r.statistics;
  return gpu.download<std::uint32_t>(out);
}

} // namespace

TEST(Divergence, NestedBranches) {
  const auto got = results(R"(
    mov.u32 %r2, %tid.x; mov.u32 %r1, 0;
    and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra EVEN;
    setp.lt.u32 %p2, %r2, 16; @%p2 bra ODDLOW;
    mov.u32 %r1, 1; bra JOIN;
  ODDLOW: mov.u32 %r1, 2; bra JOIN;
  EVEN: and.b32 %r4, %r2, 2; setp.eq.u32 %p3, %r4, 0; @!%p3 bra SECOND;
    mov.u32 %r1, 3; bra JOIN;
  SECOND: mov.u32 %r1, 4;
  JOIN: add.u32 %r1, %r1, 100;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], 100 + (l % 2 == 0 ? (l & 2 ? 4 : 3) : l < 16 ? 2 : 1)) << l;
}

TEST(Divergence, LoopsOfDifferentLength) {
  LaunchStatistics statistics;
  const auto got = results(R"(
    mov.u32 %r2, %tid.x; mov.u32 %r1, 0; mov.u32 %r3, 0;
  OUTER: setp.gt.u32 %p1, %r3, %r2; @%p1 bra END;
    mov.u32 %r4, 0;
  INNER: add.u32 %r1, %r1, %r4; add.u32 %r4, %r4, 1; setp.le.u32 %p2, %r4, %r3; @%p2 bra INNER;
    add.u32 %r3, %r3, 1; bra OUTER;
  END: activemask.b32 %r5; setp.ne.u32 %p3, %r5, -1; @%p3 mov.u32 %r1, 0xBAD;)",
                           32, &statistics);
  for (unsigned l = 0; l < 32; ++l) {
    unsigned expected = 0;
    for (unsigned i = 0; i <= l; ++i)
      expected += i * (i + 1) / 2;
    EXPECT_EQ(got[l], expected) << l;
  }
  // The longest lane alone sets the number of warp instructions: the lanes walk the loops together.
  EXPECT_LT(statistics.warpInstructions, 32 * 33 / 2 * 4 + 32 * 7 + 40);
}

TEST(Divergence, LanesMeetAfterALoopWithBreaksAndASwitch) {
  const auto got = results(R"(
    mov.u32 %r2, %tid.x; mov.u32 %r1, 0; mov.u32 %r3, 0;
    L: .branchtargets A, B, C, D;
  LOOP: and.b32 %r4, %r2, 3; add.u32 %r4, %r4, %r3; and.b32 %r4, %r4, 3; brx.idx %r4, L;
  A: add.u32 %r1, %r1, 1; bra NEXT;
  B: add.u32 %r1, %r1, 10; setp.eq.u32 %p1, %r2, 5; @%p1 bra END; bra NEXT;
  C: add.u32 %r1, %r1, 100; bra NEXT;
  D: add.u32 %r1, %r1, 1000;
  NEXT: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 6; @%p2 bra LOOP;
  END: activemask.b32 %r5; setp.ne.u32 %p3, %r5, -1; @%p3 mov.u32 %r1, 0xBAD;)");
  for (unsigned l = 0; l < 32; ++l) {
    unsigned expected = 0;
    const unsigned values[] = {1, 10, 100, 1000};
    for (unsigned i = 0; i < 6; ++i) {
      expected += values[(l + i) & 3];
      if (l == 5 && ((l + i) & 3) == 1)
        break;
    }
    EXPECT_EQ(got[l], expected) << l;
  }
}

TEST(Divergence, IrreducibleFlowEnds) {
  const auto got = results(R"(
    mov.u32 %r2, %tid.x; mov.u32 %r1, 0; and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra SECOND;
  FIRST: add.u32 %r1, %r1, 1;
  SECOND: add.u32 %r1, %r1, 16; setp.lt.u32 %p2, %r1, 100; @%p2 bra FIRST;)");
  for (unsigned l = 0; l < 32; ++l) {
    unsigned v = 0;
    bool first = l & 1;
    do {
      if (first)
        v += 1;
      v += 16;
      first = true;
    } while (v < 100);
    EXPECT_EQ(got[l], v) << l;
  }
}

TEST(Divergence, GuardsOnEverything) {
  const auto got = results(R"(
    mov.u32 %r2, %tid.x; mov.u32 %r1, 7; setp.lt.u32 %p1, %r2, 20;
    @%p1 add.u32 %r1, %r1, %r2; @!%p1 sub.u32 %r1, %r1, %r2; setp.eq.u32 %p2|%p3, %r2, 3; @%p2 mov.u32 %r1, 1000; not.pred %p4, %p2;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], l == 3 ? 1000 : l < 20 ? 7 + l : 7 - l) << l;
}

TEST(Divergence, SpinLockBetweenLanesOfOneWarp) {
  // Each lane takes a lock in shared memory, adds 1 to a counter without atomics, and gives the lock back.
  const auto got = results(R"(
    .shared .align 4 .u32 lock; .shared .align 4 .u32 counter;
    mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0; mov.u32 %r3, 0; @%p1 st.shared.u32 [lock], %r3; @%p1 st.shared.u32 [counter], %r3; bar.sync 0;
  TRY: atom.shared.cas.b32 %r4, [lock], 0, 1; setp.ne.u32 %p2, %r4, 0; @%p2 bra TRY;
    ld.volatile.shared.u32 %r5, [counter]; add.u32 %r5, %r5, 1; st.volatile.shared.u32 [counter], %r5;
    atom.shared.exch.b32 %r6, [lock], 0;
    bar.sync 0; ld.shared.u32 %r1, [counter];)",
                           64);
  for (unsigned l = 0; l < 64; ++l)
    EXPECT_EQ(got[l], 64u) << l;
}

TEST(Divergence, ProducerLaneAndPollingLane) {
  const auto got = results(R"(
    .shared .align 4 .u32 flag; .shared .align 4 .u32 value;
    mov.u32 %r2, %tid.x; mov.u32 %r3, 0; mov.u32 %r1, 0; st.shared.u32 [flag], %r3; bar.warp.sync -1;
    setp.eq.u32 %p1, %r2, 31; @%p1 bra PRODUCE;
  POLL: ld.volatile.shared.u32 %r4, [flag]; setp.eq.u32 %p2, %r4, 0; @%p2 bra POLL;
    ld.volatile.shared.u32 %r1, [value]; bra DONE;
  PRODUCE: mov.u32 %r5, 42; st.volatile.shared.u32 [value], %r5; fence.acq_rel.cta; mov.u32 %r6, 1; st.volatile.shared.u32 [flag], %r6;
  DONE: )");
  for (unsigned l = 0; l < 31; ++l)
    EXPECT_EQ(got[l], 42u) << l;
}

TEST(Divergence, ReconvergesForShuffles) {
  // Divergent arms of different length, then a shuffle with the full mask.
  const auto got = results(R"(
    mov.u32 %r2, %tid.x; mov.u32 %r1, %r2; and.b32 %r3, %r2, 3; setp.ne.u32 %p1, %r3, 0; @%p1 bra JOIN;
    mov.u32 %r4, 0;
  L: add.u32 %r1, %r1, 1; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %r2; @%p2 bra L;
  JOIN: shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;)");
  for (unsigned l = 0; l < 32; ++l) {
    const unsigned o = l ^ 1;
    EXPECT_EQ(got[l], o % 4 ? o : o + std::max(1u, o)) << l;
  }
}

TEST(Divergence, SubwarpMasksRunSeparately) {
  const auto got = results(R"(
    mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 24; mov.u32 %r4, 255; shl.b32 %r4, %r4, %r3;
    setp.lt.u32 %p1, %r2, 16; @%p1 bra LOW;
    vote.sync.ballot.b32 %r1, %p1, %r4; bra JOIN;
  LOW: redux.sync.add.u32 %r1, %r2, %r4;
  JOIN: bar.warp.sync -1;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], l < 8 ? 28u : l < 16 ? 92u : 0u) << l;
}

TEST(Divergence, WarpSyncFromDifferentPoints) {
  const auto got = results(R"(
    .shared .align 4 .u32 cells[32];
    mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; mov.u32 %r4, cells; add.u32 %r3, %r3, %r4; setp.lt.u32 %p1, %r2, 16; @%p1 bra LOW;
    add.u32 %r5, %r2, 100; st.shared.u32 [%r3], %r5; bar.warp.sync -1; xor.b32 %r6, %r3, 64; ld.shared.u32 %r1, [%r6]; bra JOIN;
  LOW: add.u32 %r5, %r2, 200; st.shared.u32 [%r3], %r5; bar.warp.sync -1; add.u32 %r6, %r3, 64; ld.shared.u32 %r1, [%r6];
  JOIN: )");
  for (unsigned l = 0; l < 16; ++l) {
    EXPECT_EQ(got[l], l + 16 + 100);
    EXPECT_EQ(got[l + 16], l + 200);
  }
}

TEST(Divergence, S69ShuffleFromALaneOutsideTheMask) {
  const auto text = [](const std::string &by) {
    return R"(mov.u32 %r2, %tid.x; mov.u32 %r1, 0; setp.lt.u32 %p1, %r2, 16; @!%p1 bra DONE;
      shfl.sync.bfly.b32 %r1, %r2, )" +
           by + ", 31, 0xffff;\nDONE: ";
  };
  results(text("16"), 32, nullptr, "shfl.inactive_source");
  const auto got = results(text("8"));
  for (unsigned l = 0; l < 16; ++l)
    EXPECT_EQ(got[l], l ^ 8);
}

TEST(Divergence, S70ShuffleInDivergentCodeWithTheFullMask) {
  const auto text = [](const std::string &mask) {
    return R"(mov.u32 %r2, %tid.x; mov.u32 %r1, %r2; setp.lt.u32 %p1, %r2, 16; @!%p1 bra OTHER;
      shfl.sync.bfly.b32 %r1, %r2, 1, 31, )" +
           mask + R"(; bra JOIN;
    OTHER: add.u32 %r1, %r1, 1;
    JOIN: bar.sync 0; add.u32 %r1, %r1, 1;)";
  };
  Emulator gpu;
  auto &out = gpu.allocate(128, "out");
  const Launched bad = gpu.run(kernelText(".param .u64 out", text("-1")), {1}, {32}, {out});
  EXPECT_TRUE(bad.has("mask.missing")) << bad.text();
  EXPECT_NE(
      bad.find("mask.missing")
          ->message.find("waits for lanes 0xffff0000 of mask 0xffffffff: lanes 0xffff0000 of the warp are at ptx line"),
      std::string::npos)
      << bad.text();
  EXPECT_TRUE(gpu.run(kernelText(".param .u64 out", text("0xffff")), {1}, {32}, {out}).clean());
}

TEST(Divergence, LaneOutsideItsOwnMask) {
  results("mov.u32 %r2, %tid.x; vote.sync.ballot.b32 %r1, 1, 0xfffffffe;", 32, nullptr, "mask.self");
}

TEST(Divergence, ExitedLanesOfAMaskAreNotWaitedFor) {
  const auto got =
      results(R"(mov.u32 %r2, %tid.x; setp.ge.u32 %p1, %r2, 20; @%p1 exit; vote.sync.ballot.b32 %r1, 1, -1;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], l < 20 ? 0xFFFFFu : 0xABABABABu);
}

TEST(Divergence, PartialLastWarp) {
  const auto got = results(
      "activemask.b32 %r1; bar.sync 0; vote.sync.ballot.b32 %r2, 1, -1; xor.b32 %r2, %r2, %r1; or.b32 %r1, %r1, %r2;",
      50);
  for (unsigned l = 0; l < 50; ++l)
    EXPECT_EQ(got[l], l < 32 ? 0xFFFFFFFFu : 0x3FFFFu);
}
