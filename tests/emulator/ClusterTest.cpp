// Clusters: shapes, numbers, addresses of other blocks' shared memory, barrier.cluster.  Results against what the PTX
// ISA says of ranks, written out here.
#include "tests/emulator/ClusterKernels.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

/// Where block `linear` is, and what its cluster is.
struct Where {
  Dim3 at, cluster, inCluster;
  std::uint32_t rank;
};
Where whereIs(std::uint64_t linear, const ClusterShape &s) {
  const auto g = s.grid, c = s.cluster;
  const Dim3 at{static_cast<std::uint32_t>(linear % g.x), static_cast<std::uint32_t>(linear / g.x % g.y),
                static_cast<std::uint32_t>(linear / g.x / g.y)};
  const Dim3 in{at.x % c.x, at.y % c.y, at.z % c.z};
  return {at, {at.x / c.x, at.y / c.y, at.z / c.z}, in, in.x + c.x * (in.y + c.y * in.z)};
}
std::uint64_t linearOf(const Where &w, std::uint32_t rank, const ClusterShape &s) {
  const auto g = s.grid, c = s.cluster;
  const std::uint64_t x = w.cluster.x * c.x + rank % c.x, y = w.cluster.y * c.y + rank / c.x % c.y,
                      z = w.cluster.z * c.z + rank / c.x / c.y;
  return (z * g.y + y) * g.x + x;
}

const ClusterShape shapes[] = {
    {{3}, {1}, {32}},
    {{4}, {2}, {64}},
    {{8}, {4}, {96}},
    {{16}, {8}, {32}},
    {{16}, {16}, {33}},
    {{4, 2}, {2, 2}, {64}},
    {{2, 6}, {1, 3}, {40}},
    {{4, 4, 2}, {2, 2, 2}, {32}},
    {{2, 2, 8}, {1, 1, 8}, {64}},
    {{4, 4, 4}, {4, 1, 4}, {32}},
    {{6, 2, 3}, {3, 1, 1}, {50}},
    {{5, 4}, {5, 2}, {32}},
};

/// Every thread reads the words of thread t of all blocks of its cluster.
const std::string exchange = R"(
    mad.lo.u32 %r20, %r12, 1000, %r2; st.shared.u32 [%r4], %r20;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    mov.u32 %r21, 0; mov.u32 %r22, 0;
  LOOP: mapa.shared::cluster.u32 %r23, %r4, %r22; ld.shared::cluster.u32 %r24, [%r23];
    add.u32 %r25, %r22, 1; mad.lo.u32 %r21, %r24, %r25, %r21; add.u32 %r22, %r22, 1;
    setp.lt.u32 %p1, %r22, %r11; @%p1 bra LOOP;
    st.global.u32 [%rd2], %r21;
    barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
)";

} // namespace

TEST(Cluster, EveryShapeReachesEveryBlock) {
  for (const ClusterShape &s : shapes)
    for (const ClusterSetting &setting : clusterSettings(pick(3u, 20u))) {
      const ClusterOutcome o = runCluster(exchange, s, setting);
      ASSERT_TRUE(o.launched.clean()) << setting.text() << o.launched.text();
      for (std::uint64_t b = 0; b < s.grid.count(); ++b) {
        const Where w = whereIs(b, s);
        for (std::uint32_t t = 0; t < s.block.x; ++t) {
          std::uint32_t expected = 0;
          for (std::uint32_t r = 0; r < s.cluster.count(); ++r)
            expected += (static_cast<std::uint32_t>(linearOf(w, r, s)) * 1000 + t) * (r + 1);
          ASSERT_EQ(o.values[b * s.block.x + t], expected) << setting.text() << " block " << b << " thread " << t;
        }
      }
    }
}

