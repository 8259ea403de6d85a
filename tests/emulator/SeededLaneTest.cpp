// Planted faults between the lanes of one warp: one word of two lanes, asynchronous copies that a lane has waited for,
// what lanes hand to the one that issues a bulk copy.
#include "tests/emulator/SeededBugs.h"

using namespace kiln;
using namespace kiln::test;

namespace {

/// Sets %r11 to the address of the 16 bytes of thread (own ^ mask).
std::string addressOf(unsigned mask) {
  return "xor.b32 %r10, %r2, " + std::to_string(mask) + "; mov.u32 %r11, tile; mad.lo.u32 %r11, %r10, 16, %r11;\n";
}
std::string loadOther(unsigned mask) {
  return addressOf(mask) + "ld.shared.u32 %r20, [%r11];\n";
}
const std::string storeResult = "st.global.u32 [%rd2], %r20;\n", syncWarp = "bar.warp.sync -1;";
const std::string copyOwn = "cp.async.ca.shared.global [%r4], [%rd1], 16; cp.async.commit_group;\n";

SeededBug laneBug(const std::string &body) {
  SeededBug b{.id = "race.warp", .body = body};
  b.right = syncWarp;
  b.lines = {30, 20};
  b.always = true;
  return b;
}
void expectSilent(SeededBug b) {
  forEverySchedule(seedsOfTwins(), [&](const EmulatorOptions &o, const std::string &where) {
    const SeededRun r = runSeeded(b, b.right, o);
    ASSERT_TRUE(r.launched.clean()) << where << "\n" << r.launched.text();
  });
}

} // namespace

TEST(SeededLanes, OneWordOfLanesThatStoreDifferentValues) {
  // Which lanes store: all to one word, pairs to a word each, some lanes only; narrow, wide and vector stores.
  const char *const stores[] = {
      "mov.u32 %r12, tile; st.shared.u32 [%r12], %r13;",
      "mov.u32 %r12, tile; setp.gt.u32 %p1, %r6, 20; @%p1 st.shared.u32 [%r12], %r13;",
      "shr.u32 %r12, %r2, 1; mov.u32 %r14, tile; mad.lo.u32 %r12, %r12, 8, %r14; st.shared.u32 [%r12], %r13;",
      "xor.b32 %r12, %r2, 16; min.u32 %r12, %r12, %r2; mov.u32 %r14, tile; mad.lo.u32 %r12, %r12, 16, %r14; "
      "st.shared.v2.u32 [%r12], {%r3, %r13};",
      "mov.u32 %r12, tile; cvt.u16.u32 %h1, %r13; st.shared.u8 [%r12], %h1;",
      "mov.u32 %r12, tile; cvt.u64.u32 %rd9, %r13; st.shared.u64 [%r12], %rd9;",
      "mov.u64 %rd8, tile; cvta.shared.u64 %rd8, %rd8; st.u32 [%rd8+4], %r13;",
      "ld.param.u64 %rd8, [out]; add.u64 %rd8, %rd8, 64; st.global.u32 [%rd8], %r13;",
      "and.b32 %r12, %r2, 15; mul.wide.u32 %rd9, %r12, 4; ld.param.u64 %rd8, [out]; add.u64 %rd8, %rd8, %rd9; "
      "st.global.u32 [%rd8], %r13;"};
  for (const char *store : stores) {
    SeededBug b = laneBug(std::string("mov.u32 %r13, @@;\n    .loc 1 20 1\n") + store);
    b.threads = 32;
    b.right = "5";
    b.wrong = "%r6";
    b.lines = {20, 20};
    expectSeededBug(b);
  }
  const SeededRun r = runSeeded(laneBug(".loc 1 20 1\n setp.lt.u32 %p1, %r6, 2; @%p1 st.shared.u32 [tile+12], %r2; @@"),
                                "", EmulatorOptions());
  const Finding *f = r.launched.find("race.warp");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->lanes, 3u);
  EXPECT_EQ(f->message, "lanes 0 and 1 store different values to tile+12 with one instruction: which of the two stays "
                        "is not defined");
}

