// Seeded schedules: a function of the seed alone, harmless to correct kernels, and wide enough to bring out orders that
// the usual one never has.
#include "tests/emulator/PtxHarness.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr Schedule seededModes[] = {Schedule::Random, Schedule::Adversarial};

EmulatorOptions seeded(Schedule schedule, std::uint64_t seed, unsigned threads = 0) {
  EmulatorOptions o;
  o.schedule = schedule;
  o.seed = seed;
  o.hostThreads = threads;
  return o;
}

struct Outcome {
  Launched launched;
  std::vector<std::uint32_t> values;
  bool operator==(const Outcome &o) const {
    return values == o.values && launched.text() == o.launched.text() &&
           launched.statistics.warpInstructions == o.launched.statistics.warpInstructions &&
           launched.statistics.threadInstructions == o.launched.statistics.threadInstructions;
  }
};

/// Runs `body`, which leaves a word a thread in %r1.  %r2 = thread of the block, %r3 = warp, %rd1 = 8 words of zeros in
/// global memory, `cells` = 1024 words of shared memory, %r4 = the thread's own.
Outcome run(const std::string &body, unsigned blocks, unsigned threads, const EmulatorOptions &options) {
  Emulator gpu("sm_90a", options);
  auto &out = gpu.upload(std::vector<std::uint32_t>(blocks * threads, 0xABABABAB), "out");
  auto &words = gpu.upload(std::vector<std::uint32_t>(8, 0), "words");
  Outcome o;
  o.launched = gpu.run(kernelText(".param .u64 out, .param .u64 words", std::string(threadIndex) + R"(
    .shared .align 4 .u32 cells[1024]; mov.u32 %r2, %tid.x; shr.u32 %r3, %r2, 5; mov.u32 %r4, cells; shl.b32 %r5, %r2, 2; add.u32 %r4, %r4, %r5;
    ld.param.u64 %rd1, [words]; mov.u32 %r1, 0;)" + body + R"(
    ld.param.u64 %rd63, [out]; add.s64 %rd63, %rd63, %rd60; st.global.u32 [%rd63], %r1;)"),
                       {blocks}, {threads}, {out, words});
  o.values = gpu.download<std::uint32_t>(out);
  return o;
}

/// Barriers, shuffles, loops of different lengths in the lanes, atomics in shared and global memory.
const std::string clean = R"(
    mad.lo.u32 %r6, %r60, 2654435761, 12345; and.b32 %r7, %r6, 15;
  LOOP: mad.lo.u32 %r6, %r6, 1664525, %r2; sub.u32 %r7, %r7, 1; setp.ge.s32 %p1, %r7, 0; @%p1 bra LOOP;
    st.shared.u32 [%r4], %r6; bar.sync 0; xor.b32 %r8, %r5, 508; mov.u32 %r9, cells; add.u32 %r9, %r9, %r8; ld.shared.u32 %r10, [%r9];
    shfl.sync.bfly.b32 %r11, %r10, 5, 31, -1; add.u32 %r1, %r11, %r6; red.global.add.u32 [%rd1], %r1;
    bar.sync 0; setp.eq.u32 %p2, %r2, 0; @%p2 st.shared.u32 [cells], 0; bar.sync 0; red.shared.add.u32 [cells], %r1; bar.sync 0;
    ld.shared.u32 %r12, [cells]; add.u32 %r1, %r1, %r12; and.b32 %r13, %r2, 3; setp.eq.u32 %p3, %r13, 1; @%p3 bra ODD; mul.lo.u32 %r1, %r1, 3;
  ODD: vote.sync.ballot.b32 %r14, %p3, -1; add.u32 %r1, %r1, %r14;)";

/// The order in which the warps take tickets.
const std::string tickets = R"(
    and.b32 %r6, %r2, 31; setp.eq.u32 %p1, %r6, 0; @%p1 atom.global.add.u32 %r1, [%rd1], 1;)";

} // namespace

