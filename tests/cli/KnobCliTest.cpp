// Settings as options: each command takes the flags of the knob table.
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>

namespace kiln::test {
namespace {

class KnobCliTest : public CliTest {
protected:
  void SetUp() override { setenv("KILN_CACHE_DIR", file("variable").c_str(), 1); }
  void TearDown() override { unsetenv("KILN_CACHE_DIR"); }
};

TEST_F(KnobCliTest, AFlagWinsOverItsVariable) {
  const std::string x = floats("x.npy", 64);
  const Outcome o = kiln({"run", "add", "--x", x, "--y", x, "--target", "sm_80", "--cache-dir", file("flag")});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(std::filesystem::exists(file("flag")));
  EXPECT_FALSE(std::filesystem::exists(file("variable")));
  const Outcome off = kiln({"run", "add", "--x", x, "--y", x, "--target", "sm_80", "--cache-dir=off", "--json"});
  ASSERT_EQ(off.status, 0) << off.err;
  EXPECT_EQ(nlohmann::json::parse(off.out)["firstCalls"][0]["reason"], "there is no cache on disk");
}

TEST_F(KnobCliTest, SettingsReachTheCompile) {
  const Outcome o = kiln({"explain", "add", "--target", "sm_80", "--nvjitlink", "none", "--ptxas", "none"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("registers and spills: unknown; "), std::string::npos) << o.out;
  const Outcome cubin =
      kiln({"compile", "add", "--emit", "cubin", "--nvjitlink", "none", "--ptxas", "none", "-o", file("a.cubin")});
  EXPECT_NE(cubin.status, 0);
  EXPECT_FALSE(std::filesystem::exists(file("a.cubin")));
  EXPECT_EQ(kiln({"compile", "add", "--target", "sm_80", "--dump-dir", file("dump"), "-o", file("a.ptx")}).status, 0);
  // Another target and other facts: files of their own.
  EXPECT_EQ(kiln({"compile", "add", "--target", "sm_90a", "--dump-dir", file("dump"), "-o", file("a.ptx")}).status, 0);
  EXPECT_EQ(kiln({"compile", "add", "--target", "sm_90a", "--divisible", "x=16", "--dump-dir", file("dump"), "-o",
                  file("a.ptx")})
                .status,
            0);
  std::map<std::string, int> counts;
  for (const auto &entry : std::filesystem::directory_iterator(file("dump"))) {
    // add.TARGET.HASH.STAGE
    const std::string name = entry.path().filename();
    const std::size_t hash = name.find('.', 4);
    ASSERT_TRUE(name.starts_with("add.sm_") && hash != std::string::npos && name.size() > hash + 10) << name;
    EXPECT_EQ(name[hash + 9], '.') << name;
    ++counts[name.substr(0, hash) + name.substr(hash + 9)];
  }
  for (const std::string stage : {"tile.mlir", "tile_gpu.mlir", "lowering.mlir", "ll", "ptx"}) {
    EXPECT_EQ(counts["add.sm_80." + stage], 1) << stage;
    EXPECT_EQ(counts["add.sm_90a." + stage], 2) << stage;
  }
}

TEST_F(KnobCliTest, WrongValuesAreNamed) {
  for (const auto &[flag, value] : {std::pair("--isolation", "nowhere"), std::pair("--cache-max-bytes", "many"),
                                    std::pair("--launch-blocking", "perhaps"), std::pair("--log", "")}) {
    const Outcome o = kiln({"demo", "add", "--target", "sm_80", flag, value, "--dtype", "f32"});
    if (*value == 0) { // an empty text is a value
      EXPECT_EQ(o.status, 0) << o.err;
      continue;
    }
    EXPECT_EQ(o.status, 2) << flag << o.out;
    EXPECT_NE(o.err.find(flag), std::string::npos) << o.err;
    EXPECT_NE(o.err.find(value), std::string::npos) << o.err;
  }
}

} // namespace
} // namespace kiln::test
