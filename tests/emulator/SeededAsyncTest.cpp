// Planted faults of cp.async and of mbarriers that it completes: S14 to S21, S23, S24, S28 to S33.
#include "tests/emulator/SeededBugs.h"

using namespace kiln;
using namespace kiln::test;

namespace {

/// Loads the first word of what thread (own ^ mask) copied, from `tile` + `stage`, to %r20.
std::string loadOther(unsigned mask, unsigned stage = 0) {
  return "xor.b32 %r10, %r2, " + std::to_string(mask) + "; mov.u32 %r11, tile; mad.lo.u32 %r11, %r10, 16, %r11; " +
         "ld.shared.u32 %r20, [%r11+" + std::to_string(stage) + "];\n";
}
const std::string storeResult = "st.global.u32 [%rd2], %r20;\n";

/// A loop that polls an mbarrier, as it is written for either target.
std::string waitFor(const std::string &target, const std::string &address, const std::string &parity) {
  static unsigned loops = 0;
  const std::string label = "WAIT" + std::to_string(++loops);
  return label + ": mbarrier." + (target == "sm_80" ? "test_wait" : "try_wait") + ".parity.shared.b64 %p9, [" +
         address + "], " + parity + "; @!%p9 bra " + label + ";\n";
}

/// A ring of two stages: warp 0 copies four times, warp 1 reads.  Every placeholder may be the fault.
struct Ring {
  std::string target = "sm_90a";
  std::string emptyWait = "", fullParity = "and.b32 %r34, %r35, 1;", early = "", release = "";
  unsigned emptyCount = 32;
  std::string meet = ""; ///< what both warps do after every round

  std::string text() const {
    return R"(
    setp.ne.u32 %p1, %r2, 0; @%p1 bra READY;
    .loc 1 5 1
    mbarrier.init.shared.b64 [bar], 32; mbarrier.init.shared.b64 [bar+8], 32;
    mbarrier.init.shared.b64 [bar+16], )" +
           std::to_string(emptyCount) + "; mbarrier.init.shared.b64 [bar+24], " + std::to_string(emptyCount) + R"(;
  READY: bar.sync 0;
    mov.u32 %r30, 0; mov.u32 %r40, 0; setp.eq.u32 %p2, %r3, 1; @%p2 bra CONSUMER;
  PRODUCER: and.b32 %r31, %r30, 1; shr.u32 %r35, %r30, 1; mov.u32 %r32, bar; mad.lo.u32 %r32, %r31, 8, %r32;
    mad.lo.u32 %r33, %r31, 4096, %r4; setp.lt.u32 %p3, %r30, 2; @%p3 bra FILL; add.u32 %r34, %r35, 1; and.b32 %r34, %r34, 1;
    )" + emptyWait +
           R"(
  FILL: .loc 1 20 1
    cp.async.ca.shared.global [%r33], [%rd1], 16;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r32];
    )" + meet +
           R"(
    add.u64 %rd1, %rd1, 512; add.u32 %r30, %r30, 1; setp.lt.u32 %p3, %r30, 4; @%p3 bra PRODUCER; bra OUT;
  CONSUMER: and.b32 %r31, %r30, 1; shr.u32 %r35, %r30, 1; mov.u32 %r32, bar; mad.lo.u32 %r32, %r31, 8, %r32;
    mad.lo.u32 %r33, %r31, 4096, %r4; xor.b32 %r33, %r33, 16; )" +
           fullParity + waitFor(target, "%r32", "%r34") + early + R"(
    .loc 1 30 1
    ld.shared.u32 %r20, [%r33+-512]; add.u32 %r40, %r40, %r20;
    .loc 1 31 1
    )" + release +
           meet + R"(
    add.u32 %r30, %r30, 1; setp.lt.u32 %p3, %r30, 4; @%p3 bra CONSUMER; st.global.u32 [%rd2], %r40;
  OUT: )";
  }
  /// The sum that the consumer's thread t has.
  static std::uint32_t sum(std::uint32_t t) {
    if (t < 32)
      return 0xABABABAB;
    const std::uint32_t other = (t - 32) ^ 1;
    return 4 * (other * 4 + 1) + (0 + 1 + 2 + 3) * 128;
  }
};
const std::string arriveEmpty = "mbarrier.arrive.shared.b64 %rd40, [%r32+16];\n";

} // namespace

