// Clusters from a kernel's text to the launch: blocks see them, targets without refuse them, grids are multiples.
#include "kiln/Language.h"
#include "tests/pipeline/JitHarness.h"

#include "compiler/language/Language.h"

namespace kiln::test {
namespace {

/// Block b writes four words: the cluster's extents along x and z, its rank in the cluster, and the cluster's number.
const char *const ranks = R"(
llvm.func @ranks(%out: !llvm.ptr<1> {tile.name = "out", tile.element = i32})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>, nvvm.cluster_dim = array<i32: 2, 1, 4>} {
  %two = llvm.mlir.constant(2 : i32) : i32
  %x = nvvm.read.ptx.sreg.ctaid.x : i32
  %z = nvvm.read.ptx.sreg.ctaid.z : i32
  %across = nvvm.read.ptx.sreg.nctaid.x : i32
  %start = llvm.mul %z, %across : i32
  %block = llvm.add %start, %x : i32
  %first = llvm.shl %block, %two : i32
  %to = llvm.getelementptr %out[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %a = nvvm.read.ptx.sreg.cluster.nctaid.x : i32
  llvm.store %a, %to : i32, !llvm.ptr<1>
  %to1 = llvm.getelementptr %to[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %b = nvvm.read.ptx.sreg.cluster.nctaid.z : i32
  llvm.store %b, %to1 : i32, !llvm.ptr<1>
  %to2 = llvm.getelementptr %to[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %c = nvvm.read.ptx.sreg.cluster.ctarank : i32
  llvm.store %c, %to2 : i32, !llvm.ptr<1>
  %to3 = llvm.getelementptr %to[3] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %d = nvvm.read.ptx.sreg.clusterid.x : i32
  llvm.store %d, %to3 : i32, !llvm.ptr<1>
  llvm.return
}
)";

KernelSource ranksSource() {
  KernelSource source;
  source.name = "ranks";
  source.programText = ranks;
  source.fileName = "ranks.mlir";
  source.arguments = {{"out", "ptr<i32>"}};
  source.warps = 1;
  return source;
}

TEST(Cluster, BlocksSeeIt) {
  JitOnEmulator gpu;
  auto kernel = gpu.jit->kernel(ranksSource());
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  const unsigned across = 6, deep = 4;
  auto out = gpu.poisoned(across * deep * 16);
  const Status s = (*kernel)->launch({across, 1, deep}, nullptr, *out);
  ASSERT_TRUE(s.ok()) << s.toString();
  gpu.expectNoFindings();
  const std::vector<std::int32_t> words = gpu.download<std::int32_t>(*out);
  for (unsigned z = 0; z < deep; ++z)
    for (unsigned x = 0; x < across; ++x) {
      const std::int32_t *w = &words[4 * (z * across + x)];
      EXPECT_EQ(w[0], 2) << x << " " << z;
      EXPECT_EQ(w[1], 4) << x << " " << z;
      EXPECT_EQ(w[2], static_cast<std::int32_t>(x % 2 + 2 * z)) << x << " " << z;
      EXPECT_EQ(w[3], static_cast<std::int32_t>(x / 2)) << x << " " << z;
    }
}

TEST(Cluster, TheGridIsAMultipleOfIt) {
  JitOnEmulator gpu;
  auto kernel = gpu.jit->kernel(ranksSource());
  ASSERT_TRUE(kernel.ok());
  auto out = gpu.poisoned(1024);
  for (const auto &[grid, text] : {std::pair(Dim3{3, 1, 4}, "3,1,4"), {Dim3{2, 1, 3}, "2,1,3"}}) {
    const Status s = (*kernel)->launch(grid, nullptr, *out);
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    EXPECT_EQ(s.message(), std::string("kernel ranks: the grid ") + text + " is no multiple of the cluster 2,1,4");
    EXPECT_EQ(s.remedy(), "round the grid up");
  }
}

/// out[i] = 2 x[i], one program 128 numbers.
language::Kernel twice(std::array<int, 3> cluster) {
  using namespace language;
  return kernel("twice", {.cluster = cluster}, [](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "out"> out) {
    const auto i = programId() * 128 + range(0, 128);
    store(out + i, load(x + i) * 2.0f);
  });
}

TEST(Cluster, OfARecordedKernel) {
  const Result<KernelSource> source = sourceOf(twice({2, 1, 1}));
  ASSERT_TRUE(source.ok()) << source.status().toString();
  JitOnEmulator gpu;
  auto kernel = gpu.jit->kernel(*source);
  ASSERT_TRUE(kernel.ok());
  std::vector<float> values(512);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i) - 7;
  auto x = gpu.upload(values);
  auto out = gpu.poisoned(2048);
  const Status s = (*kernel)->launch({4}, nullptr, *x, *out);
  ASSERT_TRUE(s.ok()) << s.toString();
  gpu.expectNoFindings();
  const std::vector<float> got = gpu.download<float>(*out);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(got[i], 2 * values[i]) << i;
  EXPECT_EQ((*kernel)->launch({3}, nullptr, *x, *out).code(), StatusCode::InvalidArgument);
  LaunchArguments arguments;
  arguments.add(*x).add(*out);
  auto loaded = (*kernel)->prepare(arguments.view());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ((*loaded)->cluster(), (Dim3{2, 1, 1}));
}

TEST(Cluster, TargetsWithoutRefuseIt) {
  JitOnEmulator gpu("sm_80");
  const Result<KernelSource> recorded = sourceOf(twice({2, 2, 1}));
  ASSERT_TRUE(recorded.ok());
  for (const auto &[source, blocks] : {std::pair(*recorded, "'twice' asks for clusters of 2 x 2 x 1 blocks"),
                                       {ranksSource(), "'ranks' asks for clusters of 2 x 1 x 4 blocks"}}) {
    const auto loaded = gpu.jit->compile(source);
    ASSERT_FALSE(loaded.ok());
    EXPECT_NE(loaded.status().message().find(std::string("kernel ") + blocks +
                                             ", sm_80 has none: it lacks the capability 'clusters'"),
              std::string::npos)
        << loaded.status().message();
    EXPECT_NE(loaded.status().remedy().find("leave the cluster out; targets that have it: sm_90"), std::string::npos)
        << loaded.status().remedy();
  }
  // A cluster of one block is none.
  const Result<KernelSource> alone = sourceOf(twice({1, 1, 1}));
  EXPECT_TRUE(gpu.jit->compile(*alone).ok());
}

} // namespace
} // namespace kiln::test
