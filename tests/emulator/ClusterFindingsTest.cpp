// Defects of clusters: each planted one is found, its correct twin is silent under 20 seeds of every schedule.  S
// numbers are the seeded bugs of the emulator specification.
#include "tests/emulator/ClusterKernels.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

/// The twin's every run is clean; the defect is found in every run that `everywhere` asks for, else in order.
void expectFound(const std::string &bad, const std::string &good, const ClusterShape &shape, const char *id,
                 bool everywhere) {
  for (const ClusterSetting &s : clusterSettings()) {
    const ClusterOutcome twin = runCluster(good, shape, s);
    ASSERT_TRUE(twin.launched.clean()) << s.text() << twin.launched.text();
    const ClusterOutcome o = runCluster(bad, shape, s);
    if (everywhere || s.schedule == Schedule::InOrder)
      ASSERT_TRUE(o.launched.has(id)) << s.text() << o.launched.text();
  }
}

std::string says(const ClusterOutcome &o, const char *id) {
  const Finding *f = o.launched.find(id);
  return f ? f->message : o.launched.text();
}
#define EXPECT_TEXT(outcome, id, part) EXPECT_NE(says(outcome, id).find(part), std::string::npos) << says(outcome, id)

const ClusterShape pair{{2}, {2}, {64}};

} // namespace

TEST(ClusterFindings, S67RelaxedArrivalReleasesNothing) {
  const auto text = [](const std::string &arrive) {
    return R"(
    .loc 1 10 0
    st.shared.u32 [%r4], %r2;
    )" + arrive +
           R"( barrier.cluster.wait.acquire.aligned;
    xor.b32 %r20, %r10, 1; mapa.shared::cluster.u32 %r21, %r4, %r20;
    .loc 1 20 0
    ld.shared::cluster.u32 %r22, [%r21];
    st.global.u32 [%rd2], %r22; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)";
  };
  const std::string bad = text("barrier.cluster.arrive.relaxed.aligned;");
  expectFound(bad, text("barrier.cluster.arrive.release.aligned;"), pair, "race.shared", true);
  expectFound(bad, text("fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned;"), pair, "race.shared", true);
  const ClusterOutcome o = runCluster(bad, pair);
  const Finding *f = o.launched.find("race.shared");
  ASSERT_TRUE(f && f->other) << o.launched.text();
  EXPECT_EQ(f->location, "k.cu:20");
  EXPECT_EQ(f->other->location, "k.cu:10");
  EXPECT_TEXT(o, "race.shared", "of block (1,0,0)");
}

TEST(ClusterFindings, S66RemoteStoreAfterThePeerExited) {
  const auto text = [](const std::string &sync) {
    return R"(
    xor.b32 %r20, %r10, 1; mapa.shared::cluster.u32 %r21, %r4, %r20;
    .loc 1 10 0
    st.shared::cluster.u32 [%r21], %r2;
    )" + sync +
           R"(
    .loc 1 30 0
    ret;)";
  };
  const std::string bad = text("bar.sync 0;");
  expectFound(bad, text("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"), pair, "cluster.exited_cta",
              true);
  // That all have come is enough for an exit; nothing need be released.
  expectFound(bad, text("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"), pair,
              "cluster.exited_cta", true);
  // An arrival that nobody waits for is not.
  expectFound(text("barrier.cluster.arrive.aligned;"), text("barrier.cluster.arrive; barrier.cluster.wait;"), pair,
              "cluster.exited_cta", true);
  const ClusterOutcome o = runCluster(bad, pair);
  const Finding *f = o.launched.find("cluster.exited_cta");
  ASSERT_TRUE(f) << o.launched.text();
  EXPECT_EQ(f->location, "k.cu:10");
  EXPECT_TEXT(o, "cluster.exited_cta", "k.cu:30");
}

TEST(ClusterFindings, OneBlockStaysForTheOthers) {
  // Rank 0 is asked by all the others, and waits for them; they need not wait for anybody.
  const auto text = [](const std::string &last) {
    return R"(
    st.shared.u32 [%r4], %r2; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mapa.shared::cluster.u32 %r21, %r4, 0; ld.shared::cluster.u32 %r22, [%r21]; st.global.u32 [%rd2], %r22;
    barrier.cluster.arrive.aligned; setp.ne.u32 %p1, %r10, )" +
           last + "; @%p1 bra OUT; barrier.cluster.wait.aligned;\nOUT: ";
  };
  expectFound(text("1"), text("0"), {{8}, {4}, {64}}, "cluster.exited_cta", true);
}