TEST(Schedule, CorrectKernelsDoNotNotice) {
  const Outcome expected = run(clean, 5, 128, {});
  ASSERT_TRUE(expected.launched.clean()) << expected.launched.text();
  for (Schedule mode : seededModes)
    for (std::uint64_t seed = 0; seed < pick(20u, 200u); ++seed) {
      const Outcome o = run(clean, 5, 128, seeded(mode, seed));
      ASSERT_TRUE(o.launched.clean()) << scheduleName(mode) << " " << seed << ": " << o.launched.text();
      ASSERT_EQ(o.values, expected.values) << scheduleName(mode) << " " << seed;
    }
}

TEST(Schedule, AFunctionOfTheSeedAlone) {
  // Plain loads and stores without barriers, and tickets: everything here depends on the order.
  const std::string racy = tickets + R"(
    st.shared.u32 [%r4], %r1; xor.b32 %r8, %r5, 508; mov.u32 %r9, cells; add.u32 %r9, %r9, %r8; ld.shared.u32 %r10, [%r9];
    ld.global.u32 %r11, [%rd1+4]; add.u32 %r11, %r11, 1; st.global.u32 [%rd1+4], %r11; mad.lo.u32 %r1, %r10, 1000, %r11;)";
  for (Schedule mode : seededModes) {
    std::set<std::vector<std::uint32_t>> different;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Outcome first = run(racy, 6, 128, seeded(mode, seed, 1));
      EXPECT_TRUE(first.launched.status.ok());
      EXPECT_TRUE(first == run(racy, 6, 128, seeded(mode, seed, 1))) << scheduleName(mode) << " " << seed;
      EXPECT_TRUE(first == run(racy, 6, 128, seeded(mode, seed, 3))) << scheduleName(mode) << " " << seed;
      different.insert(first.values);
    }
    EXPECT_GE(different.size(), 18u) << scheduleName(mode);
  }
}

TEST(Schedule, LaunchesOfOneDeviceDiffer) {
  Emulator gpu("sm_90a", seeded(Schedule::Random, 3));
  auto &out = gpu.upload(std::vector<std::uint32_t>(8 * 32, 0), "out");
  const std::string text = kernelText(".param .u64 out, .param .u64 words", std::string(threadIndex) + R"(
    ld.param.u64 %rd1, [words]; mov.u32 %r2, %tid.x; and.b32 %r6, %r2, 31; setp.eq.u32 %p1, %r6, 0; mov.u32 %r1, 0; @%p1 atom.global.add.u32 %r1, [%rd1], 1;
    ld.param.u64 %rd63, [out]; add.s64 %rd63, %rd63, %rd60; st.global.u32 [%rd63], %r1;)");
  std::set<std::vector<std::uint32_t>> different;
  for (int launch = 0; launch < 5; ++launch) {
    auto &words = gpu.upload(std::vector<std::uint32_t>(1, 0), "words");
    ASSERT_TRUE(gpu.run(text, {1}, {256}, {out, words}).clean());
    different.insert(gpu.download<std::uint32_t>(out));
  }
  EXPECT_GE(different.size(), 4u);
}

TEST(Schedule, EveryWarpAndBlockMayBeFirstAndLast) {
  for (Schedule mode : seededModes) {
    std::set<std::size_t> first, last;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const Outcome o = run(tickets, 1, 128, seeded(mode, seed));
      ASSERT_TRUE(o.launched.clean()) << o.launched.text();
      std::vector<std::uint32_t> order;
      for (unsigned w = 0; w < 4; ++w)
        order.push_back(o.values[w * 32]);
      first.insert(static_cast<std::size_t>(std::min_element(order.begin(), order.end()) - order.begin()));
      last.insert(static_cast<std::size_t>(std::max_element(order.begin(), order.end()) - order.begin()));
    }
    EXPECT_EQ(first.size(), 4u) << scheduleName(mode);
    EXPECT_EQ(last.size(), 4u) << scheduleName(mode);
    first.clear();
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Outcome o = run(tickets, 5, 32, seeded(mode, seed));
      for (unsigned b = 0; b < 5; ++b)
        if (o.values[b * 32] == 0)
          first.insert(b);
    }
    EXPECT_EQ(first.size(), 5u) << scheduleName(mode);
  }
}

