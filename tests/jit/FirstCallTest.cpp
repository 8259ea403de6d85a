#include "tests/jit/JitFixture.h"

#include <filesystem>
#include <sys/stat.h>

using namespace kiln;
using namespace kiln::test;

namespace {

class FirstCallTest : public JitTest {
protected:
  /// Launches add on n elements and compares with the host.
  void runAdd(JitKernel &kernel, int n, std::size_t offset = 0) {
    auto x = floats(2000, 1.5f, 0.25f), y = floats(2000, -3, 1), out = floats(2000, -7777, 0);
    const auto at = [&](const Buffer &b) { return b.address() + offset; };
    const Status s = kernel.launch({static_cast<unsigned>(n + 127) / 128}, nullptr, at(*x), at(*y), at(*out), n);
    ASSERT_TRUE(s.ok()) << s.toString();
    std::vector<float> hx(2000), hy(2000), got(2000);
    ASSERT_TRUE(x->copyToHost(0, std::as_writable_bytes(std::span(hx))).ok());
    ASSERT_TRUE(y->copyToHost(0, std::as_writable_bytes(std::span(hy))).ok());
    ASSERT_TRUE(out->copyToHost(0, std::as_writable_bytes(std::span(got))).ok());
    const int first = static_cast<int>(offset / 4);
    for (int i = 0; i < 2000; ++i)
      ASSERT_EQ(got[i], i < first || i >= first + n ? -7777 : hx[i] + hy[i]) << i;
  }
};

TEST_F(FirstCallTest, CompilesRunsAndIsFoundAgain) {
  JitKernel *add = kernelOf(*jit, addSource());
  runAdd(*add, 1000);
  EXPECT_EQ(compiles(), 1u);
  runAdd(*add, 31); // sizes do not specialise
  runAdd(*add, 1);
  EXPECT_EQ(compiles(), 1u);
  EXPECT_EQ(jit->counters().compiles, 1u);
  EXPECT_EQ(jit->counters().loads, 1u);
}

TEST_F(FirstCallTest, AnotherClassIsAnotherCompile) {
  JitKernel *add = kernelOf(*jit, addSource());
  runAdd(*add, 1000);
  runAdd(*add, 900, 4); // pointers that 16 does not divide
  EXPECT_EQ(compiles(), 2u);
  runAdd(*add, 900, 8); // the same class
  EXPECT_EQ(compiles(), 2u);
}

TEST_F(FirstCallTest, AnotherJitFindsItOnDisk) {
  runAdd(*kernelOf(*jit, addSource()), 1000);
  auto second = makeJit();
  runAdd(*kernelOf(*second, addSource()), 1000);
  EXPECT_EQ(compiles(), 1u);
  EXPECT_EQ(second->counters().compiles, 0u);
  EXPECT_EQ(second->counters().diskHits, 1u);
  auto loaded = second->compile(
      addSource(), std::vector<ArgumentFact>{
                       ArgumentFact::divisible(16), ArgumentFact::divisible(16), ArgumentFact::divisible(16), {}});
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ((*loaded)->report().source, FirstCallReport::Source::Disk);
  EXPECT_EQ((*loaded)->variant(), "x/16 y/16 out/16");
}

TEST_F(FirstCallTest, EqualSourcesAreOneKernel) {
  EXPECT_EQ(kernelOf(*jit, addSource()), kernelOf(*jit, addSource()));
  KernelSource other = addSource();
  other.configuration = "block = 256";
  EXPECT_NE(kernelOf(*jit, addSource()), kernelOf(*jit, other));
}

TEST_F(FirstCallTest, TheReportNamesStagesAndTheReason) {
  JitOptions options = jitOptions();
  options.explainMisses = true;
  jit = makeJit(options);
  auto first = jit->compile(addSource());
  ASSERT_TRUE(first.ok()) << first.status().toString();
  const FirstCallReport &report = (*first)->report();
  EXPECT_EQ(report.source, FirstCallReport::Source::Compiled);
  EXPECT_EQ(report.reason, "no entry of this key");
  std::vector<std::string> names;
  double sum = 0;
  for (const auto &s : report.stages) {
    names.push_back(s.name);
    if (!s.name.starts_with("compile: "))
      sum += s.milliseconds;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"key", "disk lookup", "explain", "lock", "second disk lookup",
                                             "open compiler", "open assembler", "compile", "compile: parse",
                                             "compile: llvm", "load", "store"}));
  EXPECT_LE(sum, report.milliseconds);
  KernelSource other = addSource();
  other.configuration = "block = 256";
  auto second = jit->compile(other);
  ASSERT_TRUE(second.ok());
  const FirstCallReport &miss = (*second)->report();
  EXPECT_EQ(miss.reason, "no entry of this key; the nearest of 1 differs in configuration");
  EXPECT_EQ(miss.explanation, "configuration: 'block = 256', the entry has 'block = 128'");
  EXPECT_NE(miss.toString().find("compiled (" + miss.reason + ")"), std::string::npos) << miss.toString();
}

