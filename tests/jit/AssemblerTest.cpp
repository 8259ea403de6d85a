// PTX, cubin, or the driver's own compiler: what a device gets, and what the key says of it.
#include "runtime/jit/AssemblerChoice.h"
#include "tests/jit/JitFixture.h"
#include "tests/support/OldPtxas.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class AssemblerTest : public JitTest {
protected:
  void SetUp() override {
    JitTest::SetUp();
    gpu.about.kind = DeviceKind::Cuda;
    gpu.about.name = "cuda:0";
  }
  Result<const LoadedKernel *> compile(const JitOptions &options) {
    auto made = Jit::create(gpu, options);
    if (!made)
      return made.takeStatus();
    gpuJit = std::move(*made);
    return gpuJit->compile(addSource());
  }
  NullDevice gpu;
  std::unique_ptr<Jit> gpuJit;
};

TEST_F(AssemblerTest, WithoutAnAssemblerTheDriverGetsPtx) {
  JitOptions options = jitOptions();
  options.codeTarget = "sm_80";
  options.knobs.nvJitLink = options.knobs.ptxas = "none";
  auto loaded = compile(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().toString();
  EXPECT_EQ(gpu.cubins, 0u);
  EXPECT_NE((*loaded)->key().find("driver CUDA 13.0"), std::string::npos);
  EXPECT_NE((*loaded)->key().find("\nsm_90a\n"), std::string::npos); // the assembly arch
  EXPECT_NE((*loaded)->key().find("\nsm_80\n"), std::string::npos);  // the code target
  gpu.about.driver = "CUDA 13.1";
  ASSERT_TRUE(compile(options).ok());
  EXPECT_EQ(compiles(), 2u);
}

TEST_F(AssemblerTest, WithAnAssemblerTheDeviceGetsACubinAndAHitStartsNone) {
  if (auto any = findAssembler(); !any)
    GTEST_SKIP() << any.status().toString();
  JitOptions options = jitOptions();
  options.codeTarget = "sm_80";
  auto loaded = compile(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().toString();
  EXPECT_EQ(gpu.cubins, 1u);
  const std::string key = (*loaded)->key();
  loaded = compile(options);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ((*loaded)->report().source, FirstCallReport::Source::Disk);
  EXPECT_EQ((*loaded)->key(), key);
  EXPECT_EQ(gpu.cubins, 2u);
  EXPECT_EQ(compiles(), 1u);
}

/// A comment is enough to say that registers move: nvJitLink would ignore it.
TEST_F(AssemblerTest, WhatNoAssemblerServesTheDriverAssembles) {
  JitOptions options = jitOptions();
  options.codeTarget = "sm_80";
  options.knobs.ptxas = "none";
  AssemblerSearch search;
  search.ptxas = "none";
  if (auto any = findAssembler(search); !any)
    GTEST_SKIP() << any.status().toString();
  KernelSource source = addSource();
  const std::string entry = ".visible .entry";
  const std::size_t at = source.programText.find(entry);
  ASSERT_NE(at, std::string::npos) << source.programText;
  source.programText.insert(at, "// setmaxnreg\n");
  auto made = Jit::create(gpu, options);
  ASSERT_TRUE(made.ok());
  const auto loaded = (*made)->compile(source);
  ASSERT_TRUE(loaded.ok()) << loaded.status().toString();
  EXPECT_EQ(gpu.cubins, 0u);
  EXPECT_NE((*loaded)->key().find("nvJitLink"), std::string::npos);
}

/// As many registers as it may have: nvJitLink alone is not trusted with it.
TEST_F(AssemblerTest, WhatRanOutOfRegistersTheDriverAssembles) {
  JitOptions options = jitOptions();
  options.codeTarget = "sm_80";
  AssemblerSearch search;
  search.ptxas = options.knobs.ptxas = "none";
  if (auto any = findAssembler(search); !any)
    GTEST_SKIP() << any.status().toString();
  KernelSource source = addSource();
  const std::size_t at = source.programText.find(".visible .entry");
  ASSERT_NE(at, std::string::npos) << source.programText;
  const std::size_t body = source.programText.find('{', at);
  ASSERT_NE(body, std::string::npos);
  source.programText.insert(body, ".maxnreg 8\n");
  for (const auto from : {FirstCallReport::Source::Compiled, FirstCallReport::Source::Disk}) {
    auto made = Jit::create(gpu, options);
    ASSERT_TRUE(made.ok());
    const auto loaded = (*made)->compile(source);
    ASSERT_TRUE(loaded.ok()) << loaded.status().toString();
    EXPECT_EQ((*loaded)->report().source, from);
    EXPECT_EQ(gpu.cubins, 0u);
    EXPECT_NE((*loaded)->key().find("nvJitLink"), std::string::npos);
    EXPECT_NE((*loaded)->metadata().find("\"registers\""), std::string::npos) << (*loaded)->metadata();
  }
}

/// A ptxas that came before this PTX: the driver may know it.
TEST_F(AssemblerTest, WhatAnAssemblerIsTooOldForTheDriverAssembles) {
  const std::string old = folder.path() + "/ptxas";
  writeOldPtxas(old, "Unsupported .version 8.0; current version is '6.0'");
  JitOptions options = jitOptions();
  options.codeTarget = "sm_80";
  options.knobs.ptxas = old;
  options.knobs.nvJitLink = "none";
  auto loaded = compile(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().toString();
  EXPECT_EQ(gpu.cubins, 0u);
  EXPECT_NE((*loaded)->key().find("ptxas release 9.0"), std::string::npos) << (*loaded)->key();
}

TEST_F(AssemblerTest, TheIdentityIsRememberedAndFollowsTheFile) {
  if (auto any = findAssembler(); !any)
    GTEST_SKIP() << any.status().toString();
  cache::CacheOptions how;
  how.directory = folder.path() + "/memo";
  auto opened = cache::KernelCache::open(how);
  ASSERT_TRUE(opened.ok());
  const FileHashes hashes(std::shared_ptr<cache::KernelCache>(std::move(*opened)));
  AssemblerChoice first(gpu.info(), {});
  const std::string identity = first.identity(hashes);
  const std::shared_ptr<const Assembler> used = first.assembler(hashes);
  ASSERT_TRUE(used);
  EXPECT_EQ(identity, used->identity());
  const auto stamp = FileStamp::of(used->path());
  ASSERT_TRUE(stamp.ok());
  const std::string what = "assembler, library '', program ''";
  EXPECT_EQ(hashes.recall(what, used->path(), *stamp), identity);
  FileStamp other = *stamp;
  other.text += " changed";
  EXPECT_EQ(hashes.recall(what, used->path(), other), "");
  // What is remembered is believed, of all files the same: nothing is opened to ask.
  for (const std::string &file : used->files())
    hashes.remember(what, file, *FileStamp::of(file), "remembered");
  AssemblerChoice second(gpu.info(), {});
  EXPECT_EQ(second.identity(hashes), "remembered");
  // Using the assembler puts it right.
  ASSERT_TRUE(second.assembler(hashes));
  EXPECT_EQ(second.identity(hashes), identity);
  // One file that says something else is asked again.
  hashes.remember(what, used->files().back(), *FileStamp::of(used->files().back()), "another");
  AssemblerChoice third(gpu.info(), {});
  if (used->files().size() > 1)
    EXPECT_EQ(third.identity(hashes), identity);
}

/// The key was made with what was remembered; the compile finds another assembler and makes the key again.
TEST_F(AssemblerTest, AnAssemblerThatChangedSinceIsNoticed) {
  auto any = findAssembler();
  if (!any)
    GTEST_SKIP() << any.status().toString();
  JitOptions options = jitOptions();
  options.codeTarget = "sm_80";
  ASSERT_TRUE(compile(options).ok());
  cache::CacheOptions how;
  how.directory = options.knobs.cacheDir + "/identities";
  auto opened = cache::KernelCache::open(how);
  ASSERT_TRUE(opened.ok());
  const FileHashes hashes(std::shared_ptr<cache::KernelCache>(std::move(*opened)));
  for (const std::string &file : (*any)->files())
    hashes.remember("assembler, library '', program ''", file, *FileStamp::of(file), "an older one");
  auto loaded = compile(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().toString();
  EXPECT_EQ((*loaded)->key().find("an older one"), std::string::npos);
  EXPECT_EQ((*loaded)->report().source, FirstCallReport::Source::Disk); // under the key made again
  EXPECT_EQ(compiles(), 1u);
}

TEST(CodeTarget, FollowsTheDeviceOrIsRefused) {
  DeviceInfo info{};
  info.kind = DeviceKind::Cuda;
  info.name = "cuda:0";
  info.sm = 90;
  info.target = *findTarget("sm_90a");
  EXPECT_EQ(*chooseCodeTarget(info, ""), "sm_90a");
  EXPECT_EQ(*chooseCodeTarget(info, "sm_90"), "sm_90");
  EXPECT_EQ(*chooseCodeTarget(info, "sm_80"), "sm_80");
  EXPECT_EQ(assemblyArch(info), "sm_90a");
  EXPECT_EQ(chooseCodeTarget(info, "sm_100").status().code(), StatusCode::Unsupported);
  info.sm = 100;
  info.target = *findTarget("sm_100a");
  EXPECT_NE(
      chooseCodeTarget(info, "sm_90a").status().message().find("the suffix 'a' binds it to compute capability 9.0"),
      std::string::npos);
  info.target = *findTarget("sm_100");
  EXPECT_EQ(chooseCodeTarget(info, "sm_100a").status().code(), StatusCode::Unsupported);
  info.sm = 88; // a GPU that the table does not have
  info.target = nullptr;
  EXPECT_EQ(*chooseCodeTarget(info, ""), "sm_87");
  EXPECT_EQ(assemblyArch(info), "sm_88");
  info.sm = 70;
  EXPECT_EQ(chooseCodeTarget(info, "").status().code(), StatusCode::Unsupported);
}

} // namespace
