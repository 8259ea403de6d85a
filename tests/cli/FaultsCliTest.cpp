// `kiln check` on the PTX files of faults/, each with one planted fault: the report is the file next to it, word for
// word.  Lines that say "// correct: ..." hold the fault; with that text in their place the kernel is right, and the
// check says so in one line.  KILN_UPDATE_EXPECTED=1 writes the reports anew.
#include "runtime/io/File.h"
#include "support/Text.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kiln::test {
namespace {

constexpr std::string_view folderOfFaults = KILN_SOURCE_DIR "/tests/cli/faults/";

class FaultsCliTest : public CliTest, public testing::WithParamInterface<const char *> {
protected:
  static std::string readAll(const std::string &name) {
    auto text = readTextFile(std::string(folderOfFaults) + name);
    EXPECT_TRUE(text.ok()) << text.status().toString();
    return text.ok() ? *text : std::string();
  }
  /// The words of the line "// kiln check ...", for `ptx`.
  std::vector<std::string> words(const std::string &text, const std::string &ptx) {
    std::vector<std::string> out = {"check", ptx};
    const std::string begin = "// kiln check ";
    const std::size_t at = text.find(begin) + begin.size();
    for (std::string_view word : split(std::string_view(text).substr(at, text.find('\n', at) - at), ' '))
      out.push_back(word == "x.npy" ? floats("x.npy", 32) : std::string(word));
    return out;
  }
  /// The kernel as it should be.
  static std::string corrected(const std::string &text) {
    std::string out;
    unsigned changed = 0;
    for (std::string_view line : split(text, '\n')) {
      const std::size_t mark = line.find("// correct: ");
      changed += mark != std::string_view::npos;
      out += std::string(mark == std::string_view::npos ? line : line.substr(mark + 12)) + "\n";
    }
    EXPECT_EQ(changed, 1u);
    return out;
  }
};

TEST_P(FaultsCliTest, TheReportNamesTheFault) {
  const std::string name = GetParam(), text = readAll(name + ".ptx");
  const Outcome o = kiln(words(text, write(name + ".ptx", text)));
  EXPECT_EQ(o.status, 1) << o.out << o.err;
  EXPECT_EQ(o.err, "");
  std::string out = o.out;
  for (std::size_t at; (at = out.find(folder.path() + "/")) != std::string::npos;)
    out.erase(at, folder.path().size() + 1);
  const std::string expected = std::string(folderOfFaults) + name + ".expected";
  if (std::getenv("KILN_UPDATE_EXPECTED"))
    std::ofstream(expected) << out;
  EXPECT_EQ(out, readAll(name + ".expected"));
}

TEST_P(FaultsCliTest, TheJsonHasBothAccesses) {
  const std::string name = GetParam(), text = readAll(name + ".ptx");
  std::vector<std::string> line = words(text, write(name + ".ptx", text));
  line.push_back("--json");
  const Outcome o = kiln(line);
  ASSERT_EQ(o.status, 1) << o.out << o.err;
  const auto j = nlohmann::json::parse(o.out);
  EXPECT_EQ(j["status"], 1);
  for (const auto &run : j["checked"]) {
    ASSERT_FALSE(run["findings"].empty()) << run.dump();
    bool hasOther = false;
    for (const auto &f : run["findings"]) {
      for (const char *key : {"id", "kernel", "block", "warp", "lanes", "location", "ptxLine", "opcode", "message"})
        EXPECT_TRUE(f.contains(key)) << key;
      EXPECT_NE(f["location"], "");
      if (!f.contains("other"))
        continue;
      hasOther = true;
      for (const char *key : {"block", "warp", "lanes", "location", "ptxLine", "opcode"})
        EXPECT_TRUE(f["other"].contains(key)) << key;
      EXPECT_NE(f["other"]["location"], f["location"]);
    }
    EXPECT_EQ(hasOther, name != "out_of_bounds" && name != "deadlock") << run.dump();
  }
}

TEST_P(FaultsCliTest, TheCorrectKernelIsOneLine) {
  const std::string name = GetParam(), text = corrected(readAll(name + ".ptx"));
  std::vector<std::string> line = words(text, write(name + ".ptx", text));
  line.insert(line.end(), {"--seed", "11"});
  const Outcome o = kiln(line);
  EXPECT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_TRUE(o.out.starts_with("good: ") && o.out.find('\n') + 1 == o.out.size()) << o.out;
  EXPECT_EQ(o.err, "");
}

INSTANTIATE_TEST_SUITE_P(Planted, FaultsCliTest,
                         testing::Values("race", "missing_wait", "missing_proxy_fence", "out_of_bounds", "deadlock"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace kiln::test