TEST_F(FirstCallTest, EveryLoadedKernelIsTold) {
  JitOptions options = jitOptions();
  std::vector<std::string> told;
  options.onFirstCall = [&](const LoadedKernel &k) {
    told.push_back(k.name() + (k.report().source == FirstCallReport::Source::Disk ? " disk" : " compiled"));
  };
  jit = makeJit(options);
  ASSERT_TRUE(jit->compile(addSource()).ok());
  ASSERT_TRUE(jit->compile(addSource()).ok()); // known: no first call
  EXPECT_EQ(told, (std::vector<std::string>{"add compiled"}));
  jit = makeJit(options);
  ASSERT_TRUE(jit->compile(addSource()).ok());
  EXPECT_EQ(told, (std::vector<std::string>{"add compiled", "add disk"}));
}

TEST_F(FirstCallTest, AFailureCarriesTheDiagnosticsAndIsNotRemembered) {
  const std::string marker = folder.path() + "/failed";
  const KernelSource source = addSource("once " + marker + "\nfail 3 a tile of 2^20 elements\n");
  auto first = jit->compile(source);
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.status().code(), StatusCode::CompileError);
  EXPECT_EQ(first.status().message(), "kernel 'add' cannot be compiled\nk.cpp:7:3: error: a tile of 2^20 elements");
  EXPECT_EQ(first.status().remedy(), "do it otherwise");
  EXPECT_EQ(jit->counters().failures, 1u);
  auto second = jit->compile(source); // the marker is there now
  ASSERT_TRUE(second.ok()) << second.status().toString();
  EXPECT_EQ(compiles(), 2u);
}

TEST_F(FirstCallTest, CompilerStatusesBecomeStatusCodes) {
  const struct {
    const char *program;
    StatusCode code;
  } rows[] = {{"fail 2 malformed\n", StatusCode::InvalidArgument},
              {"fail 3 refused\n", StatusCode::CompileError},
              {"fail 4 no thread\n", StatusCode::OutOfMemory},
              {"fail 5 crashed, see reproducer\n", StatusCode::CompileError},
              {"fail 77 unheard of\n", StatusCode::Internal}};
  for (const auto &row : rows) {
    auto made = jit->compile(addSource(row.program));
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), row.code) << made.status().message();
  }
}

TEST_F(FirstCallTest, CodeThatDoesNotLoadIsAFailureWithItsLine) {
  KernelSource source = addSource();
  source.programText = "argument x ptr<f32>\nargument y ptr<f32>\nargument out ptr<f32>\nargument n i32\nptx\n"
                       ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry add() { nonsense; }\n";
  auto made = jit->compile(source);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::CompileError);
  EXPECT_NE(made.status().message().find("kernel 'add': add.ptx:4"), std::string::npos) << made.status().message();
}

TEST_F(FirstCallTest, InsideACaptureTheCallIsRefusedAndLaterServed) {
  NullDevice null;
  auto made = Jit::create(null, jitOptions());
  ASSERT_TRUE(made.ok());
  JitKernel *add = kernelOf(**made, addSource());
  const auto call = [&] {
    return add->launch({1}, nullptr, std::uint64_t(256), std::uint64_t(256), std::uint64_t(256), 1);
  };
  null.stream.capturing = true;
  const Status refused = call();
  EXPECT_EQ(refused.code(), StatusCode::NotReady) << refused.toString();
  EXPECT_NE(refused.message().find("kernel 'add' [x/16 y/16 out/16]"), std::string::npos) << refused.message();
  EXPECT_EQ((*made)->counters().compiles, 0u);
  EXPECT_EQ((*made)->counters().loads, 0u);
  null.stream.capturing = false;
  EXPECT_TRUE(call().ok());
  null.stream.capturing = true;
  EXPECT_TRUE(call().ok()); // known now
}

TEST_F(FirstCallTest, AnEntryThatDoesNotLoadIsCompiledAgain) {
  NullDevice null;
  ASSERT_TRUE((*Jit::create(null, jitOptions()))->compile(addSource()).ok());
  EXPECT_EQ(compiles(), 1u);
  null.failLoads = 1;
  auto second = Jit::create(null, jitOptions());
  auto loaded = (*second)->compile(addSource());
  ASSERT_TRUE(loaded.ok()) << loaded.status().toString();
  EXPECT_EQ(compiles(), 2u);
  EXPECT_NE((*loaded)->report().reason.find("the entry does not load: "), std::string::npos);
  EXPECT_TRUE((*Jit::create(null, jitOptions()))->compile(addSource()).ok());
  EXPECT_EQ(compiles(), 2u);
}

TEST_F(FirstCallTest, WithoutADiskCacheEveryJitCompiles) {
  JitOptions options = jitOptions();
  options.knobs.cacheDir = "off";
  EXPECT_TRUE(makeJit(options)->compile(addSource()).ok());
  EXPECT_TRUE(makeJit(options)->compile(addSource()).ok());
  EXPECT_EQ(compiles(), 2u);
}