TEST(Cluster, SpecialRegisters) {
  const char *const names[] = {"%clusterid.x",     "%clusterid.y",      "%clusterid.z",      "%nclusterid.x",
                               "%nclusterid.y",    "%nclusterid.z",     "%cluster_ctaid.x",  "%cluster_ctaid.y",
                               "%cluster_ctaid.z", "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z",
                               "%cluster_ctarank", "%cluster_nctarank"};
  std::string body;
  unsigned i = 0;
  for (const char *name : names)
    body += "setp.eq.u32 %p1, %r2, " + std::to_string(i++) + "; @%p1 mov.u32 %r20, " + name + ";\n";
  body += "setp.eq.u32 %p1, %r2, 14; mov.pred %p2, %is_explicit_cluster; selp.u32 %r21, 1, 0, %p2; @%p1 mov.u32 %r20, "
          "%r21;\n"
          "setp.lt.u32 %p1, %r2, 15; @%p1 st.global.u32 [%rd2], %r20;";
  for (const ClusterShape &s : shapes) {
    ClusterShape shape = s;
    shape.block = {32};
    const ClusterOutcome o = runCluster(body, shape);
    ASSERT_TRUE(o.launched.clean()) << o.launched.text();
    for (std::uint64_t b = 0; b < s.grid.count(); ++b) {
      const Where w = whereIs(b, s);
      const std::uint32_t expected[] = {w.cluster.x,
                                        w.cluster.y,
                                        w.cluster.z,
                                        s.grid.x / s.cluster.x,
                                        s.grid.y / s.cluster.y,
                                        s.grid.z / s.cluster.z,
                                        w.inCluster.x,
                                        w.inCluster.y,
                                        w.inCluster.z,
                                        s.cluster.x,
                                        s.cluster.y,
                                        s.cluster.z,
                                        w.rank,
                                        static_cast<std::uint32_t>(s.cluster.count()),
                                        1};
      for (unsigned r = 0; r < std::size(expected); ++r)
        EXPECT_EQ(o.values[b * 32 + r], expected[r]) << "block " << b << " register " << r;
    }
  }
  ClusterShape none{{2}, {0, 0, 0}, {32}};
  const ClusterOutcome o = runCluster(body, none);
  EXPECT_EQ(o.values[14], 0u);
  EXPECT_EQ(o.values[13], 1u);
}

TEST(Cluster, SizesOfSharedMemory) {
  // 4096 bytes of `tile`, 8 of `bar`, 1000 dynamic ones: as an H200 has it.
  Emulator gpu;
  auto &out = gpu.upload(std::vector<std::uint32_t>(6, 0), "out");
  const std::string body = R"(.shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [out]; mov.u32 %r9, tile; st.shared.u32 [%r9], %r9; mov.u32 %r9, bar; st.shared.u32 [%r9], %r9;
    mov.u32 %r1, %total_smem_size; mov.u32 %r2, %aggr_smem_size; mov.u32 %r3, %dynamic_smem_size;
    st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2; st.global.u32 [%rd1+8], %r3;)";
  ASSERT_TRUE(gpu.run(kernelText(".param .u64 out", body), {1}, {1}, {out}, 1000).clean());
  EXPECT_EQ(gpu.download<std::uint32_t>(out)[0], 0x1400u);
  EXPECT_EQ(gpu.download<std::uint32_t>(out)[1], 0x17f0u);
  EXPECT_EQ(gpu.download<std::uint32_t>(out)[2], 1000u);
}

TEST(Cluster, GenericAddressesAndRanks) {
  // Warp lanes go to different blocks at once, through generic addresses and .shared::cluster ones; own words too.
  const std::string body = R"(
    st.shared.u32 [%r4], %r12; barrier.cluster.arrive; barrier.cluster.wait;
    rem.u32 %r20, %r2, %r11; cvt.u64.u32 %rd10, %r4; cvta.shared.u64 %rd11, %rd10; mapa.u64 %rd12, %rd11, %r20; ld.u32 %r21, [%rd12];
    getctarank.u64 %r22, %rd12; setp.ne.u32 %p1, %r22, %r20; @%p1 trap;
    isspacep.shared::cta %p2, %rd12; setp.eq.u32 %p3, %r20, %r10; xor.pred %p2, %p2, %p3; @%p2 trap;
    isspacep.shared::cluster %p2, %rd12; @!%p2 trap; mapa.u64 %rd14, %rd11, 11; isspacep.shared::cluster %p2, %rd14; @!%p2 trap; isspacep.shared::cta %p2, %rd14; @%p2 trap;
    mapa.shared::cluster.u32 %r23, %r4, %r20; getctarank.shared::cluster.u32 %r24, %r23; setp.ne.u32 %p1, %r24, %r20; @%p1 trap;
    cvta.to.shared::cluster.u64 %rd13, %rd12; cvt.u32.u64 %r25, %rd13; setp.ne.u32 %p1, %r25, %r23; @%p1 trap;
    ld.shared::cluster.u32 %r26, [%r23]; setp.ne.u32 %p1, %r26, %r21; @%p1 trap;
    getctarank.shared::cluster.u32 %r27, tile; setp.ne.u32 %p1, %r27, %r10; @%p1 trap;
    ld.shared::cta.u32 %r28, [%r4]; setp.ne.u32 %p1, %r28, %r12; @%p1 trap;
    st.global.u32 [%rd2], %r21; barrier.cluster.arrive; barrier.cluster.wait;
)";
  const ClusterShape s{{8, 2}, {4, 2}, {96}};
  for (const ClusterSetting &setting : clusterSettings(4)) {
    const ClusterOutcome o = runCluster(body, s, setting);
    ASSERT_TRUE(o.launched.clean()) << setting.text() << o.launched.text();
    for (std::uint64_t b = 0; b < s.grid.count(); ++b)
      for (std::uint32_t t = 0; t < s.block.x; ++t)
        ASSERT_EQ(o.values[b * s.block.x + t], linearOf(whereIs(b, s), t % 8, s));
  }
}

