// Planted races, each with a correct twin, in order and under seeds of every schedule: the fault is found every time,
// the twin never has a finding.  S numbers are the seeded bugs of the emulator specification.
#include "runtime/device/emulator/checks/RaceTable.h"
#include "tests/emulator/SeededBugs.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Setting {
  Schedule schedule = Schedule::InOrder;
  std::uint64_t seed = 0;
  unsigned threads = 1;
  std::uint64_t instructionBudget = EmulatorOptions().instructionBudget;
};

/// Blocks that race do so in the host's memory too, which ThreadSanitizer rightly reports: one host thread there.
#if __has_feature(thread_sanitizer)
constexpr unsigned racyThreads = 1;
#else
constexpr unsigned racyThreads = 4;
#endif

/// `threads`: of the host, in order.
std::vector<Setting> settings(unsigned threads = 4) {
  std::vector<Setting> out = {{}, {Schedule::InOrder, 0, threads}};
  for (std::uint64_t seed = 0; seed < pick(20u, 50u); ++seed)
    for (Schedule s : {Schedule::Random, Schedule::Adversarial})
      out.push_back({s, seed, 1});
  return out;
}

struct Shape {
  unsigned blocks = 1, threads = 64;
};

/// %r2 = thread of the block, %r3 = warp, %r4 = address of the thread's word in `tile` (1024 words of shared memory),
/// %r5 = 4 * %r2, %r6 = lane, %rd1 = `cells`, 64 words of global memory, %rd2 = the thread's word in `out`.
Launched run(const std::string &body, Shape shape, const Setting &s, const char *target = "sm_90a") {
  EmulatorOptions o;
  o.schedule = s.schedule;
  o.seed = s.seed;
  o.hostThreads = s.threads;
  o.instructionBudget = s.instructionBudget;
  Emulator gpu(target, o);
  auto &out = gpu.upload(std::vector<std::uint32_t>(shape.blocks * shape.threads, 1), "out");
  auto &cells = gpu.upload(std::vector<std::uint32_t>(64, 0), "cells");
  return gpu.run(kernelText(".param .u64 out, .param .u64 cells", std::string(threadIndex) + R"(
    .shared .align 16 .b8 tile[4096]; mov.u32 %r2, %tid.x; shr.u32 %r3, %r2, 5; mov.u32 %r4, tile; shl.b32 %r5, %r2, 2; add.u32 %r4, %r4, %r5; and.b32 %r6, %r2, 31;
    ld.param.u64 %rd1, [cells]; ld.param.u64 %rd2, [out]; add.u64 %rd2, %rd2, %rd60;
)" + body,
                            target, ".file 1 \"k.cu\""),
                 {shape.blocks}, {shape.threads}, {out, cells});
}

std::string text(const Setting &s) {
  return std::string(scheduleName(s.schedule)) + " seed " + std::to_string(s.seed) + " threads " +
         std::to_string(s.threads);
}

void expectFound(const std::string &id, const std::string &bad, Shape shape) {
  for (const Setting &s : settings(racyThreads)) {
    const Launched r = run(bad, shape, s);
    // What comes too early may also read what is not there yet.
    std::string ids = r.ids();
    if (const auto at = ids.find(" uninit.shared"); at != std::string::npos)
      ids.erase(at);
    ASSERT_EQ(ids, id) << text(s) << "\n" << r.text();
  }
}
void expectClean(const std::string &good, Shape shape) {
  for (const Setting &s : settings()) {
    const Launched r = run(good, shape, s);
    ASSERT_TRUE(r.clean()) << text(s) << "\n" << r.text();
  }
}
/// `kernel` has a barrier (or whatever) as @@, which the fault leaves out or replaces by `instead`.
void expectFault(const std::string &id, std::string kernel, const std::string &right, const std::string &instead = "",
                 Shape shape = {}) {
  std::string bad = kernel;
  const std::size_t at = kernel.find("@@");
  ASSERT_NE(at, std::string::npos);
  kernel.replace(at, 2, right);
  bad.replace(at, 2, instead);
  expectClean(kernel, shape);
  expectFound(id, bad, shape);
}