TEST(Schedule, AMissingBarrierChangesResultsUnderSomeSeed) {
  // Warp 1 reads what warp 0 writes; in order, warp 0 is always the earlier one.
  const std::string body = R"(
    setp.eq.u32 %p1, %r3, 0; @%p1 st.shared.u32 [%r4], 7; setp.eq.u32 %p2, %r3, 1; @%p2 ld.shared.u32 %r1, [%r4+-128];)";
  EXPECT_EQ(run(body, 1, 64, {}).values[40], 7u);
  for (Schedule mode : seededModes) {
    unsigned wrong = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed)
      wrong += run(body, 1, 64, seeded(mode, seed)).values[40] != 7;
    EXPECT_GE(wrong, 4u) << scheduleName(mode);
    EXPECT_LE(wrong, 18u) << scheduleName(mode);
  }
}

TEST(Schedule, LanesThatWaitForEachOtherMakeProgress) {
  // A lock that the lanes of all warps of all blocks take in turn, and a barrier of the whole grid.
  const std::string lock = R"(
    mov.u32 %r6, 0;
  AGAIN: atom.global.cas.b32 %r7, [%rd1], 0, 1; setp.ne.u32 %p1, %r7, 0; @%p1 bra AGAIN;
    fence.acq_rel.gpu; ld.global.u32 %r8, [%rd1+4]; add.u32 %r8, %r8, 1; st.global.u32 [%rd1+4], %r8; fence.acq_rel.gpu; atom.global.exch.b32 %r9, [%rd1], 0;
    bar.sync 0; setp.ne.u32 %p2, %r2, 0; @%p2 bra WAIT;
    fence.acq_rel.gpu; atom.global.add.u32 %r9, [%rd1+8], 1;
  POLL: ld.acquire.gpu.global.u32 %r9, [%rd1+8]; setp.lt.u32 %p3, %r9, 3; @%p3 bra POLL;
  WAIT: bar.sync 0; ld.global.u32 %r1, [%rd1+4];)";
  for (Schedule mode : seededModes)
    for (std::uint64_t seed = 0; seed < pick(6u, 40u); ++seed) {
      const Outcome o = run(lock, 3, 64, seeded(mode, seed));
      ASSERT_TRUE(o.launched.clean()) << scheduleName(mode) << " " << seed << ": " << o.launched.text();
      for (std::uint32_t v : o.values)
        ASSERT_EQ(v, 3 * 64u);
    }
}

TEST(Schedule, DeadlocksAreFoundUnderEverySeed) {
  const std::string body = "setp.eq.u32 %p1, %r3, 1; @%p1 bar.sync 1, 64; @!%p1 bar.sync 2, 64;";
  for (Schedule mode : seededModes)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Outcome o = run(body, 2, 64, seeded(mode, seed));
      EXPECT_EQ(o.launched.ids(), "deadlock") << o.launched.text();
      EXPECT_NE(o.launched.text().find("bar 1 (32 of 64 threads arrived: warps 1)"), std::string::npos)
          << o.launched.text();
      EXPECT_NE(o.launched.text().find("bar 2 (32 of 64 threads arrived: warps 0)"), std::string::npos);
    }
}

TEST(Schedule, LivelocksAndBudgetsEndTheLaunch) {
  const std::string poll = "POLL: ld.volatile.global.u32 %r6, [%rd1]; setp.eq.u32 %p1, %r6, 0; @%p1 bra POLL;";
  // What the executor does not see as waiting: a plain loop.
  const std::string spin = "setp.eq.u32 %p1, %r3, 0; SPIN: @%p1 bra SPIN; atom.global.add.u32 %r1, [%rd1], 1;";
  for (Schedule mode : seededModes)
    for (std::uint64_t seed = 0; seed < pick(1u, 20u); ++seed) {
      EXPECT_EQ(run(poll, 2, 64, seeded(mode, seed)).launched.ids(), "livelock") << scheduleName(mode) << " " << seed;
      EmulatorOptions o = seeded(mode, seed);
      o.instructionBudget = 4'000'000;
      const Outcome spun = run(spin, 1, 96, o);
      EXPECT_NE(spun.launched.status.message().find("budget"), std::string::npos) << spun.launched.text();
      EXPECT_NE(spun.values[40], 0xABABABABu) << "the warp that does not wait had no turn";
    }
}

