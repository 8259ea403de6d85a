// A compile in a helper process that is killed in the middle: a clear error, and nothing else notices.
#include "PipelineHarness.h"

#include "tests/support/TestTier.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;

namespace {

/// Children of this process that run kiln-compile-helper.
std::vector<pid_t> helpers() {
  std::vector<pid_t> out;
  for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (pid_t child; children >> child;) {
      std::string name;
      std::getline(std::ifstream("/proc/" + std::to_string(child) + "/comm"), name);
      if (name == "kiln-compile-he") // the kernel keeps 15 characters
        out.push_back(child);
    }
  }
  return out;
}

bool hasCompiler(pid_t process) {
  std::ostringstream maps;
  maps << std::ifstream("/proc/" + std::to_string(process) + "/maps").rdbuf();
  return maps.str().find("libkiln-compiler") != std::string::npos;
}

/// Sends `signal` to the next helper that has the compiler loaded; false if none came.
bool strike(int signal) {
  for (int i = 0; i < 20000; ++i) {
    for (const pid_t helper : helpers()) {
      if (!hasCompiler(helper))
        continue;
      ::kill(helper, SIGSTOP); // it does not end before its time
      ::kill(helper, signal);
      ::kill(helper, SIGCONT);
      return true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return false;
}

LibraryKernel softmax() {
  for (LibraryKernel &k : libraryKernels(false))
    if (k.name == "softmax f32")
      return std::move(k);
  return {};
}

} // namespace

TEST(Killed, AHelperKilledInTheMiddleIsAnErrorAndOthersGoOn) {
  if (helpers().empty() && !std::filesystem::exists("/proc/self/task/" + std::to_string(::getpid()) + "/children"))
    GTEST_SKIP() << "this kernel does not list the children of a process";
  const TemporaryDirectory folder;
  const LibraryKernel kernel = softmax();
  const Compiled expected = compile(kernel.text, {});
  ASSERT_EQ(expected.status, KILN_COMPILE_OK);
  std::atomic<bool> stop = false;
  std::atomic<int> good = 0, bad = 0;
  std::thread others([&] {
    while (!stop)
      (compile(kernel.text, {.isolation = "thread"}).output == expected.output ? good : bad)++;
  });
  const std::pair<int, const char *> signals[] = {{SIGKILL, "SIGKILL"}, {SIGSEGV, "SIGSEGV"}, {SIGTERM, "SIGTERM"}};
  for (int i = 0; i < pick(3, 60); ++i) {
    const auto &[signal, name] = signals[i % 3];
    bool struck = false;
    std::thread killer([&, signal = signal] { struck = strike(signal); });
    const Compiled c = compile(kernel.text, {.isolation = "child", .dumpDirectory = folder.path()});
    killer.join();
    ASSERT_TRUE(struck);
    if (c.status == KILN_COMPILE_OK && signal != SIGKILL)
      continue; // SIGSEGV while another one is contained in the helper: it answered
    ASSERT_EQ(c.status, KILN_COMPILE_CRASHED) << name << ": " << c.diagnostics;
    EXPECT_TRUE(c.output.empty());
    EXPECT_NE(c.diagnostics.find(name), std::string::npos) << c.diagnostics;
    // The reproducer is the program, and is named.
    const auto message = nlohmann::json::parse(c.diagnostics).at(0);
    const std::string remedy = message.at("remedy");
    const std::size_t at = remedy.find(folder.path());
    ASSERT_NE(at, std::string::npos) << remedy;
    std::ostringstream text;
    text << std::ifstream(remedy.substr(at, remedy.find(',', at) - at)).rdbuf();
    EXPECT_NE(text.str().find(kernel.text), std::string::npos) << remedy;
    // The next one is as before.
    const Compiled again = compile(kernel.text, {.isolation = "child"});
    EXPECT_EQ(again.status, KILN_COMPILE_OK) << again.diagnostics;
    EXPECT_EQ(again.output, expected.output);
    EXPECT_EQ(again.metadata, expected.metadata);
  }
  stop = true;
  others.join();
  EXPECT_GT(good, 0);
  EXPECT_EQ(bad, 0);
  EXPECT_TRUE(helpers().empty()) << "a helper process is left";
}

/// Text whose brackets nest too deeply for any stack is refused before a parser sees it; depths below are parsed.
TEST(Killed, DeepNestingIsRefusedInTheProcess) {
  const auto nested = [](const char *open, const char *close, int depth) {
    std::string text = "func.func @k() attributes {tile.kernel, a = ";
    for (int i = 0; i < depth; ++i)
      text += open;
    for (int i = 0; i < depth; ++i)
      text += close;
    return text + "} { return }";
  };
  for (const auto &[open, close] : {std::pair("[", "]"), std::pair("tuple<", ">"), std::pair("{b = ", "}"),
                                    std::pair("(", ")"), std::pair("dense<[", "]>")})
    for (const int depth : {1, 100, 200, 300, 10000, 1000000}) {
      const Compiled c = compile(nested(open, close, depth), {});
      EXPECT_EQ(c.status == KILN_COMPILE_OK || c.status == KILN_COMPILE_INPUT || c.status == KILN_COMPILE_REFUSED,
                true);
      EXPECT_EQ(
          c.diagnostics.find("nested more than 256 levels deep") != std::string::npos,
          1 + depth * std::ranges::count_if(std::string_view(open), [](char b) { return std::strchr("([{<", b); }) >
              256)
          << open << depth << c.diagnostics;
    }
  // Comparisons close nothing; a comment ends with the line, however that ends.
  std::string sets = "func.func @k() attributes {tile.kernel, a = ", ends;
  for (int i = 0; i < 300; ++i) {
    sets += "[affine_set<(d0) : (d0 >= 0, d0 >= 0)>, ";
    ends += "]";
  }
  for (const std::string &text : {sets + "1" + ends + "} { return }", "// c\r" + nested("[", "]", 300)}) {
    const Compiled c = compile(text, {});
    EXPECT_EQ(c.status, KILN_COMPILE_INPUT);
    EXPECT_NE(c.diagnostics.find("nested more than 256 levels deep"), std::string::npos) << c.diagnostics;
  }
  // Aliases nest without brackets.
  const auto aliases = [](int n) {
    std::string text = "#a0 = 1 : i32\n";
    for (int i = 1; i < n; ++i)
      text += "#a" + std::to_string(i) + " = [#a" + std::to_string(i - 1) + "]\n";
    return text + "func.func @k() attributes {tile.kernel, a = #a" + std::to_string(n - 1) + "} { return }";
  };
  EXPECT_EQ(compile(aliases(200), {}).status, KILN_COMPILE_OK);
  for (const int n : {5000, 500000})
    EXPECT_NE(compile(aliases(n), {}).diagnostics.find("more than 4096 aliases"), std::string::npos);
  // Nothing nests in strings and comments.
  const std::string brackets(1000, '(');
  EXPECT_EQ(
      compile("// " + brackets + "\nfunc.func @k() attributes {tile.kernel} { return } loc(\"" + brackets + "\")", {})
          .status,
      KILN_COMPILE_OK);
}

/// MLIR's parser does not survive an array attribute of `index`.
TEST(Killed, ArraysOfIndexAreRefusedInTheProcess) {
  const auto with = [](const std::string &attribute, const std::string &before = "") {
    return compile(before + "func.func @k() attributes {tile.kernel, a = " + attribute + "} { return }", {});
  };
  const char *message = "an array attribute's elements must be integers or floating-point numbers";
  for (const char *bad :
       {"array<index: 2>", "array<index>", "array < index : 2>", "[array<index: 1>]", "array<// index\n index: 2>",
        "array // <\n <index: 2>", "array<!alias: 2>", "array<// x\rindex: 2>"}) {
    const Compiled c = with(bad, "!alias = index\n");
    EXPECT_EQ(c.status, KILN_COMPILE_INPUT) << bad;
    EXPECT_NE(c.diagnostics.find(message), std::string::npos) << bad << c.diagnostics;
  }
  using namespace std::string_literals;
  for (const std::string &bad : {"array\0<index: 2>"s, "array<\0index: 2>"s})
    EXPECT_NE(with(bad).diagnostics.find(message), std::string::npos);
  for (const char *good :
       {"array<i64: 2>", "array<f32: 1.0, 2.0>", "array<i1>", "\"array<index: 2>\"", "i32 // array<index: 2>\n",
        "!llvm.array<2 x i32>", "!llvm.struct<(array<2 x i8>, i32)>", "index", "tuple<index>"}) {
    const Compiled c = with(good);
    EXPECT_EQ(c.status, KILN_COMPILE_OK) << good << c.diagnostics;
  }
}
