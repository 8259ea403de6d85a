// Where a compile writes: dumps and reproducers.
#include "PipelineHarness.h"

#include "tests/support/TestTier.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>

using namespace kiln;
using namespace kiln::test;

namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The names of dumps are known beforehand: a link there is replaced, not written through.
TEST(Dump, LinksAreReplacedAndNotFollowed) {
  const TemporaryDirectory folder, elsewhere;
  const std::string text = libraryKernels(false).front().text, victim = elsewhere.path() + "/victim";
  ASSERT_EQ(compile(text, {.dumpDirectory = folder.path()}).status, KILN_COMPILE_OK);
  std::map<std::string, std::string> expected;
  for (const auto &entry : fs::directory_iterator(folder.path()))
    expected[entry.path()] = contents(entry.path());
  ASSERT_EQ(expected.size(), 6u); // source, tile, tile_gpu, lowering, ll, ptx; no temporary is left
  std::ofstream(victim) << "precious";
  for (const auto &[path, ignored] : expected) {
    fs::remove(path);
    fs::create_symlink(victim, path);
  }
  const Compiled again = compile(text, {.dumpDirectory = folder.path()});
  EXPECT_EQ(again.status, KILN_COMPILE_OK);
  EXPECT_EQ(contents(victim), "precious");
  for (const auto &[path, dump] : expected) {
    EXPECT_FALSE(fs::is_symlink(path)) << path;
    EXPECT_EQ(contents(path), dump) << path;
  }
}

TEST(Dump, AFolderThatCannotBeWrittenIsOneWarning) {
  const std::string text = libraryKernels(false).front().text;
  const Compiled c = compile(text, {.dumpDirectory = "/proc/nowhere"});
  EXPECT_EQ(c.status, KILN_COMPILE_OK);
  unsigned warnings = 0;
  for (const auto &message : nlohmann::json::parse(c.diagnostics)) {
    if (message["severity"] != "warning")
      continue;
    ++warnings;
    EXPECT_NE(message["message"].get<std::string>().find("cannot write a dump"), std::string::npos) << message;
    EXPECT_NE(message["remedy"].get<std::string>().find("KILN_DUMP_DIR"), std::string::npos) << message;
  }
  EXPECT_EQ(warnings, 1u) << c.diagnostics;
}

/// A reproducer holds the kernel's source, and its folder may be everybody's.
TEST(Dump, AReproducerIsItsOwnersAlone) {
  const TemporaryDirectory folder;
  const std::string text = libraryKernels(false).front().text;
  const Compiled c = compile(text, {.isolation = "child", .dumpDirectory = folder.path(), .deadlineSeconds = 0.001});
  ASSERT_EQ(c.status, KILN_COMPILE_CRASHED) << c.diagnostics;
  unsigned found = 0;
  for (const auto &entry : fs::directory_iterator(folder.path())) {
    if (!entry.path().filename().string().starts_with("kiln-crash-"))
      continue;
    struct stat info{};
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << entry.path();
    ++found;
  }
  EXPECT_EQ(found, 1u);
}

} // namespace