/// Loads the word of thread (own ^ mask) of the tile to %r20.
std::string loadOther(unsigned mask) {
  return "xor.b32 %r10, %r5, " + std::to_string(mask * 4) +
         "; mov.u32 %r11, tile; add.u32 %r11, %r11, %r10; ld.shared.u32 %r20, [%r11];\n";
}

} // namespace

// Copies of a tile in several warps: all store the same, which is a note.  One lane that stores something else makes it
// a race, and so does a read.
TEST(Races, StoresOfTheSameBytes) {
  const std::string place = "shl.b32 %r20, %r6, 4; mov.u32 %r21, tile; add.u32 %r20, %r20, %r21; mul.lo.u32 %r22, %r6, "
                            "2654435761; cvt.u64.u32 %rd20, %r22; mul.lo.u64 %rd20, %rd20, 12345678901;\n";
  const std::string last = "setp.eq.u32 %p1, %r2, 63; @%p1 ";
  const std::pair<const char *, std::string> stores[] = {
      {"st.shared.u8 [%r20+3], %r22;", "xor.b32 %r22, %r22, 1;"},
      {"st.shared.u16 [%r20+2], %rd20;", "xor.b64 %rd20, %rd20, 256;"},
      {"st.shared.u32 [%r20], %r22;", "xor.b32 %r22, %r22, 65536;"},
      {"st.shared.u64 [%r20+8], %rd20;", "add.u64 %rd20, %rd20, 4294967296;"},
      {"st.shared.v4.u8 [%r20+4], {%r22, %r6, %r6, %r22};", "xor.b32 %r22, %r22, 1;"},
      {"st.shared.v2.u64 [%r20], {%rd21, %rd20};", "add.u64 %rd20, %rd20, 1;"},
      {"st.shared.v4.u32 [%r20], {%r22, %r6, %r6, %r22};", "xor.b32 %r22, %r22, 1;"}};
  for (const auto &[store, change] : stores) {
    const std::string body = place + "mov.u64 %rd21, 7;";
    for (const Setting &s : settings()) {
      const Launched same = run(body + store, {}, s);
      ASSERT_TRUE(same.clean()) << text(s) << store << same.text();
      ASSERT_TRUE(same.has("race.same_value")) << text(s) << store << same.text();
      EXPECT_NE(same.find("race.same_value")->message.find("but it stores what is there already"), std::string::npos);
      const Launched different = run(body + last + change + store, {}, s);
      ASSERT_EQ(different.ids(), "race.shared") << text(s) << store << different.text();
    }
  }
  expectFound("race.shared", place + "st.shared.u32 [%r20], %r22; ld.shared.u32 %r23, [%r20];", {});
}

// The same by stmatrix.  In global memory it is a finding: a guard may be what is missing.
TEST(Races, MatricesAndGlobalWordsOfTheSameBytes) {
  const std::string last = "setp.eq.u32 %p1, %r2, 63; @%p1 xor.b32 %r22, %r22, 65536;\n";
  const std::string value = "mul.lo.u32 %r22, %r6, 2654435761; mov.u32 %r21, tile; mad.lo.u32 %r20, %r6, 16, %r21;\n"
                            "ld.param.u64 %rd20, [out]; mul.wide.u32 %rd21, %r6, 4; add.u64 %rd20, %rd20, %rd21;\n";
  const std::pair<const char *, const char *> stores[] = {
      {"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r20], {%r22, %r6, %r6, %r22};", "race.shared"},
      {"stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r20], {%r22};", "race.shared"},
      {"st.global.u32 [%rd20], %r22;", "race.global"}};
  for (const auto &[store, id] : stores)
    for (const Setting &s : settings()) {
      const Launched same = run(value + store, {}, s, "sm_90a");
      if (std::string_view(id) == "race.shared")
        ASSERT_TRUE(same.clean() && same.has("race.same_value")) << text(s) << store << same.text();
      else
        ASSERT_EQ(same.ids(), id) << text(s) << store << same.text();
      const Launched different = run(value + last + store, {}, s, "sm_90a");
      ASSERT_EQ(different.ids(), id) << text(s) << store << different.text();
    }
  for (const Setting &s : settings(racyThreads)) {
    const Launched blocks = run(value + "st.global.u32 [%rd20], %r22;", {2, 32}, s);
    ASSERT_EQ(blocks.ids(), "race.global") << text(s) << blocks.text();
  }
}

