// Passes that crash, hang, eat memory or end the process: the caller gets a status and the reason, compiles on other
// threads finish, the cache stays sound.
#include "PipelineHarness.h"

#include "kernels/support/Family.h"
#include "kiln/Device.h"
#include "kiln/Jit.h"
#include "runtime/cache/KernelCache.h"
#include "tests/support/TestTier.h"

#include <atomic>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr const char *plugin = KILN_BINARY_DIR "/tests/kiln-plugin-fault.so";

struct Fault {
  const char *kind;
  int status;
  const char *says;
};
constexpr Fault faults[] = {
    {"fatal", KILN_COMPILE_CRASHED, "reason 42"},   {"segfault", KILN_COMPILE_CRASHED, "SIGSEGV"},
    {"abort", KILN_COMPILE_CRASHED, "SIGABRT"},     {"overflow", KILN_COMPILE_CRASHED, "SIGSEGV"},
    {"exit", KILN_COMPILE_CRASHED, "status 7"},     {"llvm-error", KILN_COMPILE_CRASHED, "an error without a handler"},
    {"eat", KILN_COMPILE_CRASHED, "out of memory"}, {"fail", KILN_COMPILE_REFUSED, "refused without a reason"},
};
constexpr const char *stages[] = {"tile", "tile_gpu", "lowering"};

LibraryKernel kernel() {
  return libraryKernels(false).front();
}

} // namespace

TEST(Fault, EveryKindIsAStatusAndOtherThreadsGoOn) {
  const TemporaryDirectory folder; // for reproducers
  const LibraryKernel k = kernel();
  const Compiled expected = compile(k.text, {});
  ASSERT_EQ(expected.status, KILN_COMPILE_OK) << expected.diagnostics;
  std::atomic<bool> stop = false;
  std::atomic<int> good = 0, bad = 0, next = 0, faulted = 0;
  std::thread others([&] {
    while (!stop)
      (compile(k.text, {.isolation = "thread"}).output == expected.output ? good : bad)++;
  });
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      for (int i = next++; i < pick(16, 1000); i = next++) {
        const Fault &fault = faults[static_cast<std::size_t>(i) % std::size(faults)];
        const std::string passes = std::string(stages[static_cast<std::size_t>(i) / std::size(faults) % 3]) +
                                   "=test-fault{kind=" + fault.kind + "}";
        const Compiled c = compile(
            k.text, {.isolation = "thread", .dumpDirectory = folder.path(), .plugin = plugin, .passes = passes});
        EXPECT_EQ(c.status, fault.status) << passes << ": " << c.diagnostics;
        EXPECT_NE(c.diagnostics.find(fault.says), std::string::npos) << passes << ": " << c.diagnostics;
        if (fault.status == KILN_COMPILE_CRASHED)
          EXPECT_NE(c.diagnostics.find(folder.path()), std::string::npos) << "no reproducer: " << c.diagnostics;
        // The process that compiled lives on and says in which pass it was, and what runs the file again.
        if (std::string_view(fault.says).starts_with("SIG") || fault.kind == std::string_view("fatal")) {
          EXPECT_NE(c.diagnostics.find("pass test-fault: "), std::string::npos) << passes << ": " << c.diagnostics;
          EXPECT_NE(c.diagnostics.find("kiln compile " + folder.path() + "/kiln-crash-"), std::string::npos)
              << c.diagnostics;
        }
        EXPECT_TRUE(c.output.empty());
        ++faulted;
      }
    });
  for (std::thread &t : callers)
    t.join();
  stop = true;
  others.join();
  std::printf("%d faults while %d compiles went on\n", faulted.load(), good.load());
  EXPECT_GT(good, 0);
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(compile(k.text, {.isolation = "thread"}).output, expected.output);
}

