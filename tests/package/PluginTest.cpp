// Pass plugins in the JIT and in kiln-opt: they run where they are told to, another build of one is another key, and
// what cannot be loaded is refused by name.
#include "compiler/pipeline/CompilerTable.h"
#include "kiln/Jit.h"
#include "kiln/Language.h"
#include "runtime/jit/CompilerLibrary.h"
#include "tests/package/Shell.h"

#include <filesystem>
#include <fstream>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr const char *library = KILN_BINARY_DIR "/bin/libkiln-compiler.so";

std::string plugin(const std::string &name) {
  return std::string(KILN_BINARY_DIR "/tests/kiln-plugin-") + name + ".so";
}

/// out = x + 7
Result<KernelSource> plusSeven() {
  using namespace language;
  return sourceOf(kernel("plus_seven", {}, [](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "out"> out) {
    auto i = range(0, 128);
    store(out + i, load(x + i) + 7.0f);
  }));
}

class PluginTest : public testing::Test {
protected:
  void SetUp() override {
    auto opened = openDevice("emulator:sm_80");
    ASSERT_TRUE(opened.ok());
    device = std::move(*opened);
  }

  JitOptions with(const std::string &path, const std::string &passes = "tile=test-seven") const {
    JitOptions options;
    options.knobs.compiler = library;
    options.knobs.cacheDir = folder.path() + "/cache";
    if (!path.empty())
      options.knobs.plugins = {path};
    options.knobs.passes = passes;
    return options;
  }

  /// What the kernel adds to every element, or why it did not run.  `report` is then that of the first call.
  Result<float> added(Jit &jit) {
    KILN_ASSIGN(const KernelSource source, plusSeven());
    KILN_ASSIGN(JitKernel * kernel, jit.kernel(source));
    std::vector<float> x(128), out(128);
    for (int i = 0; i < 128; ++i)
      x[i] = 0.25f * static_cast<float>(i);
    KILN_ASSIGN(std::unique_ptr<Buffer> from, device->allocate(512, "x"));
    KILN_ASSIGN(std::unique_ptr<Buffer> to, device->allocate(512, "out"));
    KILN_TRY(from->copyFromHost(0, std::as_bytes(std::span(x))));
    KILN_TRY(to->poison(std::byte{0xCD}));
    KILN_ASSIGN(const LoadedKernel *loaded, kernel->prepare(ArgumentPack(*from, *to).view()));
    report = loaded->report();
    key = loaded->key();
    KILN_TRY(kernel->launch({1}, nullptr, *from, *to));
    KILN_TRY(device->defaultStream().synchronize());
    KILN_TRY(to->copyToHost(0, std::as_writable_bytes(std::span(out))));
    for (int i = 0; i < 128; ++i)
      if (out[i] - x[i] != out[0] - x[0])
        return Status(StatusCode::Internal, "elements differ");
    return out[0] - x[0];
  }
  Result<float> added(const JitOptions &options) {
    KILN_ASSIGN(std::unique_ptr<Jit> jit, Jit::create(*device, options));
    return added(*jit);
  }
  void expectAdded(const JitOptions &options, float wanted, FirstCallReport::Source source) {
    const Result<float> got = added(options);
    ASSERT_TRUE(got.ok()) << got.status().toString();
    EXPECT_EQ(*got, wanted);
    EXPECT_EQ(report.source, source) << report.toString();
  }

  TemporaryDirectory folder;
  std::unique_ptr<Device> device;
  FirstCallReport report;
  std::string key;
};

constexpr auto compiled = FirstCallReport::Source::Compiled, onDisk = FirstCallReport::Source::Disk;

TEST_F(PluginTest, RunsAtJitTimeAndItsContentsAreInTheKey) {
  expectAdded(with("", ""), 7, compiled);
  const std::string plain = key;
  expectAdded(with(plugin("eight")), 8, compiled);
  const std::string eight = key;
  EXPECT_NE(eight, plain);
  expectAdded(with(plugin("eight")), 8, onDisk);
  EXPECT_EQ(key, eight);
  expectAdded(with(plugin("nine")), 9, compiled);
  EXPECT_NE(key, eight);
  expectAdded(with("", ""), 7, onDisk);
  // The contents count, not the path.
  std::filesystem::copy_file(plugin("eight"), folder.path() + "/copy.so");
  expectAdded(with(folder.path() + "/copy.so"), 8, onDisk);
}