TEST(Races, S01MissingBarrierBeforeTheRead) {
  expectFault("race.shared", "st.shared.u32 [%r4], %r2;\n@@\n" + loadOther(32), "bar.sync 0;");
}

TEST(Races, S02MissingBarrierAtTheLoopsEnd) {
  expectFault("race.shared",
              "mov.u32 %r30, 0;\nLOOP: st.shared.u32 [%r4], %r30;\nbar.sync 0;\n" + loadOther(32) +
                  "@@\nadd.u32 %r30, %r30, 1; setp.lt.u32 %p1, %r30, 3; @%p1 bra LOOP;",
              "bar.sync 0;");
}

TEST(Races, S03EpilogueOfVariableLengthAttention) {
  // The warps write their fragments of the output tile to shared memory, each thread two rows of it; then the threads
  // copy the rows that the sequence has (24 of 32) to global memory.
  const std::string kernel = R"(
    .loc 1 30 1
    and.b32 %r10, %r6, 15; shl.b32 %r10, %r10, 8; shr.u32 %r11, %r6, 4; mad.lo.u32 %r11, %r3, 2, %r11; shl.b32 %r11, %r11, 2; add.u32 %r10, %r10, %r11;
    mov.u32 %r11, tile; add.u32 %r10, %r10, %r11; st.shared.u32 [%r10], %r2; st.shared.u32 [%r10+128], %r2;
    @@
    .loc 1 41 1
    shr.u32 %r12, %r2, 5; setp.ge.u32 %p1, %r12, 24; @%p1 bra OUT; ld.shared.u32 %r20, [%r4]; st.global.u32 [%rd2], %r20;
  OUT: )";
  std::string good = kernel, bad = kernel;
  good.replace(good.find("@@"), 2, "bar.sync 0;");
  bad.replace(bad.find("@@"), 2, "");
  for (const char *target : {"sm_80", "sm_90a"})
    forEverySchedule(100, [&](const EmulatorOptions &o, const std::string &where) {
      const Setting s{o.schedule, o.seed, 1};
      const Launched r = run(bad, {2, 512}, s, target);
      const Finding *f = r.find("race.shared");
      ASSERT_TRUE(f && f->other) << target << " " << where << "\n" << r.text();
      // Whichever of the two comes second reports it; both lines are named.
      const bool readIsLater = f->location == "k.cu:41";
      ASSERT_EQ(f->location, readIsLater ? "k.cu:41" : "k.cu:30");
      ASSERT_EQ(f->other->location, readIsLater ? "k.cu:30" : "k.cu:41");
      ASSERT_NE(f->message.find(f->other->location), std::string::npos) << f->message;
      ASSERT_NE(f->message.find("no barrier lies between them"), std::string::npos) << f->message;
      const Launched twin = run(good, {2, 512}, s, target);
      ASSERT_TRUE(twin.clean()) << target << " " << where << "\n" << twin.text();
    });
}

TEST(Races, S04PartialSumsReadWithoutABarrier) {
  expectFault("race.shared race.warp", R"(
    setp.eq.u32 %p1, %r6, 0; mov.u32 %r10, tile; shl.b32 %r11, %r3, 2; add.u32 %r10, %r10, %r11; @%p1 st.shared.u32 [%r10], %r2;
    @@
    setp.ne.u32 %p2, %r3, 0; @%p2 bra OUT; ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [tile];
  OUT: )",
              "bar.sync 0;", "", {1, 128});
}