TEST(SeededAsync, S14WaitGroupLeavesTheGroupPending) {
  for (const char *target : {"sm_80", "sm_90a"}) {
    SeededBug b{.id = "async.missing_wait", .target = target};
    b.body = R"(
    .loc 1 10 1
    cp.async.ca.shared.global [%r4], [%rd1], 16; cp.async.commit_group;
    .loc 1 12 1
    cp.async.cg.shared.global [%r4+4096], [%rd1], 16; cp.async.commit_group;
    cp.async.wait_group @@; bar.sync 0;
    .loc 1 30 1
)" + loadOther(32, 4096) +
             storeResult;
    b.right = "0";
    b.wrong = "1";
    b.lines = {30, 12};
    b.always = true;
    b.result = [](std::uint32_t t) { return (t ^ 32) * 4 + 1; };
    expectSeededBug(b);
    // The older group is complete.
    SeededBug older = b;
    older.body = older.body.replace(older.body.find("%r11+4096"), 9, "%r11");
    older.wrong = "2";
    older.right = "1";
    older.lines = {30, 10};
    expectSeededBug(older);
  }
}

TEST(SeededAsync, S15CommitMissing) {
  SeededBug b{.id = "async.missing_wait", .target = "sm_80"};
  b.body = R"(
    .loc 1 10 1
    cp.async.ca.shared.global [%r4], [%rd1], 8; @@ cp.async.wait_group 0; bar.sync 0;
    .loc 1 30 1
)" + loadOther(32) +
           storeResult;
  b.right = "cp.async.commit_group;";
  b.lines = {30, 10};
  b.always = true;
  b.result = [](std::uint32_t t) { return (t ^ 32) * 4 + 1; };
  expectSeededBug(b);
}

TEST(SeededAsync, S16NoBarrierAfterTheWait) {
  SeededBug b{.id = "race.shared", .target = "sm_80"};
  b.body = R"(
    .loc 1 10 1
    cp.async.ca.shared.global [%r4], [%rd1], 4; cp.async.wait_all; @@
    .loc 1 30 1
)" + loadOther(32) +
           storeResult;
  b.right = "bar.sync 0;";
  b.lines = {30, 10};
  b.always = true;
  b.result = [](std::uint32_t t) { return (t ^ 32) * 4 + 1; };
  expectSeededBug(b);
}

TEST(SeededAsync, S17StageRefilledWhileItIsRead) {
  // One stage, and a pipeline of two: the refill must come after the barrier that follows the reads.
  for (unsigned stages : {1u, 2u}) {
    SeededBug b{.id = "race.shared", .target = "sm_80"};
    const std::string slot = stages == 1 ? "mov.u32 %r33, %r4; mov.u32 %r36, %r4;"
                                         : "and.b32 %r31, %r30, 1; mad.lo.u32 %r36, %r31, 4096, %r4; xor.b32 %r31, "
                                           "%r31, 1; mad.lo.u32 %r33, %r31, 4096, %r4;";
    b.body = R"(
    mov.u32 %r30, 0; mov.u32 %r40, 0;
    .loc 1 10 1
    cp.async.ca.shared.global [%r4], [%rd1], 16; cp.async.commit_group;
  LOOP: )" + slot +
             (stages == 1 ? std::string() : R"(
    .loc 1 11 1
    cp.async.ca.shared.global [%r33], [%rd1], 16; cp.async.commit_group;)") +
             "cp.async.wait_group " + std::to_string(stages - 1) + R"(; bar.sync 0;
    .loc 1 30 1
    xor.b32 %r36, %r36, 512; ld.shared.u32 %r20, [%r36]; add.u32 %r40, %r40, %r20;
    @@
)" +
             (stages == 1 ? std::string(R"(
    .loc 1 11 1
    cp.async.ca.shared.global [%r33], [%rd1], 16; cp.async.commit_group;)")
                          : std::string()) +
             R"(
    add.u32 %r30, %r30, 1; setp.lt.u32 %p1, %r30, 6; @%p1 bra LOOP; cp.async.wait_all; st.global.u32 [%rd2], %r40;)";
    b.right = "bar.sync 0;";
    b.lines = {30, 11};
    b.always = true;
    b.result = [](std::uint32_t t) { return 6 * ((t ^ 32) * 4 + 1); };
    expectSeededBug(b);
  }
}