TEST_F(PluginTest, AnotherBuildUnderTheSamePathIsLoadedByTheSameProcess) {
  const std::string path = folder.path() + "/plugin.so";
  auto jit = Jit::create(*device, with(path));
  ASSERT_TRUE(jit.ok());
  for (const auto &[name, wanted] : {std::pair("eight", 8.0f), std::pair("nine", 9.0f), std::pair("eight", 8.0f)}) {
    // As linkers write: a new file under the old name.
    std::filesystem::copy_file(plugin(name), path + ".new");
    std::filesystem::rename(path + ".new", path);
    auto again = Jit::create(*device, with(path));
    ASSERT_TRUE(again.ok());
    const Result<float> got = added(**again);
    ASSERT_TRUE(got.ok()) << got.status().toString();
    EXPECT_EQ(*got, wanted);
  }
}

TEST_F(PluginTest, NoPluginIsMappedIntoTheProcess) {
  expectAdded(with(plugin("eight")), 8, compiled);
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), {});
  EXPECT_EQ(text.find("kiln-plugin-eight"), std::string::npos);
}

TEST_F(PluginTest, PassesAreAddedToEachStage) {
  // Constants become LLVM's before the last stage ends: there is nothing left to change.
  for (const auto &[passes, wanted] : {std::pair("tile=test-seven", 8.0f), std::pair("tile_gpu=test-seven", 8.0f),
                                       std::pair("barriers=test-seven", 8.0f), std::pair("lowering=test-seven", 7.0f),
                                       std::pair("tile=canonicalize,test-seven,cse; lowering=cse", 8.0f),
                                       std::pair("tile=test-seven{erase=false}", 8.0f)}) {
    SCOPED_TRACE(passes);
    expectAdded(with(plugin("eight"), passes), wanted, compiled);
  }
  expectAdded(with("", "tile=cse"), 7, compiled); // a pass of MLIR's own, without a plugin
}

TEST_F(PluginTest, WhatCannotWorkIsRefusedByName) {
  const std::string text = folder.path() + "/text.so", broken = folder.path() + "/broken.so";
  std::ofstream(text) << "no ELF\n";
  {
    std::ifstream whole(plugin("eight"), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(whole)), {});
    std::ofstream(broken, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  }
  const struct {
    std::string path, passes;
    std::vector<std::string> says;
  } rows[] = {
      {"/nowhere/plugin.so", "tile=test-seven", {"/nowhere/plugin.so", "No such file", "KILN_PLUGINS"}},
      {folder.path(), "tile=test-seven", {folder.path()}},
      {text, "tile=test-seven", {text, "no pass plugin", "kiln_add_pass_plugin"}},
      {broken, "tile=test-seven", {broken, "no pass plugin"}},
      {plugin("no-entry"), "tile=test-seven", {"no-entry", "mlirGetPassPluginInfo"}},
      {plugin("other-llvm"), "tile=test-seven", {"other-llvm", "libMLIR.so.21.1", "another LLVM", "find_package(Kiln"}},
      {plugin("other-kiln"), "tile=test-seven", {"other-kiln", "another Kiln", "LLVM 21.1.0", "find_package(Kiln"}},
      {plugin("own-mlir"), "tile=test-seven", {"own-mlir", "an MLIR of its own"}},
      {plugin("undefined"), "tile=test-seven", {"undefined", "cannot be loaded", "noSuchFunction"}},
      {plugin("other-api"), "tile=test-seven", {"other-api", "cannot be loaded", "version"}},
      {plugin("crash"), "tile=test-seven", {"crash"}},
      {plugin("eight"), "", {"eight", "no pass of it would run", "KILN_PASSES"}},
      {plugin("eight"), "tile=no-such-pass", {"no-such-pass", "stage 'tile'"}},
      {plugin("eight"), "tile=test-seven{nothing=1}", {"nothing"}},
      {plugin("eight"), "tiles=test-seven", {"no stage 'tiles'", "tile_gpu"}},
      {plugin("eight"), "test-seven", {"no stage 'test-seven'"}},
      {plugin("eight"), "tile=", {"gets no pass"}},
      {plugin("eight"), "tile=cse;tile=cse", {"named twice"}},
      {plugin("eight"), "tile=test-seven{erase=true}", {"there is no kernel"}},
      {plugin("eight"), "tile=func.func(test-seven)", {"test-seven"}},
  };
  for (const auto &row : rows) {
    SCOPED_TRACE(row.path + " " + row.passes);
    const Result<float> got = added(with(row.path, row.passes));
    ASSERT_FALSE(got.ok()) << *got;
    for (const std::string &part : row.says)
      EXPECT_NE(got.status().toString().find(part), std::string::npos) << got.status().toString();
  }
  // Nothing of it was kept, and the process compiles on.
  expectAdded(with("", ""), 7, compiled);
  expectAdded(with(plugin("eight")), 8, compiled);
}

