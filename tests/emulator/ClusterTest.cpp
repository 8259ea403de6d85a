// Clusters: shapes, numbers, addresses of other blocks' shared memory, barrier.cluster, what a launch may ask for.
#include "tests/emulator/ClusterPrograms.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

TEST(Cluster, ProgramsUnderEverySchedule) {
  for (const ClusterProgram &p : memoryPrograms())
    for (const ClusterSetting &setting : clusterSettings(pick(3u, 20u))) {
      const ClusterOutcome o = runCluster(p.body, p.shape, setting, p.directives);
      ASSERT_TRUE(o.launched.clean()) << p.name << " " << setting.text() << o.launched.text();
      ASSERT_EQ(o.values, p.expected) << p.name << " " << setting.text();
    }
}

TEST(Cluster, WithoutOne) {
  const ClusterOutcome o = runCluster("mov.pred %p1, %is_explicit_cluster; selp.u32 %r20, 100, 0, %p1; add.u32 %r20, "
                                      "%r20, %r11; st.global.u32 [%rd2], %r20;",
                                      {{2}, {0, 0, 0}, {32}});
  ASSERT_TRUE(o.launched.clean()) << o.launched.text();
  EXPECT_EQ(o.values[0], 1u);
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

TEST(Cluster, CountsDoNotDependOnHostThreads) {
  const ClusterProgram p = programOf({{{32, 4}, {4, 2}, {96}}, {{3, 5}, {1, 7, RemoteWay::Atomic}, {2, 9}}});
  const ClusterOutcome one = runCluster(p.body, p.shape), four = runCluster(p.body, p.shape, {Schedule::InOrder, 0, 4});
  ASSERT_TRUE(one.launched.clean()) << one.launched.text();
  EXPECT_EQ(one.values, p.expected);
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