TEST(Races, S05DoubleBufferWithOneBuffer) {
  expectFault("race.shared", R"(
    mov.u32 %r30, 0;
  LOOP: and.b32 %r31, %r30, 1; @@ shl.b32 %r31, %r31, 11; add.u32 %r32, %r4, %r31; st.shared.u32 [%r32], %r30; bar.sync 0;
    xor.b32 %r10, %r5, 128; mov.u32 %r11, tile; add.u32 %r11, %r11, %r10; add.u32 %r11, %r11, %r31; ld.shared.u32 %r20, [%r11];
    add.u32 %r30, %r30, 1; setp.lt.u32 %p1, %r30, 4; @%p1 bra LOOP;)",
              "", "mov.u32 %r31, 0;");
}

TEST(Races, S06RowsOfTwoWarpsOverlap) {
  // Each warp writes a row of 32 words; the stride should be 32 words.
  expectFault("race.shared",
              "mov.u32 %r10, tile; @@ add.u32 %r10, %r10, %r11; shl.b32 %r12, %r6, 2; add.u32 %r10, %r10, %r12; "
              "st.shared.u32 [%r10], %r2;",
              "mul.lo.u32 %r11, %r3, 128;", "mul.lo.u32 %r11, %r3, 124;", {1, 96});
}

TEST(Races, BytesOfOneWordAreApart) {
  // Byte t of the tile by thread t of warp 0, byte t + 3 .. by warp 1: side by side in one word, or one byte too low.
  const std::string kernel = R"(
    mov.u32 %r10, tile; add.u32 %r10, %r10, %r2; setp.eq.u32 %p1, %r3, 1; mov.u32 %r11, @@; @%p1 add.u32 %r10, %r10, %r11;
    setp.lt.u32 %p2, %r6, 30; mov.u16 %h1, 1; @%p2 st.shared.u8 [%r10], %h1;)";
  expectFault("race.shared", kernel, "-2", "-3"); // warp 0 has bytes 0 to 29, warp 1 starts at 30 or 29
}

TEST(Races, NamedBarriersOrderTheirParticipants) {
  const std::string kernel = R"(
    setp.ge.u32 %p1, %r3, 2; @%p1 bra CONSUMER;
    st.shared.u32 [%r4], %r2; @@ bra DONE;
  CONSUMER: bar.sync 3, 128; add.u32 %r7, %r4, -256; ld.shared.u32 %r20, [%r7];
  DONE: )";
  expectFault("race.shared", kernel, "bar.arrive 3, 128;", "bar.arrive 3, 128; st.shared.u32 [%r4], %r3;", {1, 128});
}

TEST(Races, BarriersOfOtherWarpsOrderNothing) {
  // Warps 0 and 1 meet, warps 2 and 3 meet; 2 reads what 0 wrote.
  expectFault("race.shared", R"(
    setp.eq.u32 %p1, %r3, 0; @%p1 st.shared.u32 [%r4], %r2; shr.u32 %r10, %r3, 1; add.u32 %r10, %r10, 1; bar.sync %r10, 64; @@
    setp.eq.u32 %p2, %r3, 2; @%p2 ld.shared.u32 %r20, [%r4+-256];)",
              "bar.sync 0;", "", {1, 128});
}

TEST(Races, LanesNeedAWarpBarrier) {
  expectFault("race.warp", "st.shared.u32 [%r4], %r2;\n@@\n" + loadOther(1), "bar.warp.sync -1;", "", {1, 32});
  expectFault("race.warp", "st.shared.u32 [%r4], %r2;\n@@\n" + loadOther(1), "bar.sync 0;", "", {2, 64});
  // What the lanes do together orders them as well.
  expectClean("st.shared.u32 [%r4], %r2; shfl.sync.bfly.b32 %r9, %r2, 1, 31, -1;" + loadOther(1), {1, 32});
  // A lane's own word needs nothing; nor do reads of words that nobody writes.
  expectClean("st.shared.u32 [%r4], %r2; ld.shared.u32 %r20, [%r4]; st.shared.u32 [%r4], %r20; bar.warp.sync -1;" +
                  loadOther(1) + loadOther(2),
              {1, 32});
  // Read by one lane, then written by another.
  expectFault("race.warp",
              "st.shared.u32 [%r4], %r2; bar.warp.sync -1;" + loadOther(1) + "\n@@\nst.shared.u32 [%r4], %r20;",
              "bar.warp.sync -1;", "", {1, 64});
}

