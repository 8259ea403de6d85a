#include "tests/runtime/FakeCudaFixture.h"

#include <cstring>
#include <thread>

namespace kiln::test {
namespace {

class FakeCudaLaunchTest : public FakeCudaTest {
protected:
  std::vector<std::byte> arguments = std::vector<std::byte>(20);
  LaunchConfig config() { return {{4, 2, 1}, {128, 1, 1}, {0, 0, 0}, 0, nullptr}; }
  Status launch(const LaunchConfig &c) { return kernel->launch(c, arguments); }
};

TEST_F(FakeCudaLaunchTest, PassesTheBufferAndTheShape) {
  load();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    arguments[i] = static_cast<std::byte>(i * 3);
  auto stream = device->createStream();
  LaunchConfig c = config();
  c.dynamicSharedBytes = 512;
  c.stream = stream->get();
  ASSERT_TRUE(launch(c).ok());
  ASSERT_EQ(fake->launches.size(), 1u);
  const FakeLaunch &l = fake->launches[0];
  EXPECT_EQ(l.grid[0], 4u);
  EXPECT_EQ(l.grid[1], 2u);
  EXPECT_EQ(l.block[0], 128u);
  EXPECT_EQ(l.cluster[0], 0u);
  EXPECT_EQ(l.sharedBytes, 512u);
  EXPECT_EQ(l.stream, (*stream)->native());
  ASSERT_EQ(l.arguments.size(), 20u);
  EXPECT_EQ(std::memcmp(l.arguments.data(), arguments.data(), 20), 0);
}

TEST_F(FakeCudaLaunchTest, PaddingAtTheEndIsAllowed) {
  load();
  arguments.resize(24);
  const bool typesKnown = kernel->info().parameters[0].align == 8;
  ASSERT_TRUE(typesKnown);
  EXPECT_TRUE(launch(config()).ok());
}

TEST_F(FakeCudaLaunchTest, ArgumentSizesAreChecked) {
  load();
  for (std::size_t bytes : {0u, 19u, 25u, 40u}) {
    arguments.resize(bytes);
    const Status s = launch(config());
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    EXPECT_EQ(s.message(), "kernel 'add': its 3 parameters take 20 bytes, " + std::to_string(bytes) + " were given");
  }
  EXPECT_TRUE(fake->launches.empty());
}

TEST_F(FakeCudaLaunchTest, NoParametersNoBuffer) {
  fake->parameters.clear();
  open();
  auto m =
      device->loadPtx(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry add() { ret; }\n", "add.ptx");
  ASSERT_TRUE(m.ok());
  auto k = (*m)->kernel("add");
  ASSERT_TRUE(k.ok());
  ASSERT_TRUE((*k)->launch(config(), {}).ok());
  EXPECT_TRUE(fake->launches.at(0).arguments.empty());
}

TEST_F(FakeCudaLaunchTest, LimitsAreCheckedBeforeTheDriverSeesThem) {
  load();
  const auto refused = [&](auto change, const char *part) {
    LaunchConfig c = config();
    change(c);
    const Status s = launch(c);
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    EXPECT_NE(s.message().find(part), std::string::npos) << s.message();
  };
  refused([](LaunchConfig &c) { c.grid.y = 0; }, "grid (4, 0, 1) and block (128, 1, 1) must have no zero");
  refused([](LaunchConfig &c) { c.block.z = 0; }, "must have no zero");
  refused([](LaunchConfig &c) { c.grid.x = 0x80000000u; }, "is larger than the GPU's (2147483647, 65535, 65535)");
  refused([](LaunchConfig &c) { c.grid.z = 65536; }, "is larger than the GPU's");
  refused([](LaunchConfig &c) { c.block = {1, 1, 65}; }, "block (1, 1, 65) is larger than the GPU's (1024, 1024, 64)");
  refused([](LaunchConfig &c) { c.block = {1024, 2, 1}; }, "or 1024 threads");
  refused([](LaunchConfig &c) { c.dynamicSharedBytes = 232448 - 1023; },
          "231425 bytes of dynamic and 1024 of static shared memory are more than the GPU's 232448 a block");
  refused([](LaunchConfig &c) { c.cluster = {3, 1, 1}; }, "is no multiple of the cluster (3, 1, 1)");
  EXPECT_TRUE(fake->launches.empty());
}

TEST_F(FakeCudaLaunchTest, TheKernelsOwnLimits) {
  fake->functionAttributes[0] = 256;
  fake->functionAttributes[10] = 1;
  load();
  LaunchConfig c = config();
  c.cluster = {2, 1, 1};
  c.block.x = 512;
  EXPECT_NE(launch(c).message().find("has 512 threads; the kernel allows 256"), std::string::npos);
  c.block.x = 128;
  EXPECT_TRUE(launch(c).ok());
  c.cluster = {0, 0, 0};
  EXPECT_NE(launch(c).message().find("needs a cluster size at launch"), std::string::npos);
}

TEST_F(FakeCudaLaunchTest, LargeSharedMemoryIsAskedForOnce) {
  load();
  LaunchConfig c = config();
  c.dynamicSharedBytes = 49152 - 1024;
  ASSERT_TRUE(launch(c).ok());
  EXPECT_TRUE(fake->attributesSet.empty());
  for (unsigned bytes : {100000u, 100000u, 60000u, 200000u}) {
    c.dynamicSharedBytes = bytes;
    ASSERT_TRUE(launch(c).ok());
  }
  EXPECT_EQ(fake->attributesSet, (std::vector<std::pair<int, int>>{{8, 100000}, {8, 200000}}));
  fake->failures = {{"cuFuncSetAttribute", 1}};
  c.dynamicSharedBytes = 210000;
  EXPECT_NE(launch(c).message().find("allowing kernel 'add' 210000 bytes of dynamic shared memory"), std::string::npos);
}

TEST_F(FakeCudaLaunchTest, ClustersAreALaunchAttribute) {
  load();
  LaunchConfig c = config();
  c.grid = {32, 1, 1};
  c.cluster = {2, 1, 1};
  ASSERT_TRUE(launch(c).ok());
  EXPECT_EQ(fake->launches[0].cluster[0], 2u);
  EXPECT_EQ(fake->launches[0].cluster[1], 1u);
  EXPECT_EQ(fake->launches[0].grid[0], 32u);
  EXPECT_TRUE(fake->attributesSet.empty());
  c.cluster = {16, 1, 1};
  ASSERT_TRUE(launch(c).ok());
  ASSERT_TRUE(launch(c).ok());
  EXPECT_EQ(fake->attributesSet, (std::vector<std::pair<int, int>>{{14, 1}}));
}

TEST_F(FakeCudaLaunchTest, CooperativeIsALaunchAttribute) {
  load();
  LaunchConfig c = config();
  ASSERT_TRUE(launch(c).ok());
  c.grid = {32, 1, 1};
  c.cooperative = true;
  ASSERT_TRUE(launch(c).ok());
  c.cluster = {2, 1, 1};
  ASSERT_TRUE(launch(c).ok());
  ASSERT_EQ(fake->launches.size(), 3u);
  EXPECT_FALSE(fake->launches[0].cooperative);
  EXPECT_TRUE(fake->launches[1].cooperative);
  EXPECT_EQ(fake->launches[1].cluster[0], 0u);
  EXPECT_TRUE(fake->launches[2].cooperative);
  EXPECT_EQ(fake->launches[2].cluster[0], 2u);
}

/// As an H200 answers for .reqnctapercluster: the size must be set, and is that.
TEST_F(FakeCudaLaunchTest, AKernelsOwnClusterIsGivenToTheLaunch) {
  fake->functionAttributes[10] = 1;
  fake->functionAttributes[11] = 2;
  fake->functionAttributes[12] = 1;
  fake->functionAttributes[13] = 1;
  load();
  LaunchConfig c = config();
  c.grid = {32, 1, 1};
  ASSERT_TRUE(launch(c).ok());
  EXPECT_EQ(fake->launches[0].cluster[0], 2u);
  c.cluster = {2, 1, 1};
  ASSERT_TRUE(launch(c).ok());
  c.cluster = {4, 1, 1};
  EXPECT_NE(launch(c).message().find("the kernel requires (2, 1, 1) (.reqnctapercluster)"), std::string::npos)
      << launch(c).message();
  c.cluster = {};
  c.cluster.x = c.cluster.y = c.cluster.z = 0;
  c.grid = {31, 1, 1};
  EXPECT_NE(launch(c).message().find("is no multiple of the cluster"), std::string::npos) << launch(c).message();
}

TEST_F(FakeCudaLaunchTest, ALaunchFailureNamesTheKernelAndTheShape) {
  load();
  fake->failures = {{"cuLaunchKernel", 701}};
  const Status s = launch(config());
  EXPECT_EQ(s.message(),
            "launching kernel 'add' with grid (4, 2, 1), block (128, 1, 1), 0 bytes of dynamic shared memory "
            "(cuLaunchKernel) on cuda:0: CUDA error 701");
  EXPECT_NE(s.remedy().find("launch fewer threads"), std::string::npos);
}

TEST_F(FakeCudaLaunchTest, AFaultNamesTheLastKernel) {
  load();
  ASSERT_TRUE(launch(config()).ok());
  fake->failures = {{"cuStreamSynchronize", 700}};
  const Status s = device->defaultStream().synchronize();
  EXPECT_EQ(s.message(), "waiting for a stream (cuStreamSynchronize) on cuda:0, after kernel 'add' was launched: "
                         "CUDA_ERROR_ILLEGAL_ADDRESS (as the driver explains it)");
  EXPECT_NE(s.remedy().find("emulator"), std::string::npos);
  EXPECT_EQ(s.exitCode(), 4);
}

} // namespace
} // namespace kiln::test
