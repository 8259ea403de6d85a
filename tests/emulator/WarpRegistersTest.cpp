// setmaxnreg: the pool of a block's registers, who waits for it, and misuse.
#include "tests/emulator/ClusterKernels.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

/// 3 warpgroups, 168 registers a thread at launch: 65536 / 384, as a multiple of 8.
const ClusterShape groups{{2}, {0, 0, 0}, {384}};

/// Warpgroup 0 runs `producer`, the others `consumer`; then every thread stores its number.
std::string specialised(const std::string &producer, const std::string &consumer) {
  return "setp.lt.u32 %p1, %r2, 128; @%p1 bra PRODUCER;\n" + consumer + "\nbra JOIN;\nPRODUCER:\n" + producer +
         "\nJOIN: st.global.u32 [%rd2], %r2;";
}
const std::string decrease = "setmaxnreg.dec.sync.aligned.u32 24;", increase = "setmaxnreg.inc.sync.aligned.u32 240;";

std::string says(const ClusterOutcome &o, const char *id) {
  const Finding *f = o.launched.find(id);
  return f ? f->message : o.launched.text();
}
#define EXPECT_TEXT(outcome, id, part) EXPECT_NE(says(outcome, id).find(part), std::string::npos) << says(outcome, id)

} // namespace

TEST(WarpRegisters, S53IncreaseWithoutADecrease) {
  const std::string good = specialised(decrease, increase), bad = specialised("", increase);
  for (const ClusterSetting &s : clusterSettings()) {
    const ClusterOutcome twin = runCluster(good, groups, s);
    ASSERT_TRUE(twin.launched.clean()) << s.text() << twin.launched.text();
    for (std::uint32_t i = 0; i < 768; ++i)
      ASSERT_EQ(twin.values[i], i % 384);
    const ClusterOutcome o = runCluster(bad, groups, s);
    ASSERT_EQ(o.launched.ids(), "deadlock") << s.text() << o.launched.text();
    EXPECT_TEXT(o, "deadlock",
                "waits for registers (from 168 to 240 a thread takes 2304, the block's pool has 0 of 64512)");
  }
}

TEST(WarpRegisters, NotEnoughForAll) {
  // 4 warps free 32 * 40 registers each; the first four to come take them, the others wait.
  const ClusterOutcome o =
      runCluster(specialised("setmaxnreg.dec.sync.aligned.u32 128;", "setmaxnreg.inc.sync.aligned.u32 208;"), groups);
  EXPECT_EQ(o.launched.ids(), "deadlock") << o.launched.text();
  EXPECT_TRUE(
      runCluster(specialised("setmaxnreg.dec.sync.aligned.u32 88;", "setmaxnreg.inc.sync.aligned.u32 208;"), groups)
          .launched.clean());
}

TEST(WarpRegisters, AsDeclared) {
  const std::string body = specialised(decrease, "setmaxnreg.inc.sync.aligned.u32 152;");
  EXPECT_TRUE(runCluster(body, groups, {}, ".maxnreg 128\n").launched.clean()) << "frees 104, takes 2 * 24";
  const ClusterOutcome o = runCluster(specialised("", increase), groups, {}, ".maxnreg 128\n");
  EXPECT_TEXT(o, "deadlock", "from 128 to 240 a thread takes 3584, the block's pool has 0 of 49152");
  const ClusterOutcome two = runCluster(specialised("", increase), groups, {}, ".maxntid 384 .minnctapersm 2\n");
  EXPECT_TEXT(two, "deadlock", "from 80 to 240");
}