namespace {

/// Decoupled look-back over 3 blocks: warp 0 polls what the block before has published ("before" by `step`), adds its
/// own number and publishes the sum, which every thread gets.  The loop is laid out as nvcc does it with CUB's: its
/// head (HEAD) is in the middle, and what closes it is no branch but LOAD falling into HEAD.  `more` is executed each
/// time.
std::string lookBack(int step, const std::string &more = {}, const std::string &strong = ".relaxed.gpu") {
  const std::string first = step < 0 ? "0" : "2";
  return R"(
    mov.u32 %r20, %ctaid.x; mul.wide.u32 %rd3, %r20, 8; add.s64 %rd3, %rd1, %rd3; setp.ne.u32 %p4, %r3, 0; @%p4 bra REST;
    mov.u32 %r21, 0; setp.eq.u32 %p5, %r20, )" +
         first + "; @%p5 bra FIRST;\nld" + strong + ".v2.u32 {%r23, %r21}, [%rd3+" + std::to_string(8 * step) +
         "]; bra HEAD;\nLOAD: ld" + strong + ".v2.u32 {%r23, %r21}, [%rd3+" + std::to_string(8 * step) + "];" + more +
         R"(
  HEAD: setp.eq.u32 %p6, %r23, 0; vote.sync.any.pred %p7, %p6, -1; @%p7 bra SLEEP; bra FIRST;
  SLEEP: membar.cta; bra LOAD;
  FIRST: add.u32 %r21, %r21, %r20; add.u32 %r21, %r21, 1; mov.u32 %r24, 1; setp.eq.u32 %p8, %r2, 0;
    @%p8 st)" +
         strong + R"(.v2.u32 [%rd3], {%r24, %r21}; @%p8 st.shared.u32 [cells], %r21;
  REST: bar.sync 0; ld.shared.u32 %r1, [cells];)";
}

/// `torn`: the two words of a plain access may be of different times.
void expectLookBack(const std::string &body, int step, EmulatorOptions options, const std::string &what,
                    bool torn = false) {
  options.instructionBudget = 200'000'000; // no clock: the machine may be busy
  const Outcome o = run(body, 3, 96, options);
  ASSERT_TRUE(o.launched.clean()) << what << ", " << scheduleName(options.schedule) << " " << options.seed << ": "
                                  << o.launched.text();
  const std::uint32_t down[] = {1, 3, 6}, up[] = {6, 5, 3};
  for (unsigned t = 0; t < 3 * 96 && !torn; ++t)
    ASSERT_EQ(o.values[t], (step < 0 ? down : up)[t / 96]) << what << " thread " << t;
}

} // namespace

// A loop that is not left for other blocks' sake would keep those it waits for from ever starting.
TEST(Schedule, BlocksThatPollOthersEnd) {
  for (int step : {-1, 1}) {
    const std::string body = lookBack(step);
    expectLookBack(body, step, {}, "look-back");
    for (Schedule mode : seededModes)
      for (std::uint64_t seed = 0; seed < pick(12u, 100u); ++seed)
        expectLookBack(body, step, seeded(mode, seed), "look-back");
  }
}

