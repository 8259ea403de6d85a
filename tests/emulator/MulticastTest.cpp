// Bulk copies to several blocks of a cluster, and from one block to another.
#include "tests/emulator/ClusterKernels.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

const std::string meet = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n";
/// Every block's mbarrier expects one arrival; its tile holds 99; rank 0 fills `cells` with 7 and up.
const std::string prepare = R"(
    setp.ne.u32 %p1, %r2, 0; @!%p1 mbarrier.init.shared::cta.b64 [bar], 1; @!%p1 fence.mbarrier_init.release.cluster;
    .loc 1 10 0
    st.shared.u32 [%r4], 99; setp.ne.u32 %p2, %r10, 0; cvt.u64.u32 %rd5, %r5; add.u64 %rd5, %rd5, %rd1;
    add.u32 %r20, %r2, 7; @!%p2 st.global.u32 [%rd5], %r20; fence.proxy.async;
)" + meet;
const std::string expect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n";
const std::string waitFull = R"(
  WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], 0; @!%p9 bra WAIT;
)";

} // namespace

TEST(Multicast, BlocksOfTheMaskGetTheBytes) {
  for (const unsigned mask : {0x1u, 0x2u, 0xBu, 0xFu, 0xAu})
    for (const ClusterSetting &s : clusterSettings(pick(4u, 20u))) {
      const std::string body = prepare + "mov.u16 %h1, " + std::to_string(mask) + "; mov.u32 %r30, " +
                               std::to_string(mask) + R"(; shr.u32 %r30, %r30, %r10; and.b32 %r30, %r30, 1;
    setp.eq.u32 %p3, %r30, 0; or.pred %p4, %p1, %p3; @%p4 bra ISSUE;
    )" + expect + R"(
  ISSUE: or.pred %p5, %p1, %p2; @%p5 bra ISSUED;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd1], 256, [bar], %h1;
  ISSUED: @%p3 bra READ;
    )" + waitFull + R"(
  READ: ld.shared.u32 %r21, [%r4]; st.global.u32 [%rd2], %r21;
)" + meet;
      const ClusterOutcome o = runCluster(body, {{4}, {4}, {64}}, s);
      ASSERT_TRUE(o.launched.clean()) << s.text() << o.launched.text();
      for (unsigned b = 0; b < 4; ++b)
        for (unsigned t = 0; t < 64; ++t)
          ASSERT_EQ(o.values[b * 64 + t], mask >> b & 1 ? t + 7 : 99) << "mask " << mask << " block " << b;
    }
}

TEST(Multicast, ARankOutsideTheClusterIsRefused) {
  const ClusterOutcome o = runCluster(prepare + R"( or.pred %p5, %p1, %p2; @%p5 bra OUT; mov.u16 %h1, 4;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd1], 256, [bar], %h1;
  OUT: )" + meet,
                                      {{2}, {2}, {64}});
  const Finding *f = o.launched.find("oob.remote");
  ASSERT_TRUE(f) << o.launched.text();
  EXPECT_NE(f->message.find("block rank 2, which is not in the cluster"), std::string::npos) << f->message;
}

TEST(Multicast, FromOneBlockToAnother) {
  // Rank r sends its tile to rank r ^ 1, and completes the mbarrier there.
  for (const ClusterSetting &s : clusterSettings(pick(4u, 20u))) {
    const std::string body = R"(
    setp.ne.u32 %p1, %r2, 0; @!%p1 mbarrier.init.shared::cta.b64 [bar], 1; @!%p1 fence.mbarrier_init.release.cluster;
    mad.lo.u32 %r20, %r10, 1000, %r2; st.shared.u32 [%r4+1024], %r20; fence.proxy.async.shared::cta;
)" + meet + "@%p1 bra SENT;" +
                             expect + R"(
    xor.b32 %r21, %r10, 1; mapa.shared::cluster.u32 %r22, %r4, %r21; mov.u32 %r23, bar;
    mapa.shared::cluster.u32 %r23, %r23, %r21;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r22], [tile+1024], 256, [%r23];
  SENT: )" + waitFull + "ld.shared.u32 %r24, [%r4]; st.global.u32 [%rd2], %r24;\n" +
                             meet;
    const ClusterOutcome o = runCluster(body, {{4}, {2}, {64}}, s);
    ASSERT_TRUE(o.launched.clean()) << s.text() << o.launched.text();
    for (unsigned b = 0; b < 4; ++b)
      for (unsigned t = 0; t < 64; ++t)
        ASSERT_EQ(o.values[b * 64 + t], (b % 2 ^ 1) * 1000 + t) << b;
  }
  // The mbarrier must be where the bytes go.
  const ClusterOutcome wrong = runCluster(prepare + R"( or.pred %p5, %p1, %p2; @%p5 bra OUT;
    mapa.shared::cluster.u32 %r22, %r4, 1;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r22], [tile+1024], 256, [bar];
  OUT: )" + meet,
                                          {{2}, {2}, {64}});
  EXPECT_TRUE(wrong.launched.has("mbarrier.other_block")) << wrong.launched.text();
}