TEST(SeededLanes, OneWordWithoutAConflict) {
  // Bytes side by side in a word; the low bytes of different registers; relaxed and volatile stores; a store by one
  // lane.
  for (const char *store :
       {"mov.u32 %r12, tile; add.u32 %r12, %r12, %r6; cvt.u16.u32 %h1, %r6; st.shared.u8 [%r12], %h1;",
        "mov.u32 %r12, tile; shl.b32 %r13, %r6, 8; cvt.u16.u32 %h1, %r13; st.shared.u8 [%r12], %h1;",
        "mov.u32 %r12, tile; st.relaxed.cta.shared.u32 [%r12], %r6;",
        "mov.u32 %r12, tile; st.volatile.shared.u32 [%r12], %r6;",
        "mov.u32 %r12, tile; setp.eq.u32 %p1, %r6, 7; @%p1 st.shared.u32 [%r12], %r6;",
        ".local .align 4 .b8 mine[4]; st.local.u32 [mine], %r6;"}) {
    SeededBug b = laneBug(store);
    b.threads = 32;
    expectSilent(b);
  }
}

TEST(SeededLanes, AFenceDoesNotMakeLanesMeet) {
  SeededBug b =
      laneBug(".loc 1 20 1\n st.shared.u32 [%r4], %r2; membar.cta; @@\n .loc 1 30 1\n" + loadOther(1) + storeResult);
  b.result = [](std::uint32_t t) { return t ^ 1; };
  expectSeededBug(b);
  // An arrival releases, but nobody has waited for it.
  SeededBug arrived = laneBug(R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0;
    .loc 1 20 1
    st.shared.u32 [%r4], %r2; mbarrier.arrive.shared.b64 %rd40, [bar]; @@
    .loc 1 30 1
)" + loadOther(1) + storeResult);
  arrived.right = "WAIT: mbarrier.test_wait.shared.b64 %p3, [bar], %rd40; @!%p3 bra WAIT;";
  expectSeededBug(arrived);
}

TEST(SeededLanes, CopiesThatOtherLanesWaitedFor) {
  for (const char *target : {"sm_80", "sm_90a"})
    for (const char *wait : {"cp.async.wait_group 0;", "cp.async.wait_all;"}) {
      SeededBug b = laneBug(".loc 1 20 1\n" + copyOwn + "@@\n .loc 1 30 1\n" + loadOther(1) + storeResult);
      b.target = target;
      b.right = wait + syncWarp;
      b.result = [](std::uint32_t t) { return (t ^ 1) * 4 + 1; };
      for (const std::string &wrong : {std::string(wait), "bar.warp.sync -1;" + std::string(wait)}) {
        b.wrong = wrong;
        expectSeededBug(b);
      }
    }
  // Over what another lane's copy wrote, with a store and with a copy.
  for (const char *write : {"st.shared.u32 [%r11], %r2;", "cp.async.ca.shared.global [%r11], [%rd1], 16;"})
    expectSeededBug(
        laneBug(".loc 1 20 1\n" + copyOwn + "cp.async.wait_all; @@\n .loc 1 30 1\n" + addressOf(1) + write));
  // The last group of two has not been waited for, the first one has, and the lanes have met since.
  SeededBug groups = laneBug(copyOwn + "add.u32 %r12, %r4, 4096; .loc 1 20 1\n" +
                             "cp.async.ca.shared.global [%r12], [%rd1], 16; cp.async.commit_group; "
                             "cp.async.wait_group 1; bar.warp.sync -1; cp.async.wait_group 0; @@\n" +
                             loadOther(1) + " .loc 1 30 1\n ld.shared.u32 %r21, [%r11+4096];");
  expectSeededBug(groups);
}

TEST(SeededLanes, CopiesWithoutAConflict) {
  const std::string wait = "cp.async.wait_group 0;";
  // A lane's own; the lanes meet in ldmatrix; a barrier; the mbarrier of the copies.
  for (const std::string &body :
       {copyOwn + wait + "ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r4]; st.shared.u32 [%r4], %r20;" + copyOwn +
            wait + "ld.shared.u32 %r20, [%r4+12];",
        copyOwn + wait + addressOf(1) + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r11];",
        copyOwn + wait + "bar.sync 0;" + loadOther(1) + loadOther(32),
        copyOwn + wait + "shfl.sync.bfly.b32 %r20, %r2, 1, 31, -1;" + loadOther(1),
        "setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0;" + copyOwn +
            "cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; WAIT: mbarrier.test_wait.parity.shared.b64 %p3, [bar], "
            "0; "
            "@!%p3 bra WAIT;" +
            loadOther(1) + loadOther(32)})
    expectSilent(laneBug(body));
}