TEST(Races, LanesAndBothLinesAreNamed) {
  const Launched r = run(R"(
    .loc 1 7 1
    setp.eq.u32 %p1, %r2, 5; @%p1 st.shared.u32 [tile+12], %r2;
    .loc 1 9 1
    setp.eq.u32 %p2, %r2, 40; @%p2 ld.shared.u32 %r20, [tile+12];)",
                         {}, {});
  ASSERT_EQ(r.ids(), "race.shared") << r.text();
  const Finding &f = *r.find("race.shared");
  ASSERT_TRUE(f.other);
  EXPECT_EQ(f.kernel, "k");
  EXPECT_EQ(f.warp, 1u);
  EXPECT_EQ(f.lanes, 1u << 8);
  EXPECT_EQ(f.location, "k.cu:9");
  EXPECT_EQ(f.opcode, "ld.shared.u32");
  EXPECT_EQ(f.other->warp, 0u);
  EXPECT_EQ(f.other->lanes, 1u << 5);
  EXPECT_EQ(f.other->location, "k.cu:7");
  EXPECT_EQ(f.other->opcode, "st.shared.u32");
  EXPECT_EQ(f.message.substr(0, f.message.find(" at k.cu")),
            "4-byte load of tile+12 (lane 8) is not ordered with the 4-byte store by warp 0 lane 5");
  EXPECT_FALSE(f.fatal || f.note);
}

TEST(Races, S60BlocksWriteTheSameRows) {
  // Block b writes words 32 b and up of `cells`.
  expectFault(
      "race.global",
      "mov.u32 %r10, %ctaid.x; mul.lo.u32 %r10, %r10, @@; mul.wide.u32 %rd3, %r10, 4; add.u64 %rd3, %rd3, %rd1; "
      "mul.wide.u32 %rd4, %r6, 4; add.u64 %rd3, %rd3, %rd4; st.global.u32 [%rd3], %r2;",
      "32", "31", {2, 32});
}

TEST(Races, LanesInPiecesOfARow) {
  // Four lanes a row of eight elements, as in fragments: block 0 has elements 0 to 3, block 1 elements 4 to 7, or one
  // too early.  Words, then half words, of which two blocks share none.
  const std::string element = "mov.u32 %r9, %ctaid.x; shr.u32 %r10, %r6, 2; and.b32 %r11, %r6, 3; "
                              "mad.lo.u32 %r10, %r10, 8, %r11; mad.lo.u32 %r10, %r9, @@, %r10; ";
  expectFault("race.global", element + "mul.wide.u32 %rd3, %r10, 4; add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], 7;",
              "4", "3", {2, 32});
  expectFault("race.global",
              element + "mul.wide.u32 %rd3, %r10, 2; add.u64 %rd3, %rd3, %rd1; mov.u16 %h1, 7; "
                        "st.global.u16 [%rd3], %h1;",
              "4", "3", {2, 32});
  // Two lanes read the same word, words 0 to 15 in all; another block writes word 16, or the last of these.
  expectFault("race.global", R"(
    mov.u32 %r9, %ctaid.x; setp.ne.u32 %p1, %r9, 0; @%p1 bra WRITE;
    shr.u32 %r10, %r6, 1; mul.wide.u32 %rd3, %r10, 4; add.u64 %rd3, %rd3, %rd1; ld.global.u32 %r20, [%rd3]; bra OUT;
  WRITE: setp.ne.u32 %p2, %r2, 0; @%p2 bra OUT; st.global.u32 [%rd1+@@], 7;
  OUT: )",
              "64", "60", {2, 32});
}