TEST(SeededAsync, S18ArrivalsThatInitDidNotCount) {
  SeededBug b{.id = "mbarrier.underflow", .threads = 32};
  b.body = R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [bar], @@; bar.sync 0;
    cp.async.ca.shared.global [%r4], [%rd1], 16;
    .loc 1 20 1
    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
    @%p1 mbarrier.arrive.shared.b64 %rd40, [bar];
)" + waitFor(b.target, "bar", "0") +
           loadOther(1) + storeResult;
  b.right = "33";
  b.wrong = "1";
  b.lines = {20, 0};
  b.result = [](std::uint32_t t) { return (t ^ 1) * 4 + 1; };
  expectSeededBug(b);
}

TEST(SeededAsync, S19PlainArrivalInsteadOfTheCopys) {
  for (const char *target : {"sm_80", "sm_90a"}) {
    SeededBug b{.id = "async.missing_wait", .target = target};
    b.body = R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [bar], 32; bar.sync 0; setp.eq.u32 %p2, %r3, 1; @%p2 bra READ;
    .loc 1 20 1
    cp.async.ca.shared.global [%r4], [%rd1], 16; @@ bra OUT;
  READ: )" + waitFor(target, "bar", "0") +
             R"(
    .loc 1 30 1
)" + loadOther(32) +
             storeResult + "OUT: ";
    b.right = "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];";
    b.wrong = "mbarrier.arrive.shared.b64 %rd40, [bar];";
    b.lines = {30, 20};
    b.always = true;
    b.result = [](std::uint32_t t) { return t < 32 ? 0xABABABAB : (t ^ 32) * 4 + 1; };
    expectSeededBug(b);
    // Without .noinc the copies' arrivals come in addition: the plain ones are counted by init.
    SeededBug plain = b;
    plain.right = "cp.async.mbarrier.arrive.shared.b64 [bar]; mbarrier.arrive.shared.b64 %rd40, [bar];";
    expectSeededBug(plain);
  }
}

TEST(SeededAsync, S20SourceSizeIgnoresTheTail) {
  // Threads from 120 on are past the end of `in` (the buffer has 8 words a thread).
  SeededBug b{.id = "oob.global", .target = "sm_80"};
  b.body = R"(
    mul.wide.u32 %rd3, %r2, 16; add.u64 %rd1, %rd1, %rd3; setp.ge.u32 %p1, %r2, 60; add.u64 %rd4, %rd1, 64; @%p1 mov.u64 %rd1, %rd4;
    mov.u32 %r10, 16; @@
    .loc 1 20 1
    cp.async.ca.shared.global [%r4], [%rd1], 16, %r10; cp.async.wait_all;
    ld.shared.u32 %r20, [%r4]; st.global.u32 [%rd2], %r20;)";
  b.right = "@%p1 mov.u32 %r10, 0;";
  b.lines = {20, 0};
  b.always = true;
  b.result = [](std::uint32_t t) { return t >= 60 ? 0 : t * 8 + 1; };
  expectSeededBug(b);
}

TEST(SeededAsync, S21TwoCopiesToOneAddress) {
  SeededBug b{.id = "race.shared", .target = "sm_80"};
  b.body = R"(
    .loc 1 20 1
    cp.async.ca.shared.global [%r4], [%rd1], 16; @@
    .loc 1 21 1
    cp.async.ca.shared.global [%r4+8], [%rd1], 8; cp.async.wait_all; ld.shared.u32 %r20, [%r4]; st.global.u32 [%rd2], %r20;)";
  b.right = "cp.async.wait_all; bar.warp.sync -1;";
  b.lines = {20, 21};
  b.always = true;
  b.result = [](std::uint32_t t) { return t * 4 + 1; };
  expectSeededBug(b);
  // One instruction, twice.
  b.body = R"(
    mov.u32 %r30, 0;
    .loc 1 20 1
  LOOP: cp.async.ca.shared.global [%r4], [%rd1], 16; @@ add.u32 %r30, %r30, 1; setp.lt.u32 %p1, %r30, 2; @%p1 bra LOOP;
    cp.async.wait_all; ld.shared.u32 %r20, [%r4]; st.global.u32 [%rd2], %r20;)";
  b.lines = {20, 20};
  expectSeededBug(b);
}