TEST(SeededLanes, CopiesOfOneInstructionToOneAddress) {
  SeededBug b = laneBug(R"(
    shr.u32 %r12, %r2, 1; mov.u32 %r13, tile; mad.lo.u32 %r12, %r12, 16, %r13; mul.lo.u32 %r14, %r6, @@;
    ld.param.u64 %rd8, [in]; cvt.u64.u32 %rd9, %r14; add.u64 %rd8, %rd8, %rd9;
    .loc 1 20 1
    cp.async.ca.shared.global [%r12], [%rd8], 16; cp.async.wait_all;)");
  b.right = "0";
  b.wrong = "16";
  b.lines = {20, 20};
  expectSeededBug(b);
}

TEST(SeededLanes, StageRefilledWhileOtherLanesReadIt) {
  SeededBug b =
      laneBug(copyOwn + "cp.async.wait_all; bar.warp.sync -1;\n .loc 1 20 1\n" + loadOther(1) +
              "@@\n .loc 1 30 1\n cp.async.ca.shared.global [%r4], [%rd1+512], 16; cp.async.wait_all;" + storeResult);
  b.result = [](std::uint32_t t) { return (t ^ 1) * 4 + 1; };
  expectSeededBug(b);
}

TEST(SeededLanes, BulkStoreOfWhatOtherLanesWrote) {
  const std::string store = R"(
    setp.ne.u32 %p1, %r6, 0; @%p1 bra OUT;
    .loc 1 30 1
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
  OUT: )";
  const std::string fence = "fence.proxy.async.shared::cta;";
  const std::string words =
      "mov.u32 %r11, tile; mad.lo.u32 %r11, %r2, 4, %r11; .loc 1 20 1\n st.shared.u32 [%r11], %r2;";
  SeededBug b = laneBug(words + fence + "@@" + store);
  b.threads = 32;
  b.result = [](std::uint32_t t) { return t; };
  expectSeededBug(b);
  // The fence may follow where the lanes meet; then it must not stand alone.
  b.body = words + "@@" + fence + store;
  expectSeededBug(b);
  // Copied with cp.async, waited for by each lane.
  SeededBug copied = laneBug(".loc 1 20 1\n" + copyOwn + "cp.async.wait_all;" + fence + "@@" + store);
  copied.threads = 32;
  expectSeededBug(copied);
  // What lane 0 wrote itself.
  SeededBug own = laneBug("setp.ne.u32 %p1, %r6, 0; @%p1 bra OUT; mov.u32 %r11, tile; mov.u32 %r12, 0; FILL: "
                          "st.shared.u32 [%r11], %r12; add.u32 %r11, %r11, 4; add.u32 %r12, %r12, 1; setp.lt.u32 %p2, "
                          "%r12, 32; @%p2 bra FILL;" +
                          fence + store);
  own.threads = 32;
  expectSilent(own);
}

TEST(SeededLanes, BulkLoadOverWhatOtherLanesTouch) {
  const std::string prepare = "setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;";
  const std::string load = R"(
    @!%p1 bra ISSUED; fence.proxy.async.shared::cta; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
    .loc 1 30 1
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [bar];
  ISSUED: mbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], 0; @!%p9 bra ISSUED;
)";
  // The lanes read, or write, lane 0 overwrites.
  const std::string fill = "st.shared.v4.u32 [%r4], {%r2, %r2, %r2, %r2};";
  for (const std::string &touch :
       {fill + "bar.warp.sync -1;\n.loc 1 20 1\n" + loadOther(1), "\n.loc 1 20 1\n" + fill}) {
    SeededBug b = laneBug(prepare + touch + "@@" + load + "ld.shared.u32 %r20, [%r4];" + storeResult);
    b.threads = 32;
    b.result = [](std::uint32_t t) { return t * 4 + 1; };
    expectSeededBug(b);
  }
}

TEST(SeededLanes, BulkGroupsThatOtherLanesWaitedFor) {
  // Lane 0 stores the tile, all lanes wait; then each overwrites its part.
  SeededBug b{.id = "race.shared", .body = R"(
    mov.u32 %r11, tile; mad.lo.u32 %r11, %r2, 4, %r11; st.shared.u32 [%r11], %r2; fence.proxy.async.shared::cta;
    bar.warp.sync -1; setp.ne.u32 %p1, %r6, 0; @%p1 bra WAIT;
    .loc 1 20 1
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 128; cp.async.bulk.commit_group;
  WAIT: cp.async.bulk.wait_group.read 0; @@
    .loc 1 30 1
    st.shared.u32 [%r11], %r3;)"};
  b.threads = 32;
  b.right = syncWarp;
  b.lines = {30, 20};
  b.result = [](std::uint32_t t) { return t; };
  expectSeededBug(b);
}