TEST(Races, LanesInPiecesOfARowOfSharedMemory) {
  // Lane l writes word l % 4 of row l / 4; lane 9 reads the word of lane 10.
  const std::string kernel = R"(
    shr.u32 %r10, %r6, 2; and.b32 %r11, %r6, 3; mad.lo.u32 %r10, %r10, 8, %r11; mov.u32 %r12, tile;
    mad.lo.u32 %r10, %r10, 4, %r12; st.shared.u32 [%r10], %r2; @@
    setp.eq.u32 %p1, %r2, 9; @%p1 ld.shared.u32 %r20, [%r10+4];)";
  expectFault("race.warp", kernel, "bar.warp.sync -1;", "", {1, 32});
  std::string bad = kernel;
  bad.replace(bad.find("@@"), 2, "");
  const Launched r = run(bad, {1, 32}, {});
  const Finding *f = r.find("race.warp");
  ASSERT_TRUE(f && f->other) << r.text();
  EXPECT_EQ(f->lanes, 1u << 9);
  EXPECT_EQ(f->other->lanes, 1u << 10);
}

TEST(Races, S61SumsOfBlocksWithoutAtomics) {
  const std::string plain = "ld.global.u32 %r10, [%rd1]; add.u32 %r10, %r10, 1; st.global.u32 [%rd1], %r10;";
  expectFault("race.global", "setp.ne.u32 %p1, %r2, 0; @%p1 bra OUT; @@\nOUT: ", "red.global.add.u32 [%rd1], 1;", plain,
              {4, 32});
  // Read by all blocks, written by one.
  expectFault("race.global", R"(
    mov.u32 %r9, %ctaid.x; setp.eq.u32 %p1, %r9, 3; ld.global.u32 %r10, [%rd1+8]; @%p1 st.global.u32 [%rd1+@@], %r9;)",
              "12", "8", {5, 32});
  // A plain read of what others add to.
  expectFault("race.global", "red.global.add.u32 [%rd1], 1; @@", "ld.relaxed.gpu.global.u32 %r10, [%rd1];",
              "ld.global.u32 %r10, [%rd1];", {3, 32});
}

TEST(Races, GlobalMemoryInsideABlock) {
  expectFault("race.global", R"(
    setp.eq.u32 %p1, %r3, 0; @%p1 st.global.u32 [%rd1], 7; @@ setp.eq.u32 %p2, %r3, 1; @%p2 ld.global.u32 %r20, [%rd1];)",
              "bar.sync 0;");
}

namespace {

/// Block 0 writes data and a flag; block 1 waits for the flag and reads the data.
std::string handshake(const std::string &publish, const std::string &poll) {
  return R"(
    mov.u32 %r9, %ctaid.x; setp.ne.u32 %p1, %r2, 0; @%p1 bra OUT; setp.eq.u32 %p2, %r9, 1; @%p2 bra WAIT;
    st.global.u32 [%rd1+128], 7; )" +
         publish + R"( bra OUT;
  WAIT: )" +
         poll +
         R"( setp.eq.u32 %p3, %r10, 0; @%p3 bra WAIT; ld.global.u32 %r20, [%rd1+128];
  OUT: )";
}
const std::string release = "st.release.gpu.global.u32 [%rd1], 1;", acquire = "ld.acquire.gpu.global.u32 %r10, [%rd1];";

} // namespace

TEST(Races, HandshakesOverGlobalMemory) {
  expectClean(handshake(release, acquire), {2, 32});
  expectClean(handshake("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd1], 1;",
                        "ld.relaxed.gpu.global.u32 %r10, [%rd1]; fence.acq_rel.gpu;"),
              {2, 32});
  expectClean(
      handshake("membar.gl; st.volatile.global.u32 [%rd1], 1;", "ld.volatile.global.u32 %r10, [%rd1]; membar.gl;"),
      {2, 32});
  expectClean(handshake("fence.acq_rel.gpu; atom.global.exch.b32 %r11, [%rd1], 1;",
                        "atom.global.add.u32 %r10, [%rd1], 0; fence.acq_rel.gpu;"),
              {2, 32});
}

