// The same request gives the same bytes: over threads, processes, folders, locales, environments.
#include "PipelineHarness.h"

#include "support/Text.h"
#include "tests/support/TestTier.h"

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr const char *facts = "[{\"argument\": 0, \"divisibility\": 16}]";

/// One of each shape of program: no shared memory, a reduction, a transposition; with locations and without.
struct Request {
  LibraryKernel kernel;
  bool lineInfo;
};
std::vector<Request> requests() {
  std::vector<Request> out;
  for (const LibraryKernel &k : libraryKernels(false))
    if (k.name == "add bf16" || k.name == "softmax f32" || k.name == "transpose f16" || k.name == "cumsum f32")
      out.push_back({k, out.size() % 2 == 1});
  return out;
}

std::string bytes(const Compiled &c) {
  return format("status %d\n", c.status) + c.metadata + "\n" + c.output + "\n" + c.diagnostics;
}

std::string expected(const Request &r) {
  const Compiled c = compile(r.kernel.text, {.target = "sm_90a", .facts = facts, .lineInfo = r.lineInfo});
  EXPECT_EQ(c.status, KILN_COMPILE_OK) << c.diagnostics;
  EXPECT_FALSE(c.metadata.empty());
  return bytes(c);
}

std::string readAll(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// A process of its own: kiln-pipeline-child writes what `bytes` gives.
struct Surroundings {
  std::string name, folder, isolation = "none";
  std::vector<std::pair<std::string, std::string>> environment; ///< changes; an empty value removes
};

std::string inProcess(const Request &r, const Surroundings &around, const std::string &scratch) {
  const std::string program = scratch + "/program.mlir", out = scratch + "/out";
  std::ofstream(program) << r.kernel.text;
  std::filesystem::remove(out);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chdir(around.folder.c_str()) != 0)
      ::_exit(97);
    for (const auto &[name, value] : around.environment)
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    ::execl(KILN_BINARY_DIR "/tests/kiln-pipeline-child", "kiln-pipeline-child", program.c_str(), facts,
            r.lineInfo ? "lines" : "plain", around.isolation.c_str(), out.c_str(), static_cast<char *>(nullptr));
    ::_exit(98);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << around.name << ": " << status;
  return readAll(out);
}

} // namespace

TEST(Repeat, AcrossThreads) {
  const std::vector<Request> all = requests();
  ASSERT_EQ(all.size(), 4u);
  std::vector<std::string> first;
  for (const Request &r : all)
    first.push_back(expected(r));
  std::atomic<int> next = 0, different = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = next++; i < pick(12, 100); i = next++) {
        const Request &r = all[static_cast<std::size_t>(i) % all.size()];
        const Compiled c = compile(
            r.kernel.text,
            {.target = "sm_90a", .facts = facts, .lineInfo = r.lineInfo, .isolation = i % 3 == 0 ? "thread" : "none"});
        different += bytes(c) != first[static_cast<std::size_t>(i) % all.size()];
      }
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(different, 0);
}

/// The order of compiles in a process leaves no trace: no counter, no pointer's value.
TEST(Repeat, AfterOtherCompiles) {
  const std::vector<Request> all = requests();
  const std::string before = expected(all[0]);
  std::size_t number = 0;
  for (const LibraryKernel &k : libraryKernels(false))
    if (isFullTier() || number++ % 4 == 0)
      (void)compile(k.text, {.target = "sm_80"});
  (void)compile("module {", {});
  (void)compile("func.func @f() attributes {tile.kernel} { %x = \"no.op\"() : () -> i32 return }", {});
  EXPECT_EQ(expected(all[0]), before);
}

TEST(Repeat, AcrossProcessesFoldersLocalesAndEnvironments) {
  const TemporaryDirectory scratch, home, folder;
  std::vector<Surroundings> all = {
      {"as it is", ".", "none", {}},
      {"another folder", folder.path(), "none", {}},
      {"the root folder", "/", "thread", {}},
      {"another home", ".", "none", {{"HOME", home.path()}}},
      {"no home, no user", ".", "none", {{"HOME", ""}, {"USER", ""}, {"LOGNAME", ""}}},
      {"another folder for temporary files", ".", "thread", {{"TMPDIR", folder.path()}, {"TMP", folder.path()}}},
      {"a folder for temporary files that does not exist", ".", "none", {{"TMPDIR", "/no/such/folder"}}},
      {"another time zone", ".", "none", {{"TZ", "Asia/Kathmandu"}}},
      {"a fixed date for builds", ".", "none", {{"SOURCE_DATE_EPOCH", "1"}}},
      {"a helper process", folder.path(), "child", {}},
      {"a colourful terminal", ".", "none", {{"TERM", "xterm-256color"}, {"COLUMNS", "20"}, {"CLICOLOR_FORCE", "1"}}},
      {"filled memory", ".", "none", {{"MALLOC_PERTURB_", "165"}}},
      {"many arenas", ".", "none", {{"MALLOC_ARENA_MAX", "1"}}},
      {"large environment", ".", "none", {{"PADDING", std::string(100000, 'x')}}},
  };
  // The child takes its locale from the environment.  de_DE writes 0,5; not every machine has it: it is made here if
  // the system has the sources of locales.
  std::string locales = "C.UTF-8 POSIX C";
  const std::string german = folder.path() + "/de_DE.UTF-8";
  if (std::system(("localedef -i de_DE -f UTF-8 " + german + " > /dev/null 2>&1").c_str()) == 0) {
    all.push_back({"de_DE.UTF-8", ".", "none", {{"LOCPATH", folder.path()}, {"LC_ALL", "de_DE.UTF-8"}}});
    locales += " de_DE.UTF-8";
  }
  for (const char *locale : {"C", "C.UTF-8", "POSIX"})
    all.push_back({locale, ".", "none", {{"LC_ALL", locale}, {"LANG", locale}, {"LC_NUMERIC", locale}}});
  const std::vector<Request> programs = requests();
  std::vector<std::string> first;
  for (const Request &r : programs)
    first.push_back(expected(r));
  int compiles = 0;
  for (; compiles < pick(static_cast<int>(all.size()), 100); ++compiles) {
    const auto i = static_cast<std::size_t>(compiles);
    const Request &r = programs[(i + i / all.size()) % programs.size()];
    const std::string got = inProcess(r, all[i % all.size()], scratch.path());
    EXPECT_TRUE(got == first[(i + i / all.size()) % programs.size()])
        << r.kernel.name << " with " << all[i % all.size()].name << "\n"
        << got;
  }
  std::printf("%d processes; locales %s\n", compiles, locales.c_str());
}

/// The text is the program: where a file lies shows only where lines are asked for.
TEST(Repeat, TheFilesNameIsNotInThePtx) {
  for (const Request &r : requests()) {
    const CompileOptions plain{.target = "sm_90a", .facts = facts};
    CompileOptions named = plain;
    named.fileName = "/somewhere/else/a.mlir";
    EXPECT_EQ(bytes(compile(r.kernel.text, named)), bytes(compile(r.kernel.text, plain))) << r.kernel.name;
    EXPECT_EQ(bytes(compile("\n\n" + r.kernel.text, named)), bytes(compile(r.kernel.text, plain))) << r.kernel.name;
  }
}
