// Planted faults of barriers, bounds, alignment, undefined memory and shuffles, with their twins under every schedule:
// S07 to S13, S54 to S59, S65, S69, S70.  Their texts are in BarrierTest, MemoryFindingsTest and DivergenceTest.
#include "tests/emulator/SeededBugs.h"

using namespace kiln;
using namespace kiln::test;

namespace {

void expectBug(const char *id, unsigned threads, const std::string &body, const std::string &right,
               const std::string &wrong, bool always = true) {
  SeededBug b{.id = id, .body = body, .right = right, .wrong = wrong};
  b.always = always;
  b.threads = threads;
  expectSeededBug(b);
}

} // namespace

TEST(SeededBlock, S07GroupsUseDifferentBarriers) {
  expectBug("deadlock", 64,
            "setp.eq.u32 %p1, %r3, 0; @%p1 bra A; bar.sync @@, 64; bra B;\nA: bar.sync 1, 64;\nB: ", "1", "2");
}

TEST(SeededBlock, S08CountTooLarge) {
  expectBug("deadlock", 128, "setp.ge.u32 %p1, %r3, 2; @%p1 bra DONE; bar.sync 1, @@;\nDONE: ", "64", "96");
}

TEST(SeededBlock, S09DifferentCountsOfOneGeneration) {
  expectBug("barrier.count", 128,
            "setp.eq.u32 %p1, %r3, 0; @%p1 bra A; bar.sync 1, 128; bra B;\nA: bar.sync 1, @@;\nB: ", "128", "64");
}

TEST(SeededBlock, S10OneWarpArrivesTwice) {
  expectBug("barrier.twice", 96,
            "setp.ne.u32 %p1, %r3, 0; @%p1 bra B; bar.arrive 1, 96; @@ bra OUT;\nB: bar.sync 1, 96;\nOUT: ", "",
            "bar.arrive 1, 96;", false);
}

TEST(SeededBlock, S11BarrierInDivergentCode) {
  expectBug("aligned.divergent", 64,
            "setp.lt.u32 %p1, %r6, @@; @!%p1 bra DONE; st.shared.u32 [%r4], %r2; bar.sync 0;\nDONE: "
            "st.global.u32 [%rd2], %r2;",
            "32", "16", false);
}

TEST(SeededBlock, S12ReductionMixedWithSync) {
  expectBug("barrier.mixed", 64,
            "setp.eq.u32 %p1, %r3, 0; @%p1 bra A; @@ bra B;\nA: bar.red.popc.u32 %r20, 1, 64, %p1;\nB: ",
            "bar.red.popc.u32 %r20, 1, 64, %p1;", "bar.sync 1, 64;");
}

TEST(SeededBlock, S13EarlyReturnBeforeABarrierWithACount) {
  expectBug("deadlock", 128, "setp.eq.u32 %p1, %r3, 3; @%p1 exit; bar.sync 1, @@;", "96", "128");
}

TEST(SeededBlock, S54StoreOnePastTheEnd) {
  expectBug("oob.global", 64, "st.global.u32 [%rd2+@@], %r2;", "0", "4");
}

TEST(SeededBlock, S55LoadOfTheRowAfterTheLast) {
  // `in` has 128 rows of 16 bytes.
  expectBug("oob.global", 64,
            "add.u32 %r10, %r2, 65; setp.@@.u32 %p1, %r10, 128; @%p1 ld.global.u32 %r20, [%rd1+1040];", "lt", "le");
}

TEST(SeededBlock, S56VectorLoadFromAScalarAlignedPointer) {
  expectBug("misaligned", 32, "ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd1+@@];", "0", "4");
}

TEST(SeededBlock, S57DynamicSharedMemoryTooSmall) {
  const std::string text = kernelText("", R"(
    mov.u32 %r1, buffer; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r2, 4, %r1; st.shared.u32 [%r1], %r2; bar.sync 0; ld.shared.u32 %r4, [%r1];)",
                                      "sm_90a", ".extern .shared .align 16 .b8 buffer[];");
  forEverySchedule(seedsOfTwins(), [&](const EmulatorOptions &o, const std::string &where) {
    Emulator gpu("sm_90a", o);
    const Launched good = gpu.run(text, {2}, {128}, {}, 512), bad = gpu.run(text, {2}, {128}, {}, 508);
    ASSERT_TRUE(good.clean()) << where << "\n" << good.text();
    ASSERT_EQ(bad.ids(), "oob.shared") << where << "\n" << bad.text();
  });
}

TEST(SeededBlock, S58SharedTilePartlyNeverWritten) {
  expectBug("uninit.shared", 64,
            "setp.lt.u32 %p1, %r2, @@; @%p1 st.shared.u32 [%r4], %r2; bar.sync 0; xor.b32 %r4, %r4, 512; "
            "ld.shared.u32 %r20, [%r4];",
            "64", "60");
}

TEST(SeededBlock, S59OutputReadAsIfItWereZero) {
  const std::string text = kernelText(".param .u64 out", std::string(threadIndex) + R"(
    ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, %rd60; ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;)");
  forEverySchedule(seedsOfTwins(), [&](const EmulatorOptions &o, const std::string &where) {
    Emulator gpu("sm_90a", o);
    const Launched bad = gpu.run(text, {2}, {64}, {gpu.allocate(512, "sum")});
    const Launched good = gpu.run(text, {2}, {64}, {gpu.upload(std::vector<std::uint32_t>(128, 0), "sum")});
    ASSERT_TRUE(good.clean()) << where << "\n" << good.text();
    ASSERT_EQ(bad.ids(), "uninit.global") << where << "\n" << bad.text();
  });
}

TEST(SeededBlock, S65UseAfterFree) {
  const std::string text = kernelText(
      ".param .u64 out",
      std::string(threadIndex) + "ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, %rd60; st.global.u32 [%rd1], %r60;");
  forEverySchedule(seedsOfTwins(), [&](const EmulatorOptions &o, const std::string &where) {
    Emulator gpu("sm_90a", o);
    auto &out = gpu.allocate(512, "scores");
    const std::uint64_t address = out.address();
    const Launched good = gpu.run(text, {2}, {64}, {out});
    gpu.release(out);
    const Launched bad = gpu.run(text, {2}, {64}, {address});
    ASSERT_TRUE(good.clean()) << where << "\n" << good.text();
    ASSERT_EQ(bad.ids(), "use_after_free") << where << "\n" << bad.text();
  });
}

TEST(SeededBlock, S69ShuffleFromALaneOutsideTheMask) {
  expectBug("shfl.inactive_source", 64, R"(
    setp.lt.u32 %p1, %r6, 16; @!%p1 bra DONE; shfl.sync.bfly.b32 %r20, %r2, @@, 31, 0xffff;
  DONE: )",
            "8", "16");
}

TEST(SeededBlock, S70ShuffleInDivergentCodeWithTheFullMask) {
  expectBug("mask.missing", 64, R"(
    setp.lt.u32 %p1, %r6, 16; @!%p1 bra JOIN; shfl.sync.bfly.b32 %r20, %r2, 1, 31, @@;
  JOIN: bar.sync 0;)",
            "0xffff", "-1");
}