TEST(Races, S62FlagWrittenWithoutAFenceBefore) {
  expectFound("race.global", handshake("st.relaxed.gpu.global.u32 [%rd1], 1;", acquire), {2, 32});
}

TEST(Races, S63FlagOfTheBlocksOwnScope) {
  expectFound("race.global", handshake("st.release.cta.global.u32 [%rd1], 1;", acquire), {2, 32});
  expectFound("race.global", handshake("fence.acq_rel.cta; st.relaxed.gpu.global.u32 [%rd1], 1;", acquire), {2, 32});
}

TEST(Races, S64FlagPolledWithoutAcquire) {
  expectFound("race.global", handshake(release, "ld.relaxed.gpu.global.u32 %r10, [%rd1];"), {2, 32});
  // A weak load.  Such a loop is not recognised as one that polls: if its block is resident alone it never ends.
  const std::string weak = handshake(release, "ld.global.u32 %r10, [%rd1];");
  unsigned found = 0;
  forEverySchedule(20, [&](const EmulatorOptions &o, const std::string &where) {
    const Launched r = run(weak, {2, 32}, {o.schedule, o.seed, 1, 100'000});
    const bool alone = o.schedule != Schedule::InOrder && !r.status.ok();
    found += r.ids() == "race.global";
    ASSERT_TRUE(alone || r.ids() == "race.global") << where << "\n" << r.text();
  });
  EXPECT_GE(found, 10u);
}

TEST(Races, AReleaseOfTheBlocksScopeHandsOnWhatWasAcquiredFromAnother) {
  // Block 0 tells thread 0 of block 1, which tells thread 32 with a release of scope .cta.
  expectFault("race.global", R"(
    mov.u32 %r9, %ctaid.x; setp.ne.u32 %p1, %r6, 0; @%p1 bra OUT; setp.eq.u32 %p2, %r9, 1; @%p2 bra READERS;
    setp.ne.u32 %p1, %r2, 0; @%p1 bra OUT; st.global.u32 [%rd1+128], 7; st.release.gpu.global.u32 [%rd1], 1; bra OUT;
  READERS: setp.ne.u32 %p1, %r2, 0; @%p1 bra SECOND;
  FIRST: ld.@@.gpu.global.u32 %r10, [%rd1]; setp.eq.u32 %p3, %r10, 0; @%p3 bra FIRST; st.release.cta.global.u32 [%rd1+4], 1; bra OUT;
  SECOND: ld.acquire.cta.global.u32 %r10, [%rd1+4]; setp.eq.u32 %p3, %r10, 0; @%p3 bra SECOND; ld.global.u32 %r20, [%rd1+128];
  OUT: )",
              "acquire", "relaxed", {2, 64});
}

TEST(Races, TheLastBlockReadsThePartialSums) {
  // The usual single-pass reduction: partial sums, a fence, a ticket; the block with the last ticket adds them up.
  const std::string kernel = R"(
    mov.u32 %r9, %ctaid.x; mul.wide.u32 %rd3, %r9, 4; add.u64 %rd3, %rd3, %rd1; setp.ne.u32 %p1, %r2, 0; mov.u32 %r10, 0; @%p1 bra MEET;
    st.global.u32 [%rd3+64], %r9; @@ atom.global.add.u32 %r10, [%rd1], 1; fence.acq_rel.gpu; st.shared.u32 [tile], %r10;
  MEET: bar.sync 0; ld.shared.u32 %r10, [tile]; setp.ne.u32 %p2, %r10, 5; @%p2 bra OUT;
    setp.ge.u32 %p3, %r2, 6; @%p3 bra OUT; mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd4, %rd1; ld.global.u32 %r20, [%rd4+64];
  OUT: )";
  expectFault("race.global", kernel, "fence.acq_rel.gpu;", "", {6, 64});
}