TEST_F(FirstCallTest, AnUnusableCacheFolderCostsTheCacheNotTheCall) {
  JitOptions options = jitOptions();
  options.knobs.cacheDir = "/proc/nowhere";
  std::string said;
  options.log = [&](std::string_view line) { said += line; };
  auto loaded = makeJit(options)->compile(addSource());
  EXPECT_TRUE(loaded.ok());
  EXPECT_NE(said.find("kiln: cache: no cache on disk"), std::string::npos) << said;
}

/// A cache that takes nothing would cost each process a compile for ever: that is said, once a process and folder.
TEST_F(FirstCallTest, ACacheThatStoresNothingSaysSoOnce) {
  std::vector<std::string> said;
  JitOptions options = jitOptions();
  options.log = [&](std::string_view line) { said.emplace_back(line); };
  const std::string pending = options.knobs.cacheDir + "/pending";
  EXPECT_TRUE(makeJit(options)->compile(addSource()).ok());
  EXPECT_TRUE(said.empty());
  std::filesystem::remove_all(pending);
  std::ofstream(pending) << "in the way";
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(makeJit(options)->compile(addSource("sleep " + std::to_string(i) + "\n")).ok());
  EXPECT_EQ(compiles(), 4u);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(said[0].starts_with("kiln: cache: '" + options.knobs.cacheDir +
                                  "' keeps no kernels, so each process compiles them: cannot use"))
      << said[0];
  EXPECT_NE(said[0].find("set KILN_CACHE_DIR"), std::string::npos) << said[0];
}

TEST_F(FirstCallTest, ADumpFolderOfOthersIsNotUsedAndSaidOnce) {
  std::vector<std::string> said;
  JitOptions options = jitOptions();
  options.log = [&](std::string_view line) { said.emplace_back(line); };
  options.knobs.dumpDir = folder.path() + "/dumps";
  ASSERT_EQ(::mkdir(options.knobs.dumpDir.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(options.knobs.dumpDir.c_str(), 01777), 0);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(makeJit(options)->compile(addSource()).ok());
  options.knobs.dumpDir = "/proc/x";
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(makeJit(options)->compile(addSource()).ok());
  ASSERT_EQ(said.size(), 2u);
  EXPECT_TRUE(said[0].starts_with("kiln: compile: no dumps: dump directory '" + folder.path() +
                                  "/dumps' can be written to by others (mode 1777)"))
      << said[0];
  EXPECT_NE(said[1].find("no dumps: "), std::string::npos) << said[1];
  EXPECT_NE(said[1].find("/proc/x"), std::string::npos) << said[1];
  std::ifstream log(compileLog);
  for (std::string line; std::getline(log, line);)
    EXPECT_EQ(line.find("dump_dir"), std::string::npos) << line;
}

TEST_F(FirstCallTest, WarpsThatTheTextDoesNotHaveAreRefused) {
  for (const unsigned warps : {0u, 8u, ~0u}) {
    KernelSource source = addSource();
    source.warps = warps;
    const Status s = jit->compile(source).status();
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    EXPECT_NE(s.message().find("kernel 'add': its text has tile.num_warps = 4, its KernelSource says warps = " +
                               std::to_string(warps)),
              std::string::npos)
        << s.message();
    EXPECT_EQ(s.remedy(), "set KernelSource::warps to 4");
  }
}

TEST_F(FirstCallTest, DumpingAsksTheCompilerEachTime) {
  EXPECT_TRUE(jit->compile(addSource()).ok());
  JitOptions options = jitOptions();
  options.knobs.dumpDir = folder.path();
  EXPECT_TRUE(makeJit(options)->compile(addSource()).ok());
  EXPECT_EQ(compiles(), 2u);
  std::ifstream log(compileLog);
  std::string line;
  std::getline(log, line);
  EXPECT_EQ(line.find("dump_dir"), std::string::npos);
  std::getline(log, line);
  EXPECT_NE(line.find("\"dump_dir\":\"" + folder.path() + "\""), std::string::npos) << line;
}

TEST_F(FirstCallTest, CodeTargetsThatTheDeviceCannotRunAreRefused) {
  const auto target = [&](const char *name) {
    JitOptions options = jitOptions();
    options.codeTarget = name;
    return Jit::create(*device, options).status();
  };
  EXPECT_TRUE(target("sm_75").ok());
  EXPECT_TRUE(target("sm_80").ok());
  EXPECT_EQ(target("sm_90").code(), StatusCode::Unsupported);
  EXPECT_NE(target("sm_90").message().find("code for sm_90 does not run on emulator:sm_80"), std::string::npos);
  EXPECT_EQ(target("sm_81").code(), StatusCode::NotFound) << target("sm_81").toString();
}

} // namespace