TEST_F(PluginTest, TwoPluginsWithOnePassAreRefused) {
  JitOptions options = with(plugin("eight"));
  options.knobs.plugins.push_back(plugin("nine"));
  const Result<float> got = added(options);
  ASSERT_FALSE(got.ok()) << *got;
  EXPECT_NE(got.status().toString().find("test-seven"), std::string::npos) << got.status().toString();
}

TEST_F(PluginTest, InTheCallersOwnProcessAnotherBuildIsRefused) {
  const std::string path = folder.path() + "/plugin.so";
  std::filesystem::copy_file(plugin("eight"), path);
  JitOptions options = with(path);
  options.knobs.isolation = knob::Isolation::None;
  expectAdded(options, 8, compiled);
  std::filesystem::remove(path);
  std::filesystem::copy_file(plugin("nine"), path);
  const Result<float> got = added(options);
  ASSERT_FALSE(got.ok()) << *got;
  EXPECT_NE(got.status().toString().find("built anew"), std::string::npos) << got.status().toString();
  options.knobs.isolation = knob::Isolation::Thread;
  expectAdded(options, 9, compiled);
}

class KilnOptPluginTest : public PluginTest {
protected:
  Outcome opt(const std::string &arguments) { return shell(KILN_BINARY_DIR "/bin/kiln-opt " + arguments); }
  std::string program() {
    const std::string path = folder.path() + "/plus.mlir";
    const Result<KernelSource> source = plusSeven();
    std::ofstream(path) << source->programText;
    return path;
  }
};

TEST_F(KilnOptPluginTest, LoadsThemAndRunsTheirPasses) {
  const std::string text = program();
  const Outcome plain = opt(text);
  EXPECT_NE(plain.out.find("7.0"), std::string::npos) << plain.out;
  for (const char *how : {" --load-pass-plugin=", " --load-pass-plugin ", " -load-pass-plugin="})
    for (const char *pass : {" --test-seven", " '--pass-pipeline=builtin.module(test-seven)'",
                             " '--kiln-stage-tile=target=sm_80 passes=test-seven'"}) {
      const Outcome got = opt(text + how + plugin("eight") + pass);
      EXPECT_EQ(got.status, 0) << got.out;
      EXPECT_EQ(got.out.find("7.0"), std::string::npos) << got.out;
      EXPECT_NE(got.out.find("8.0"), std::string::npos) << got.out;
    }
}

TEST_F(KilnOptPluginTest, PtxStageByStageIsThatOfOneCompile) {
  const std::string text = program();
  const std::string staged = "'--kiln-stage-tile=target=sm_80 passes=test-seven' '--kiln-stage-tile-gpu=passes=cse "
                             "barrier-passes=cse' --kiln-stage-lowering=passes=cse --emit-ptx";
  const Outcome byOpt = opt(text + " --load-pass-plugin=" + plugin("eight") + " " + staged);
  ASSERT_EQ(byOpt.status, 0) << byOpt.out;
  const Outcome byKiln = shell("KILN_PLUGINS=" + plugin("eight") +
                               " KILN_PASSES='tile=test-seven;tile_gpu=cse;barriers=cse;"
                               "lowering=cse' KILN_CACHE_DIR=off " KILN_BINARY_DIR "/bin/kiln compile " +
                               text + " --target sm_80");
  ASSERT_EQ(byKiln.status, 0) << byKiln.out;
  EXPECT_NE(byOpt.out.find(".entry plus_seven"), std::string::npos);
  EXPECT_EQ(byOpt.out, byKiln.out);
}

TEST_F(KilnOptPluginTest, WhatItCannotLoadIsAnError) {
  const std::string text = program();
  for (const auto &[name, says] :
       {std::pair("nowhere", "cannot be read"), std::pair("no-entry", "mlirGetPassPluginInfo"),
        std::pair("other-llvm", "libMLIR.so.21.1"), std::pair("other-kiln", "another Kiln"),
        std::pair("undefined", "noSuchFunction"), std::pair("other-api", "version")}) {
    const Outcome got = opt(text + " --load-pass-plugin=" + plugin(name));
    EXPECT_EQ(got.status, 1) << got.out;
    EXPECT_NE(got.out.find(says), std::string::npos) << got.out;
  }
  const Outcome passes = opt(text + " '--kiln-stage-tile=target=sm_80 passes=no-such-pass'");
  EXPECT_EQ(passes.status, 1);
  EXPECT_NE(passes.out.find("no-such-pass"), std::string::npos) << passes.out;
}

} // namespace