TEST(SeededAsync, S23WaitWithTheWrongParity) {
  // Warps 1 and 2 copy, warp 0 reads what warp 2 copied.
  SeededBug b{.id = "async.missing_wait", .threads = 96};
  b.body = R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0; setp.eq.u32 %p2, %r3, 0; @%p2 bra READ;
    .loc 1 20 1
    cp.async.ca.shared.global [%r4], [%rd1], 16; cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; bra OUT;
  READ: )" +
           waitFor(b.target, "bar", "@@") +
           R"(
    .loc 1 30 1
)" + loadOther(64) +
           storeResult + "OUT: ";
  b.right = "0";
  b.wrong = "1";
  b.lines = {30, 20};
  b.result = [](std::uint32_t t) { return t >= 32 ? 0xABABABAB : (t ^ 64) * 4 + 1; };
  expectSeededBug(b);
}

namespace {

void expectRing(const char *id, const Ring &right, const Ring &wrong, std::array<unsigned, 2> lines,
                std::vector<std::string> orElse = {}, bool always = false) {
  SeededBug b{.id = id, .body = "@@", .right = right.text(), .wrong = wrong.text(), .lines = lines};
  b.target = right.target;
  b.orElse = std::move(orElse);
  b.result = Ring::sum;
  b.always = always;
  expectSeededBug(b);
}

Ring correctRing(const char *target = "sm_90a") {
  Ring r;
  r.target = target;
  r.emptyWait = waitFor(target, "%r32+16", "%r34");
  r.release = arriveEmpty;
  return r;
}

} // namespace

TEST(SeededAsync, S24ParityNotFlippedWhenTheRingWraps) {
  Ring wrong = correctRing();
  wrong.fullParity = "mov.u32 %r34, 0;";
  wrong.meet = "bar.sync 1;";
  Ring right = correctRing();
  right.meet = wrong.meet;
  expectRing("async.missing_wait", right, wrong, {30, 20}, {"deadlock"});
}

TEST(SeededAsync, S28NoWaitForTheStageToBeEmpty) {
  Ring wrong = correctRing();
  wrong.emptyWait = "";
  expectRing("race.shared", correctRing(), wrong, {}, {}, true);
}

TEST(SeededAsync, S29StageReleasedBeforeItIsRead) {
  for (const char *target : {"sm_80", "sm_90a"}) {
    Ring wrong = correctRing(target);
    wrong.early = arriveEmpty;
    wrong.release = "";
    expectRing("race.shared", correctRing(target), wrong, {30, 20});
  }
}

TEST(SeededAsync, S30OneArrivalOfAWarpWhereEveryThreadIsCounted) {
  Ring wrong = correctRing();
  wrong.release = "bar.warp.sync -1; setp.eq.u32 %p4, %r6, 0; @%p4 " + arriveEmpty;
  Ring right = wrong;
  right.emptyCount = 1;
  expectRing("deadlock", right, wrong, {});
}

TEST(SeededAsync, S31InitWithoutABarrier) {
  SeededBug b{.id = "race.shared", .target = "sm_80"};
  b.body = R"(
    setp.eq.u32 %p1, %r2, 0;
    .loc 1 10 1
    @%p1 mbarrier.init.shared.b64 [bar], 64; @@
    .loc 1 20 1
    mbarrier.arrive.shared.b64 %rd40, [bar];
  WAIT: mbarrier.test_wait.shared.b64 %p2, [bar], %rd40; @!%p2 bra WAIT;)";
  b.right = "bar.sync 0;";
  b.wrong = "bar.warp.sync -1;";
  b.lines = {20, 10};
  expectSeededBug(b);
  // mbarrier.inval while others may still use it.
  b.id = "race.shared";
  b.body = R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0;
    mbarrier.arrive.shared.b64 %rd40, [bar];
    .loc 1 20 1
  WAIT: mbarrier.test_wait.shared.b64 %p2, [bar], %rd40; @!%p2 bra WAIT; @@
    .loc 1 30 1
    setp.eq.u32 %p1, %r2, 32; @%p1 mbarrier.inval.shared.b64 [bar];)";
  b.right = "bar.sync 0;";
  b.wrong = "bar.warp.sync -1;";
  b.lines = {30, 20};
  expectSeededBug(b);
}