TEST(Multicast, S68TheStageOfAnotherBlockIsNotFree) {
  // Rank 1 reads its tile, which rank 0 fills anew.
  const auto text = [](const std::string &between) {
    return prepare + R"(
    .loc 1 30 0
    ld.shared.u32 %r25, [%r4]; st.global.u32 [%rd2], %r25;
    )" + between +
           R"(
    @%p1 bra ISSUED; @!%p2 bra ISSUE;
    )" + expect +
           R"(
    bra ISSUED;
  ISSUE: mov.u16 %h1, 2;
    .loc 1 20 0
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd1], 256, [bar], %h1;
  ISSUED: @!%p2 bra DONE;
    )" + waitFull +
           "DONE: " + meet;
  };
  for (const ClusterSetting &s : clusterSettings()) {
    const ClusterOutcome good = runCluster(text(meet), {{2}, {2}, {64}}, s);
    ASSERT_TRUE(good.launched.clean()) << s.text() << good.launched.text();
    const ClusterOutcome bad = runCluster(text(""), {{2}, {2}, {64}}, s);
    // If the copy comes first, the reader is the one that has not waited.
    const Finding *f = bad.launched.find("race.shared");
    if (s.schedule != Schedule::InOrder && !f)
      f = bad.launched.find("async.missing_wait");
    ASSERT_TRUE(f && f->other) << s.text() << bad.launched.text();
    EXPECT_EQ(std::min(f->location, f->other->location), "k.cu:20") << bad.launched.text();
    EXPECT_EQ(std::max(f->location, f->other->location), "k.cu:30") << bad.launched.text();
  }
}

// The exit of a block that waits for the copy needs no barrier of the cluster: the issuer's last access is the copy.
TEST(Multicast, ABlockThatWaitedForTheCopyMayExit) {
  const auto text = [](const std::string &wait) {
    return prepare + "@%p1 bra ISSUED;" + expect + R"(
    @%p2 bra ISSUED; mov.u16 %h1, 3;
    .loc 1 20 0
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd1], 256, [bar], %h1;
  ISSUED: )" +
           wait + R"(
    .loc 1 30 0
    ret;)";
  };
  const std::string wait = waitFull + "ld.shared.u32 %r24, [%r4]; st.global.u32 [%rd2], %r24;\n";
  // Of rank 1 nobody waits.
  const std::string onlyRank0 = "@%p2 bra GONE;" + wait + "GONE: ";
  for (const ClusterSetting &s : clusterSettings()) {
    const ClusterOutcome good = runCluster(text(wait), {{2}, {2}, {64}}, s);
    ASSERT_TRUE(good.launched.clean()) << s.text() << good.launched.text();
    for (unsigned t = 0; t < 128; ++t)
      ASSERT_EQ(good.values[t], t % 64 + 7) << s.text();
    const ClusterOutcome bad = runCluster(text(onlyRank0), {{2}, {2}, {64}}, s);
    ASSERT_TRUE(bad.launched.has("cluster.exited_cta")) << s.text() << bad.launched.text();
    ASSERT_EQ(bad.launched.find("cluster.exited_cta")->location, "k.cu:20") << s.text();
  }
}