TEST(ClusterFindings, MissingBarrierBeforeRemoteRead) {
  const auto text = [](const std::string &sync) {
    return "st.shared.u32 [%r4], %r2; " + sync +
           R"( xor.b32 %r20, %r10, 1; mapa.shared::cluster.u32 %r21, %r4, %r20; ld.shared::cluster.u32 %r22, [%r21];
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)";
  };
  // A block's own barrier orders nothing for the others.
  expectFound(text("bar.sync 0;"), text("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"), pair,
              "race.shared", true);
}

TEST(ClusterFindings, RemoteStoresOfTwoBlocksCollide) {
  const auto text = [](const std::string &where) {
    return where + R"( mapa.shared::cluster.u32 %r21, %r20, 0; st.shared::cluster.u32 [%r21], %r2;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)";
  };
  expectFound(text("mov.u32 %r20, %r4;"), text("mad.lo.u32 %r20, %r10, 256, %r4;"), {{4}, {4}, {64}}, "race.shared",
              true);
}

TEST(ClusterFindings, AddressesOfNoBlock) {
  const auto of = [](const std::string &body) { return runCluster(body, pair); };
  const ClusterOutcome rank = of("mapa.shared::cluster.u32 %r20, %r4, 2; ld.shared::cluster.u32 %r21, [%r20];");
  EXPECT_EQ(rank.launched.ids(), "oob.remote");
  EXPECT_TEXT(rank, "oob.remote", "is in the shared memory of block rank 2, which is not in the cluster (2 blocks)");
  for (const char *far : {"16", "17", "255", "256", "0xffffffff"})
    EXPECT_EQ(of(std::string("mapa.shared::cluster.u32 %r20, %r4, ") + far + "; ld.shared::cluster.u32 %r21, [%r20];")
                  .launched.ids(),
              "oob.shared")
        << far;
  const ClusterOutcome own =
      of("xor.b32 %r20, %r10, 1; mapa.shared::cluster.u32 %r20, %r4, %r20; st.shared.u32 [%r20], 1;");
  EXPECT_EQ(own.launched.ids(), "oob.shared");
  EXPECT_TEXT(own, "oob.shared", "this instruction accesses the own block's only");
  const ClusterOutcome end = of("xor.b32 %r20, %r10, 1; mov.u32 %r21, tile; mapa.shared::cluster.u32 %r20, %r21, %r20; "
                                "ld.shared::cluster.u32 %r22, [%r20+4104];");
  EXPECT_EQ(end.launched.ids(), "oob.shared");
  EXPECT_TEXT(end, "oob.shared", "bytes past the end of the shared memory of block rank 1");
  const ClusterOutcome hole = of("xor.b32 %r20, %r10, 1; mapa.shared::cluster.u32 %r20, %r4, %r20; "
                                 "ld.shared::cluster.u32 %r22, [%r20]; barrier.cluster.arrive; barrier.cluster.wait;");
  EXPECT_EQ(hole.launched.ids(), "uninit.shared");
  EXPECT_TEXT(hole, "uninit.shared", "of block (1,0,0)");
}

TEST(ClusterFindings, BarrierUse) {
  const ClusterOutcome twice =
      runCluster("barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait;", pair);
  EXPECT_TRUE(twice.launched.has("barrier.cluster")) << twice.launched.text();
  EXPECT_TRUE(runCluster("barrier.cluster.wait;", pair).launched.has("barrier.cluster"));
}

TEST(ClusterFindings, DeadlockNamesTheMissingBlocks) {
  // Rank 1 waits at its own barrier for a warp that went to the cluster's.
  const ClusterOutcome o = runCluster(R"(
    setp.eq.u32 %p1, %r10, 0; @%p1 bra MEET; setp.lt.u32 %p1, %r2, 32; @%p1 bra MEET; bar.sync 1, 64;
  MEET: barrier.cluster.arrive; barrier.cluster.wait;)",
                                      pair);
  EXPECT_EQ(o.launched.ids(), "deadlock") << o.launched.text();
  EXPECT_TEXT(o, "deadlock",
              "block (0,0,0) warp 0 waits barrier.cluster (96 of 128 threads arrived; missing: block "
              "(1,0,0) warps 1)");
  EXPECT_TEXT(o, "deadlock", "block (1,0,0) warp 1 waits bar 1 (32 of 64 threads arrived: warps 1)");
}
