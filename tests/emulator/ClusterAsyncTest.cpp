// mbarriers of other blocks, st.async, red.async, setmaxnreg: correct programs, planted faults, misuse.
#include "tests/emulator/ClusterPrograms.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

const ClusterShape pair{{2}, {2}, {64}};

std::string says(const ClusterOutcome &o, const char *id) {
  const Finding *f = o.launched.find(id);
  return f ? f->message : o.launched.text();
}
#define EXPECT_TEXT(outcome, id, part) EXPECT_NE(says(outcome, id).find(part), std::string::npos) << says(outcome, id)

} // namespace

TEST(ClusterAsync, ProgramsUnderEverySchedule) {
  for (const ClusterProgram &p : asyncPrograms())
    for (const ClusterSetting &setting : clusterSettings(pick(3u, 20u))) {
      const ClusterOutcome o = runCluster(p.body, p.shape, setting, p.directives);
      ASSERT_TRUE(o.launched.clean()) << p.name << " " << setting.text() << o.launched.text();
      ASSERT_EQ(o.values, p.expected) << p.name << " " << setting.text();
    }
}

TEST(ClusterMbarrier, RelaxedArrivalCarriesNothing) {
  const std::string body = withBarrier(64, R"(
    mapa.shared::cluster.u32 %r20, %r4, %r41; st.shared::cluster.u32 [%r20], %r2;
    mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r42];
    )" + waitForBar + "ld.shared.u32 %r24, [%r4];");
  for (const ClusterSetting &setting : clusterSettings(6))
    EXPECT_TRUE(runCluster(body, pair, setting).launched.has("race.shared")) << setting.text();
}

TEST(ClusterMbarrier, Misuse) {
  const auto ids = [](const std::string &body) { return runCluster(withBarrier(64, body), pair).launched.ids(); };
  EXPECT_EQ(ids("mbarrier.test_wait.parity.shared.b64 %p1, [%r42], 0;"), "mbarrier.remote_wait");
  EXPECT_EQ(ids("mapa.shared::cluster.u32 %r20, %r40, 5; mbarrier.arrive.shared::cluster.b64 _, [%r20];"),
            "oob.remote");
  EXPECT_EQ(ids("add.u32 %r20, %r42, 8; mbarrier.arrive.shared::cluster.b64 _, [%r20];"), "oob.shared");
  EXPECT_EQ(ids("mov.u32 %r20, tile; mapa.shared::cluster.u32 %r20, %r20, %r41; mbarrier.arrive.shared::cluster.b64 _, "
                "[%r20];"),
            "mbarrier.uninit");
  EXPECT_EQ(ids("ld.shared::cluster.u64 %rd10, [%r42];"), "mbarrier.raw_access");
}

TEST(StoreAsync, ReadBeforeTheWait) {
  const auto text = [](const std::string &before, const std::string &after) {
    return withBarrier(1, R"(@!%p10 mbarrier.arrive.expect_tx.shared.b64 _, [%r40], 256;
    mapa.shared::cluster.u32 %r22, %r4, %r41; st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r22], %r2, [%r42];
    )" + before + "ld.shared.u32 %r24, [%r4]; st.global.u32 [%rd2], %r24;\n" +
                              after);
  };
  const std::string good = text(waitForBar, ""), bad = text("bar.sync 0;", waitForBar);
  for (const ClusterSetting &setting : clusterSettings()) {
    const ClusterOutcome twin = runCluster(good, pair, setting);
    ASSERT_TRUE(twin.launched.clean()) << setting.text() << twin.launched.text();
    const ClusterOutcome o = runCluster(bad, pair, setting);
    EXPECT_TRUE(o.launched.has("async.missing_wait") || o.launched.has("race.shared"))
        << setting.text() << o.launched.text();
  }
}

TEST(StoreAsync, Misuse) {
  const auto run = [](const std::string &body) { return runCluster(withBarrier(1, body), pair); };
  const std::string store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.";
  const ClusterOutcome other = run("mapa.shared::cluster.u32 %r22, %r4, %r41; " + store + "u32 [%r22], %r2, [%r40];");
  EXPECT_EQ(other.launched.ids(), "async.other_block") << other.launched.text();
  EXPECT_TEXT(other, "async.other_block", ",0,0) but completes an mbarrier of block (");
  EXPECT_EQ(
      run("mapa.shared::cluster.u32 %r22, %r4, %r41; add.u32 %r22, %r22, 2; " + store + "u32 [%r22], %r2, [%r42];")
          .launched.ids(),
      "misaligned");
  EXPECT_EQ(run("mapa.shared::cluster.u32 %r22, %r4, 3; " + store + "u32 [%r22], %r2, [%r42];").launched.ids(),
            "oob.remote");
  EXPECT_EQ(run("mapa.shared::cluster.u32 %r22, %r4, %r41; " + store + "u32 [%r22+8192], %r2, [%r42];").launched.ids(),
            "oob.shared");
  EXPECT_EQ(
      run("mapa.shared::cluster.u32 %r22, %r4, %r41; mov.u32 %r23, tile; mapa.shared::cluster.u32 %r23, %r23, %r41; " +
          store + "u32 [%r22], %r2, [%r23+2048];")
          .launched.ids(),
      "mbarrier.uninit");
}

TEST(StoreAsync, RefusedWhenLoaded) {
  const auto says = [](const std::string &instruction, std::string_view part, std::string_view target = "sm_90a") {
    const ClusterOutcome o = runCluster(instruction, {{2}, {0, 0, 0}, {32}}, {}, "", target);
    EXPECT_NE(o.launched.status.toString().find(part), std::string::npos) << instruction << o.launched.text();
  };
  const std::string store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.";
  says(store + "u32 [%r22], %r2;", "takes a destination, a value and an mbarrier");
  says(store + "v4.u64 [%r22], {%rd1, %rd1, %rd1, %rd1}, [%r42];", "a vector of 4 times 8 bytes does not exist");
  says(store + "v2.u32 [%r22], %r2, [%r42];", "has 1 values where 2 are needed");
  says(store + "u32 [%r22], {%r2, %r3}, [%r42];", "has 2 values where 1 is needed");
  says(store + "u16 [%r22], %h1, [%r42];", "st.async");
  says("st.async.shared::cluster.u32 [%r22], %r2, [%r42];", "st.async");
  says("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%r22], %f1, [%r42];",
       "red.async");
  says("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.s32 [%r22], %r1, [%r42];",
       "red.async");
  says(store + "u32 [%r22], %r2, [%r42];", "sm_90", "sm_89");
  says(store + "u32 [%f1], %r2, [%r42];", "");
}