/// A crash in the caller's own process: contained, another thread's compile finishes, later ones go to a helper.
TEST(Fault, InTheProcessACrashIsContained) {
  const TemporaryDirectory folder;
  const LibraryKernel k = kernel();
  const std::string expected = compile(k.text, {}).output;
  for (int round = 0; round < pick(1, 20); ++round)
    for (const Fault &fault : {faults[0], faults[1], faults[2], faults[3]}) {
      std::fflush(nullptr);
      const pid_t child = ::fork(); // the process is suspect afterwards
      if (child == 0) {
        // Loaded into this process, the plugin's pass is known to it.
        const Compiled loaded = compile(k.text, {.plugin = plugin, .passes = "tile=test-fault"});
        if (loaded.status != KILN_COMPILE_OK || loaded.output != expected)
          ::_exit(10);
        std::atomic<bool> stop = false, good = true;
        std::atomic<int> others = 0;
        std::thread other([&] {
          do
            good = good && compile(k.text, {}).output == expected;
          while (++others < 2 || !stop);
        });
        const std::string passes = std::string("lowering=test-fault{kind=") + fault.kind + "}";
        const Compiled c = compile(k.text, {.isolation = "thread", .dumpDirectory = folder.path(), .passes = passes});
        stop = true;
        other.join();
        if (c.status != KILN_COMPILE_CRASHED || c.diagnostics.find(fault.says) == std::string::npos) {
          std::fprintf(stderr, "%d %s\n", c.status, c.diagnostics.c_str());
          ::_exit(11);
        }
        const Compiled later = compile(k.text, {.isolation = "thread"});
        ::_exit(!good ? 12 : later.output != expected ? 13 : 0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status)) << fault.kind << ": signal " << WTERMSIG(status);
      EXPECT_EQ(WEXITSTATUS(status), 0) << fault.kind;
    }
}

TEST(Fault, APassThatLoopsIsStoppedAtTheDeadline) {
  const TemporaryDirectory folder;
  const LibraryKernel k = kernel();
  const Compiled c = compile(k.text, {.isolation = "thread",
                                      .dumpDirectory = folder.path(),
                                      .plugin = plugin,
                                      .passes = "tile=test-fault{kind=loop}",
                                      .deadlineSeconds = 1});
  EXPECT_EQ(c.status, KILN_COMPILE_CRASHED);
  EXPECT_NE(c.diagnostics.find("deadline of 1 s"), std::string::npos) << c.diagnostics;
  for (const double wrong : {0.0, -1.0, 1e9}) {
    const Compiled refused = compile(k.text, {.deadlineSeconds = wrong});
    EXPECT_EQ(refused.status, KILN_COMPILE_INPUT);
    EXPECT_NE(refused.diagnostics.find("the knob 'deadline' must be"), std::string::npos) << refused.diagnostics;
  }
}

TEST(Fault, TheCacheStaysSound) {
  const TemporaryDirectory folder;
  auto device = openDevice("emulator:sm_80");
  ASSERT_TRUE(device.ok()) << device.status().toString();
  const auto source = sourceOf(kernels::families().front().callable->record(DType::F32, {}));
  ASSERT_TRUE(source.ok());
  JitOptions options;
  options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
  options.knobs.cacheDir = folder.path() + "/cache";
  options.knobs.dumpDir = "";
  auto attempt = [&](const char *passes) {
    JitOptions own = options;
    if (*passes) {
      own.knobs.plugins = {plugin};
      own.knobs.passes = passes;
    }
    auto jit = Jit::create(**device, own);
    EXPECT_TRUE(jit.ok()) << jit.status().toString();
    return (*jit)->compile(*source).status();
  };
  for (int i = 0; i < pick(1, 20); ++i) {
    const Status crashed = attempt("tile=test-fault{kind=segfault}");
    EXPECT_FALSE(crashed.ok());
    EXPECT_NE(crashed.message().find("SIGSEGV"), std::string::npos) << crashed.toString();
    const Status ended = attempt("lowering=test-fault{kind=exit}");
    EXPECT_NE(ended.message().find("status 7"), std::string::npos) << ended.toString();
    EXPECT_TRUE(attempt("").ok());
  }
  auto cache = cache::KernelCache::open({.directory = options.knobs.cacheDir});
  ASSERT_TRUE(cache.ok());
  const auto entries = (*cache)->verify();
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->size(), 1u) << "only what was compiled is kept";
  for (const cache::EntryInfo &entry : *entries)
    EXPECT_EQ(entry.damage, "") << entry.fileName;
}
