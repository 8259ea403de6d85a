// docs/commands.md: every command in a ```sh block is run, in order, in a folder that holds docs/examples.  A comment
// "# exit status N" says what is expected; without one it is 0.
#include "runtime/io/File.h"
#include "support/Text.h"
#include "tests/cli/Program.h"

#include <cstdlib>
#include <filesystem>
#include <sys/wait.h>

namespace kiln::test {
namespace {

/// The page empties the cache: one of its own.
class DocsCliTest : public CliTest {
protected:
  void SetUp() override { setenv("KILN_CACHE_DIR", file("cache").c_str(), 1); }
  void TearDown() override { unsetenv("KILN_CACHE_DIR"); }
};

TEST_F(DocsCliTest, EveryExampleOfThePageRuns) {
  const auto page = readTextFile(KILN_SOURCE_DIR "/docs/commands.md");
  ASSERT_TRUE(page.ok()) << page.status().toString();
  std::filesystem::copy(KILN_SOURCE_DIR "/docs/examples", file("examples"));
  bool inside = false;
  unsigned count = 0;
  for (std::string_view line : split(*page, '\n')) {
    if (line.starts_with("```")) {
      inside = line == "```sh";
      continue;
    }
    if (!inside)
      continue;
    ASSERT_TRUE(line.starts_with("kiln ")) << line;
    const std::size_t comment = line.find("# exit status ");
    const int expected =
        comment == std::string_view::npos ? 0 : std::atoi(std::string(line.substr(comment + 14)).c_str());
    const std::string command = "cd '" + folder.path() + "' && PATH=" KILN_BINARY_DIR "/bin:$PATH && " +
                                std::string(line.substr(0, comment)) + " >out.txt 2>&1";
    const int state = std::system(command.c_str());
    EXPECT_EQ(WIFEXITED(state) ? WEXITSTATUS(state) : -1, expected) << line << "\n" << *readTextFile(file("out.txt"));
    ++count;
  }
  EXPECT_GE(count, 30u);
  for (const char *made : {"x.npy", "y.npy", "z.npy", "half.npy", "tile.svg", "mma.svg"})
    EXPECT_TRUE(std::filesystem::exists(file(made))) << made;
  EXPECT_FALSE(std::filesystem::exists(file("w.npy")));
}

} // namespace
} // namespace kiln::test