// Registers are given out in steps of 8: a thread of a kernel that may name 255 has 256.
TEST(WarpRegisters, RoundedUpToWhatIsGivenOut) {
  // As Triton begins kernels for sm_120 that are specialised by warps: the whole register file belongs to 256 threads.
  for (const char *target : {"sm_90a", "sm_120a"})
    for (const ClusterSetting &s : clusterSettings()) {
      const ClusterOutcome o = runCluster("setmaxnreg.inc.sync.aligned.u32 256; st.global.u32 [%rd2], %r2;",
                                          {{2}, {0, 0, 0}, {256}}, s, ".reqntid 256\n.maxnreg 256\n", target);
      ASSERT_TRUE(o.launched.clean()) << target << s.text() << o.launched.text();
      for (std::uint32_t i = 0; i < 512; ++i)
        ASSERT_EQ(o.values[i], i % 256);
    }
  // One that names no number has its share, and never more than that.
  EXPECT_TRUE(runCluster("setmaxnreg.inc.sync.aligned.u32 256;", {{1}, {0, 0, 0}, {256}}).launched.clean());
  const ClusterOutcome odd = runCluster(specialised("", increase), groups, {}, ".maxnreg 101\n");
  EXPECT_TEXT(odd, "deadlock", "from 104 to 240 a thread takes 4352, the block's pool has 0 of 39936");
}

TEST(WarpRegisters, Misuse) {
  const ClusterOutcome up = runCluster("setmaxnreg.inc.sync.aligned.u32 40;", {{1}, {0, 0, 0}, {128}});
  EXPECT_EQ(up.launched.ids(), "setmaxnreg.count");
  EXPECT_TEXT(up, "setmaxnreg.count", ".inc to 40 registers a thread, but the warp has 256 already");
  const ClusterOutcome down =
      runCluster("setmaxnreg.dec.sync.aligned.u32 240;", {{1}, {0, 0, 0}, {128}}, {}, ".maxnreg 64\n");
  EXPECT_TEXT(down, "setmaxnreg.count", ".dec to 240 registers a thread, but the warp has 64 only");
  // Warp 3 takes no part; or executes another one.
  const std::string branch =
      "setp.ge.u32 %p1, %r2, 96; @%p1 bra OTHER; setmaxnreg.dec.sync.aligned.u32 40; bra OUT;\nOTHER: ";
  const ClusterOutcome none = runCluster(branch + "\nOUT: ", {{1}, {0, 0, 0}, {128}});
  EXPECT_EQ(none.launched.ids(), "setmaxnreg.mismatch");
  EXPECT_TEXT(none, "setmaxnreg.mismatch", "warp 3 exited without executing it");
  const ClusterOutcome different =
      runCluster(branch + "setmaxnreg.dec.sync.aligned.u32 48;\nOUT: ", {{1}, {0, 0, 0}, {128}});
  EXPECT_EQ(different.launched.ids(), "setmaxnreg.mismatch");
  EXPECT_TEXT(different, "setmaxnreg.mismatch", "another warp of the warpgroup executed the one at");
  const ClusterOutcome part = runCluster(
      "setp.lt.u32 %p1, %r2, 8; @%p1 setmaxnreg.dec.sync.aligned.u32 40; bar.sync 0;", {{1}, {0, 0, 0}, {128}});
  EXPECT_TRUE(part.launched.has("aligned.divergent")) << part.launched.text();
}

TEST(WarpRegisters, RefusedWhenLoaded) {
  const auto says = [](const std::string &instruction, std::string_view part, std::string_view target = "sm_90a") {
    const ClusterOutcome o = runCluster(instruction, {{1}, {0, 0, 0}, {128}}, {}, "", target);
    EXPECT_NE(o.launched.status.toString().find(part), std::string::npos) << instruction << o.launched.text();
  };
  for (const char *n : {"16", "28", "264", "0", "4294967320"})
    says(std::string("setmaxnreg.dec.sync.aligned.u32 ") + n + ";", "is no number of registers");
  says("setmaxnreg.dec.sync.aligned.u32 %r1;", "takes one integer constant");
  says("setmaxnreg.dec.sync.aligned.u32;", "takes one integer constant");
  says("setmaxnreg.dec.sync.aligned.u32 24, 32;", "takes one integer constant");
  says("setmaxnreg.dec.sync.u32 24;", "setmaxnreg");
  says("setmaxnreg.dec.sync.aligned.u32 24;", "sm_90a", "sm_90");
}
