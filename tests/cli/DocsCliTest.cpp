// docs/commands.md and docs/tuning.md: every command in a ```sh block is run, in order, in a folder of its own, which
// holds docs/examples for the former.  A comment "# exit status N" says what is expected; without one it is 0.  So are
// the examples of every command's --help.
#include "runtime/io/File.h"
#include "support/Text.h"
#include "tests/cli/Program.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>

namespace kiln::test {
namespace {

/// The page empties the cache: one of its own.
class DocsCliTest : public CachedCliTest {
protected:
  /// Runs a line as a user types it; what it printed is in out.txt.
  int shell(std::string_view line) const {
    const std::string command =
        "cd '" + folder.path() + "' && PATH=" KILN_BINARY_DIR "/bin:$PATH && " + std::string(line) + " >out.txt 2>&1";
    const int state = std::system(command.c_str());
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }
  std::string printed() const { return *readTextFile(file("out.txt")); }
  /// Runs the examples of a page of docs/, at least so many.  A block that begins with ```text NAME is that file.
  void runPage(const std::string &name, unsigned least) const;
};

void DocsCliTest::runPage(const std::string &name, unsigned least) const {
  const auto page = readTextFile(KILN_SOURCE_DIR "/docs/" + name);
  ASSERT_TRUE(page.ok()) << page.status().toString();
  bool inside = false;
  std::ofstream written;
  unsigned count = 0;
  for (std::string_view line : split(*page, '\n')) {
    if (line.starts_with("```")) {
      inside = line == "```sh";
      written.close();
      if (line.starts_with("```text "))
        written.open(file(std::string(line.substr(8))));
      continue;
    }
    if (written.is_open())
      written << line << '\n';
    if (!inside)
      continue;
    ASSERT_TRUE(line.starts_with("kiln ")) << line;
    const std::size_t comment = line.find("# exit status ");
    const int expected =
        comment == std::string_view::npos ? 0 : std::atoi(std::string(line.substr(comment + 14)).c_str());
    EXPECT_EQ(shell(line.substr(0, comment)), expected) << line << "\n" << printed();
    ++count;
  }
  EXPECT_GE(count, least);
}

TEST_F(DocsCliTest, EveryExampleOfThePageRuns) {
  std::filesystem::copy(KILN_SOURCE_DIR "/docs/examples", file("examples"));
  runPage("commands.md", 30);
  for (const char *made : {"x.npy", "y.npy", "z.npy", "half.npy", "tile.svg", "mma.svg", "squares.square.1_0_0.npy"})
    EXPECT_TRUE(std::filesystem::exists(file(made))) << made;
  EXPECT_FALSE(std::filesystem::exists(file("w.npy")));
}

TEST_F(DocsCliTest, EveryExampleOfTuningRuns) {
  runPage("tuning.md", 7);
}

TEST_F(DocsCliTest, TheExamplesOfEveryHelpRun) {
  std::filesystem::create_directory(file("docs"));
  std::filesystem::copy(KILN_SOURCE_DIR "/docs/examples", file("docs/examples"));
  floats("x.npy", 1000);
  unsigned count = 0;
  for (const std::string &command : kilnCommands()) {
    const Outcome help = kiln({command, "--help"});
    std::vector<std::string_view> examples;
    for (std::string_view line : split(help.out, '\n')) {
      if (!line.starts_with("  kiln "))
        continue;
      const std::size_t remark = line.find("   ", 2);
      line = line.substr(2, remark == std::string_view::npos ? remark : remark - 2);
      // The page's test runs all kernels; not every machine has a GPU.
      if (line != "kiln demo" && line.find("cuda:") == std::string_view::npos)
        examples.push_back(line);
    }
    ASSERT_FALSE(examples.empty()) << command;
    if (!isFullTier()) // a sample: the last one of each command
      examples.erase(examples.begin(), examples.end() - 1);
    for (std::string_view line : examples) {
      const int status = shell(line);
      const bool withoutAssembler = line.find("--emit cubin") != std::string_view::npos &&
                                    printed().find("no assembler for GPU code") != std::string::npos;
      EXPECT_EQ(status, withoutAssembler ? 2 : 0) << line << "\n" << printed();
      ++count;
    }
  }
  EXPECT_GE(count, pick(8u, 20u));
}

} // namespace
} // namespace kiln::test