TEST(SeededAsync, S32InitialisedTwice) {
  SeededBug b{.id = "mbarrier.reinit", .target = "sm_80"};
  b.body = R"(
    setp.ne.u32 %p1, %r2, 0; @%p1 bra OUT; mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 %rd40, [bar]; @@
    .loc 1 20 1
    mbarrier.init.shared.b64 [bar], 2;
  OUT: )";
  b.right = "mbarrier.inval.shared.b64 [bar];";
  b.lines = {20, 0};
  b.always = true;
  expectSeededBug(b);
}

TEST(SeededAsync, S33PlainAccessToAnMbarrier) {
  for (const char *wrong : {"st.shared.u32 [bar+4], 0;", "ld.shared.u64 %rd40, [bar];", "st.shared.u8 [bar+7], %h1;",
                            "atom.shared.add.u32 %r20, [bar], 1;", "cp.async.ca.shared.global [bar], [%rd1], 16;"}) {
    SeededBug b{.id = "mbarrier.raw_access", .target = "sm_80"};
    b.body = R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0; mov.u16 %h1, 0;
    setp.ne.u32 %p2, %r2, 5; @%p2 bra GO;
    .loc 1 20 1
    @@
    cp.async.wait_all;
  GO: mbarrier.arrive.shared.b64 %rd41, [bar];
  WAIT: mbarrier.test_wait.shared.b64 %p3, [bar], %rd41; @!%p3 bra WAIT;)";
    b.wrong = wrong;
    b.right = "st.shared.u32 [bar+8], 0; ld.shared.u32 %r20, [bar+8];"; // next to it
    b.lines = {20, 0};
    b.always = true;
    expectSeededBug(b);
  }
}

TEST(SeededAsync, OneLaneWaitsForTheWholeWarp) {
  // Warp 1 copies; lane 0 of warp 0 waits for the mbarrier, then all lanes read.
  for (const bool polls : {false, true}) {
    SeededBug b{.id = "race.shared"};
    b.body = R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [bar], 32; bar.sync 0; setp.eq.u32 %p2, %r3, 0; @%p2 bra READ;
    .loc 1 20 1
    cp.async.ca.shared.global [%r4], [%rd1], 16; cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; bra OUT;
  READ: setp.ne.u32 %p3, %r6, 0; @%p3 bra WAITED;
)" + waitFor(polls ? "sm_80" : "sm_90a", "bar", "0") +
             R"(
  WAITED: @@
    .loc 1 30 1
)" + loadOther(32) +
             storeResult + "OUT: ";
    b.right = "bar.warp.sync -1;";
    b.lines = {30, 20};
    b.result = [](std::uint32_t t) { return t >= 32 ? 0xABABABAB : (t ^ 32) * 4 + 1; };
    expectSeededBug(b);
    // The waiting lane itself may read.
    SeededBug alone = b;
    alone.body.replace(alone.body.find("WAITED: @@"), 10, "@@ WAITED: @%p3 bra OUT;");
    alone.result = {};
    alone.right = alone.wrong = "";
    EmulatorOptions o;
    EXPECT_TRUE(runSeeded(alone, "", o).launched.clean());
  }
}

TEST(SeededAsync, OneLaneFencesForTheWholeWarp) {
  // Lane 1 executes the fence, lane 0 the copy.
  SeededBug b{.id = "proxy.missing_fence"};
  b.body = R"(
    .loc 1 10 1
    st.shared.v4.u32 [%r4], {%r2, %r2, %r2, %r2}; bar.sync 0; setp.ne.u32 %p1, %r2, 1; @%p1 bra FENCED; fence.proxy.async.shared::cta;
  FENCED: @@ setp.ne.u32 %p1, %r2, 0; @%p1 bra OUT;
    .loc 1 20 1
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
  OUT: )";
  b.right = "bar.warp.sync -1;";
  b.lines = {20, 10};
  expectSeededBug(b);
}