// The same where nothing shows that the loop waits: it stores, so that something changes each time; or it reads with
// plain loads (a race, which hardware happens to forgive and several host threads do not: there it need only end), and
// blocks are spread over host threads.
TEST(Schedule, BlocksThatWaitUnseenEnd) {
#if __has_feature(thread_sanitizer)
  constexpr unsigned mostThreads = 1; // a race of the program is one of the host's threads
#else
  constexpr unsigned mostThreads = 2;
#endif
  const std::string stores = " st.shared.u32 [%r4], %r23;";
  EmulatorOptions unchecked;
  unchecked.checks = false;
  for (int step : {-1, 1}) {
    const std::string busy = lookBack(step, stores), weak = lookBack(step, {}, ".global");
    expectLookBack(busy, step, {}, "busy");
    for (unsigned threads = 1; threads <= mostThreads; ++threads) {
      unchecked.hostThreads = threads;
      expectLookBack(weak, step, unchecked, "weak", threads > 1);
    }
    for (Schedule mode : seededModes)
      for (std::uint64_t seed = 0; seed < pick(3u, 40u); ++seed) {
        expectLookBack(busy, step, seeded(mode, seed), "busy");
        EmulatorOptions o = seeded(mode, seed);
        o.checks = false;
        o.hostThreads = mostThreads;
        expectLookBack(weak, step, o, "weak", true);
      }
  }
}

// Warp 1 polls until it is taken to wait in vain; then warp 0 sets what it waits for and waits for its answer in a loop
// that stores.
TEST(Schedule, AWarpThatPolledInVainIsAskedAgain) {
  const std::string body = R"(
    setp.eq.u32 %p1, %r3, 1; @%p1 bra OTHER; mov.u32 %r6, 3000;
  DELAY: ld.shared.u32 %r8, [%r4]; sub.u32 %r6, %r6, 1; setp.ne.u32 %p2, %r6, 0; @%p2 bra DELAY; st.relaxed.gpu.global.u32 [%rd1], 1;
  ASK: st.shared.u32 [%r4], %r6; add.u32 %r6, %r6, 1; ld.relaxed.gpu.global.u32 %r1, [%rd1+4]; setp.eq.u32 %p3, %r1, 0; @%p3 bra ASK; bra OUT;
  OTHER: ld.relaxed.gpu.global.u32 %r7, [%rd1]; setp.eq.u32 %p4, %r7, 0; @%p4 bra OTHER; st.relaxed.gpu.global.u32 [%rd1+4], 5; mov.u32 %r1, 5;
  OUT: )";
  const std::string initialised = "st.shared.u32 [%r4], 0;" + body;
  for (Schedule mode : seededModes)
    for (std::uint64_t seed = 0; seed < pick(8u, 80u); ++seed) {
      EmulatorOptions o = seeded(mode, seed);
      o.instructionBudget = 50'000'000;
      const Outcome r = run(initialised, 1, 64, o);
      ASSERT_TRUE(r.launched.clean()) << scheduleName(mode) << " " << seed << ": " << r.launched.text();
      for (std::uint32_t v : r.values)
        ASSERT_EQ(v, 5u);
    }
}

// A copy that comes as late as it may still comes, though the loop that waits for it changes something each time.
TEST(Schedule, LateCopiesComeToLoopsThatAreBusy) {
  const std::string body = R"(
    .shared .align 8 .b64 bar; .shared .align 16 .b8 to[16]; setp.ne.u32 %p1, %r2, 0; @%p1 bra OUT;
    mbarrier.init.shared.b64 [bar], 1; cp.async.ca.shared.global [to], [%rd1], 16; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
  WAIT: st.shared.u32 [%r4], %r6; add.u32 %r6, %r6, 1; mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
    ld.shared.u32 %r7, [to]; add.u32 %r1, %r7, 9;
  OUT: )";
  for (Schedule mode : seededModes)
    for (std::uint64_t seed = 0; seed < pick(12u, 80u); ++seed) {
      EmulatorOptions o = seeded(mode, seed);
      o.instructionBudget = 50'000'000;
      const Outcome r = run("mov.u32 %r6, 0;" + body, 1, 32, o);
      ASSERT_TRUE(r.launched.clean()) << scheduleName(mode) << " " << seed << ": " << r.launched.text();
      ASSERT_EQ(r.values[0], 9u);
    }
}

TEST(Schedule, NamesAreReadBack) {
  for (Schedule s : {Schedule::InOrder, Schedule::Random, Schedule::Adversarial})
    EXPECT_EQ(*parseSchedule(scheduleName(s)), s);
  EXPECT_FALSE(parseSchedule("sideways").ok());
}
