#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

namespace kiln::test {
namespace {

class ExplainCliTest : public CliTest {
protected:
  static constexpr const char *mma = "mma<version=2, warpsPerCTA=[2,2]> : 64x64xf16";
  static constexpr const char *blocked =
      "blocked<sizePerThread=[1,4], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>";
  static bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }
};

TEST_F(ExplainCliTest, ALayout) {
  const Outcome o = kiln({"explain", "--layout", "mma<version=2, warpsPerCTA=[1,1]> : 16x16xf16"});
  EXPECT_EQ(o.status, 0) << o.err;
  // Lane 5 holds row 1, columns 2 and 3 (the fragment map of m16n8).
  EXPECT_TRUE(has(o.out, " 1 |  0:4:0  0:4:1  0:5:0  0:5:1")) << o.out;
}

TEST_F(ExplainCliTest, AConversion) {
  const Outcome o = kiln({"explain", "--layout", mma, "--to", blocked});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "16 bits an element, target sm_90a, 4 warps")) << o.out;
  const Outcome json = kiln({"explain", "--layout", mma, "--to", blocked, "--target", "sm_80", "--json"});
  ASSERT_EQ(json.status, 0) << json.err;
  const auto j = nlohmann::json::parse(json.out);
  EXPECT_EQ(j["status"], 0);
  EXPECT_TRUE(j["plan"].is_object());
}

TEST_F(ExplainCliTest, AccessToASharedTile) {
  const std::string tile = "tma<swizzle=128>";
  const Outcome store = kiln({"explain", "--layout", mma, "--to", tile});
  EXPECT_EQ(store.status, 0) << store.err;
  EXPECT_TRUE(has(store.out, "store of a given buffer")) << store.out;
  const Outcome load = kiln({"explain", "--layout", tile + " : 64x64xf16", "--to", blocked});
  EXPECT_EQ(load.status, 0) << load.err;
  EXPECT_TRUE(has(load.out, "load of a given buffer")) << load.out;
}

TEST_F(ExplainCliTest, Pictures) {
  const Outcome o = kiln({"explain", "--layout", mma, "--svg", file("a.svg")});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(files(), std::vector<std::string>{"a.svg"});
}

TEST_F(ExplainCliTest, BadInputIsStatus2) {
  const struct {
    std::vector<std::string> arguments;
    const char *part;
  } rows[] = {
      {{}, "there is nothing to explain: neither a kernel nor --layout"},
      {{"--layout", "blokced<> : 4"}, "blocked"},
      {{"--layout", "mma<version=2, warpsPerCTA=[2,2]>"}, "has no shape"},
      {{"--layout", "mma<version=2, warpsPerCTA=[2,2]> : 17x17xf16"}, "17"},
      {{"--layout", mma, "--to", "nonsense"}, "--to"},
      {{"--layout", mma, "--to", blocked, "--target", "sm_91"}, "unknown target 'sm_91'"},
      {{"--layout", mma, "--to", std::string(blocked) + " : 32x32xf16"}, "32"},
      {{"--layout", mma, "--to", blocked, "--scratch", "0"}, "scratch"},
      {{"--layout", mma, "--bits", "-4"}, "--bits"},
      {{"--layout", mma, "--to", blocked, "--bits", "7"}, "7"},
      {{"--layout", "tma<swizzle=128> : 64x64xf16", "--to", "tma<swizzle=64>"}, "both layouts are of shared memory"},
      {{"--layout", mma, "--svg", file("missing/a.svg")}, "missing/a.svg"},
  };
  for (const auto &row : rows) {
    std::vector<std::string> arguments = {"explain"};
    arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
    const Outcome o = kiln(arguments);
    EXPECT_EQ(o.status, 2) << o.err << o.out;
    EXPECT_TRUE(has(o.err, row.part)) << "expected " << row.part << " in: " << o.err;
    EXPECT_EQ(o.out, "");
  }
  EXPECT_TRUE(files().empty());
}

} // namespace
} // namespace kiln::test