TEST(Cluster, RemoteStoresAndAtomics) {
  // A counter in rank 0, a vector store into the next block.
  const std::string body = R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [tile+2048], 0; barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 %r20, tile; add.u32 %r20, %r20, 2048; mapa.shared::cluster.u32 %r20, %r20, 0;
    atom.shared::cluster.add.u32 %r21, [%r20], 3; red.relaxed.cluster.shared::cluster.max.u32 [%r20], 1;
    add.u32 %r22, %r10, 1; rem.u32 %r22, %r22, %r11; shl.b32 %r23, %r2, 4; mov.u32 %r24, tile; add.u32 %r23, %r24, %r23; mapa.shared::cluster.u32 %r23, %r23, %r22;
    st.shared::cluster.v4.u32 [%r23], {%r10, %r2, %r10, %r2};
    barrier.cluster.arrive; barrier.cluster.wait;
    ld.shared::cluster.u32 %r25, [%r20]; shl.b32 %r23, %r2, 4; add.u32 %r23, %r24, %r23; ld.shared.v4.u32 {%r26, %r27, %r28, %r29}, [%r23];
    mad.lo.u32 %r25, %r25, 1000, %r26; mad.lo.u32 %r25, %r25, 1000, %r29; st.global.u32 [%rd2], %r25;
    barrier.cluster.arrive; barrier.cluster.wait;
)";
  const ClusterShape s{{8}, {4}, {64}};
  for (const ClusterSetting &setting : clusterSettings(4)) {
    const ClusterOutcome o = runCluster(body, s, setting);
    ASSERT_TRUE(o.launched.clean()) << setting.text() << o.launched.text();
    for (std::uint32_t b = 0; b < 8; ++b)
      for (std::uint32_t t = 0; t < 64; ++t)
        ASSERT_EQ(o.values[b * 64 + t], (4u * 64 * 3 * 1000 + (b + 3) % 4) * 1000 + t);
  }
}

TEST(Cluster, BarriersWithRaggedExits) {
  // Warps leave at different times; those left go on meeting, in phases that split arrival and wait.
  const std::string body = R"(
    shr.u32 %r3, %r2, 5; add.u32 %r20, %r3, %r10; and.b32 %r20, %r20, 3; add.u32 %r20, %r20, 1; mov.u32 %r21, 0; mov.u32 %r22, 0;
  LOOP: setp.ge.u32 %p1, %r22, %r20; @%p1 bra DONE;
    atom.shared.add.u32 %r23, [tile+2048], 1;
    barrier.cluster.arrive.aligned; add.u32 %r21, %r21, 1; barrier.cluster.wait.aligned;
    add.u32 %r22, %r22, 1; bra LOOP;
  DONE: st.global.u32 [%rd2], %r21;
)";
  const std::string text = "setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [tile+2048], 0; bar.sync 0;" + body;
  for (const ClusterShape &s :
       {ClusterShape{{4}, {2}, {128}}, ClusterShape{{8, 2}, {4, 2}, {96}}, ClusterShape{{16}, {16}, {160}}})
    for (const ClusterSetting &setting : clusterSettings(20)) {
      const ClusterOutcome o = runCluster(text, s, setting);
      ASSERT_TRUE(o.launched.clean()) << setting.text() << o.launched.text();
      for (std::uint64_t b = 0; b < s.grid.count(); ++b)
        for (std::uint32_t t = 0; t < s.block.x; ++t)
          ASSERT_EQ(o.values[b * s.block.x + t], ((t / 32 + whereIs(b, s).rank) & 3) + 1);
    }
}

TEST(Cluster, CountsDoNotDependOnHostThreads) {
  const ClusterShape s{{32, 4}, {4, 2}, {96}};
  const ClusterOutcome one = runCluster(exchange, s), four = runCluster(exchange, s, {Schedule::InOrder, 0, 4});
  ASSERT_TRUE(one.launched.clean()) << one.launched.text();
  EXPECT_EQ(one.values, four.values);
  EXPECT_EQ(one.launched.statistics.warpInstructions, four.launched.statistics.warpInstructions);
  EXPECT_EQ(one.launched.statistics.threadInstructions, four.launched.statistics.threadInstructions);
}