TEST(Races, LocksInSharedMemory) {
  expectFault("race.shared", R"(
    setp.eq.u32 %p9, %r2, 0; @%p9 st.shared.u32 [tile], 0; @%p9 st.shared.u32 [tile+4], 0; bar.sync 0;
    setp.ne.u32 %p1, %r6, 0; @%p1 bra OUT;
  AGAIN: atom.acquire.cta.shared.cas.b32 %r7, [tile], 0, 1; setp.ne.u32 %p1, %r7, 0; @%p1 bra AGAIN;
    ld.shared.u32 %r8, [tile+4]; add.u32 %r8, %r8, 1; st.shared.u32 [tile+4], %r8; @@
  OUT: )",
              "atom.release.cta.shared.exch.b32 %r9, [tile], 0;", "atom.relaxed.cta.shared.exch.b32 %r9, [tile], 0;",
              {1, 128});
}

TEST(Races, LaunchesAreOrdered) {
  Emulator gpu;
  auto &cells = gpu.upload(std::vector<std::uint32_t>(64, 0), "cells");
  const std::string text = kernelText(".param .u64 cells", std::string(threadIndex) + R"(
    ld.param.u64 %rd1, [cells]; add.u64 %rd1, %rd1, %rd60; ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;)");
  for (unsigned i = 0; i < 4; ++i) {
    const Launched r = gpu.run(text, {i % 2 ? 1u : 2u}, {i % 2 ? 64u : 32u}, {cells});
    EXPECT_TRUE(r.clean()) << r.text();
  }
  EXPECT_EQ(gpu.download<std::uint32_t>(cells)[63], 4u);
}

TEST(Races, ChecksOffFindNothing) {
  EmulatorOptions o;
  o.checks = false;
  o.hostThreads = racyThreads;
  Emulator gpu("sm_90a", o);
  auto &out = gpu.upload(std::vector<std::uint32_t>(64, 0), "out");
  const Launched r =
      gpu.run(kernelText(".param .u64 out", "ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], 1;"), {4}, {64}, {out});
  EXPECT_TRUE(r.clean()) << r.text();
}

TEST(RaceTable, ForgetsAtAResetAndGoesOn) {
  struct Nothing final : emulator::Order {
    bool before(const emulator::Access &) const override { return false; }
    bool visible(const emulator::Access &) const override { return false; }
    bool mayOverwrite(const emulator::Access &) const override { return false; }
    bool apart(const emulator::Access &) const override { return false; }
  } nothing;
  emulator::RaceTable table(4096, 6);
  auto access = [&](unsigned warp, unsigned op, bool write) {
    emulator::Access a;
    a.warp = static_cast<std::uint8_t>(warp);
    a.op = op;
    a.clock = 1;
    a.write = write;
    return table.number(a);
  };
  unsigned resets = 0;
  for (unsigned i = 0; i < 20000; ++i) {
    if (table.full()) {
      table.reset();
      ++resets;
    }
    const std::uint32_t written = table.apply(0, access(0, 2 * i, true), 15, nothing).next;
    EXPECT_GE(written, table.firstState());
    const std::uint32_t reader = access(1, 2 * i + 1, false);
    const emulator::Transition read = table.apply(written, reader, 3, nothing);
    ASSERT_NE(read.collides, 0u);
    EXPECT_EQ(table.access(read.collides - 1).op, 2 * i);
    // Another reader of the other half: the first one stays known.
    const emulator::Transition over = table.apply(read.next, access(2, 7, true), 3, nothing);
    EXPECT_NE(over.collides, 0u);
    table.reset();
    EXPECT_EQ(table.apply(read.next, access(3, 1, true), 15, nothing).collides, 0u);
    ++resets;
  }
  EXPECT_GE(resets, 20000u);
}