TEST(Cluster, GlobalFlagsBetweenClusters) {
  // Cluster 1 waits for cluster 0 through global memory, all its blocks; in order they take turns.
  const std::string body = R"(
    mov.u32 %r20, %clusterid.x; setp.eq.u32 %p1, %r20, 0; @%p1 bra FIRST;
  WAIT: ld.acquire.gpu.global.u32 %r21, [%rd1]; setp.lt.u32 %p2, %r21, 128; @%p2 bra WAIT;
    bra OUT;
  FIRST: barrier.cluster.arrive; barrier.cluster.wait; red.release.gpu.global.add.u32 [%rd1], 1;
  OUT: st.global.u32 [%rd2], %r20;
)";
  for (const ClusterSetting &setting : clusterSettings(6)) {
    const ClusterOutcome o = runCluster(body, {{6}, {2}, {64}}, setting);
    ASSERT_TRUE(o.launched.clean()) << setting.text() << o.launched.text();
    EXPECT_EQ(o.values[5 * 64], 2u);
  }
}

TEST(ClusterLaunch, Refusals) {
  const auto says = [](const ClusterShape &s, std::string_view directives, std::string_view part,
                       std::string_view target = "sm_90a") {
    const ClusterOutcome o = runCluster("", s, {}, directives, target);
    EXPECT_NE(o.launched.status.toString().find(part), std::string::npos) << o.launched.text();
  };
  says({{4}, {17}, {32}}, "", "a cluster of 17,1,1 has more than 16 blocks");
  says({{16, 16}, {4, 8}, {32}}, "", "a cluster of 4,8,1 has more than 16 blocks");
  says({{4}, {0x10000, 0x10000, 0x10000}, {32}}, "", "has more than 16 blocks");
  says({{5}, {2}, {32}}, "", "the grid 5,1,1 is no multiple of the cluster 2,1,1");
  says({{4, 3}, {2, 2}, {32}}, "", "the grid 4,3,1 is no multiple of the cluster 2,2,1");
  says({{4}, {2, 0, 1}, {32}}, "", "the cluster is 2,0,1");
  says({{4}, {0, 0, 0}, {32}}, ".explicitcluster\n", "the kernel needs a cluster size (.explicitcluster)");
  says({{4}, {4}, {32}}, ".reqnctapercluster 2, 1, 1\n", "the cluster is 4,1,1, the kernel requires 2,1,1");
  says({{4}, {4}, {32}}, ".maxclusterrank 2\n", "has 4 blocks, the kernel allows 2 (.maxclusterrank)");
  says({{3}, {0, 0, 0}, {32}}, ".reqnctapercluster 2, 1, 1\n", "the grid 3,1,1 is no multiple");
  says({{4}, {2}, {32}}, "", "clusters need sm_90 or newer, the device is sm_80", "sm_80");
  says({{4}, {0, 0, 0}, {32}}, ".explicitcluster\n", "clusters need sm_90 or newer", "sm_80");
  says({{4}, {0, 0, 0}, {32}}, ".blocksareclusters .reqnctapercluster 2, 1, 1\n",
       ".blocksareclusters needs .reqntid and .reqnctapercluster");
  says({{1, 65535}, {0, 0, 0}, {32}}, ".blocksareclusters .reqntid 32 .reqnctapercluster 1, 2, 1\n", "is too large");
}

TEST(ClusterLaunch, Directives) {
  const std::string body = "st.global.u32 [%rd2], %r11;";
  for (const char *d : {".reqnctapercluster 2, 1, 1\n", ".explicitcluster .reqnctapercluster 2\n",
                        ".explicitcluster .reqnctapercluster 2 .maxclusterrank 4\n"}) {
    const ClusterOutcome o = runCluster(body, {{4}, {0, 0, 0}, {32}}, {}, d);
    ASSERT_TRUE(o.launched.clean()) << d << o.launched.text();
    EXPECT_EQ(o.values[0], 2u);
    EXPECT_TRUE(runCluster(body, {{4}, {2}, {32}}, {}, d).launched.clean());
  }
  EXPECT_TRUE(runCluster(body, {{4}, {4}, {32}}, {}, ".explicitcluster\n").launched.clean());
}

TEST(ClusterLaunch, BlocksAreClusters) {
  // The grid says how many clusters: 2 of them, 6 blocks.
  Emulator gpu;
  auto &out = gpu.upload(std::vector<std::uint32_t>(8, 99), "out");
  const Launched r = gpu.run(
      kernelText(
          ".param .u64 out",
          R"(ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
        mov.u32 %r2, %nctaid.x; mov.u32 %r3, %nclusterid.x; mad.lo.u32 %r2, %r2, 10, %r3; st.global.u32 [%rd1], %r2;)",
          "sm_90a", "", ".blocksareclusters .reqntid 32 .reqnctapercluster 3, 1, 1\n"),
      {2}, {32}, {out});
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(gpu.download<std::uint32_t>(out), (std::vector<std::uint32_t>{62, 62, 62, 62, 62, 62, 99, 99}));
}
