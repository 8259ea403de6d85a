// Settings as options: each command takes the flags of the knob table.
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace kiln::test {
namespace {

std::string readFile(const std::filesystem::path &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

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

/// What changes code, or says where it is compiled, holds for every command that compiles.
TEST_F(KnobCliTest, CompileAndExplainObeyTheCompilersSettings) {
  const std::vector<std::string> compile = {"compile", "transpose", "--target", "sm_80"};
  const auto with = [](std::vector<std::string> words, std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
    return kiln(words);
  };
  const Outcome plain = kiln(compile), stressed = with(compile, {"--stress", "7"});
  ASSERT_EQ(plain.status, 0) << plain.err;
  ASSERT_EQ(stressed.status, 0) << stressed.err;
  EXPECT_EQ(plain.out.find("nanosleep"), std::string::npos);
  EXPECT_NE(stressed.out.find("nanosleep"), std::string::npos);
  const std::vector<std::string> explain = {"explain", "transpose", "--target", "sm_80"};
  const Outcome dumped = with(explain, {"--dump-dir", file("dump"), "--stress", "7"});
  ASSERT_EQ(dumped.status, 0) << dumped.err;
  unsigned ptx = 0;
  for (const auto &entry : std::filesystem::directory_iterator(file("dump"))) {
    if (entry.path().extension() != ".ptx")
      continue;
    ++ptx;
    EXPECT_NE(readFile(entry.path()).find("nanosleep"), std::string::npos) << entry.path();
  }
  EXPECT_EQ(ptx, 1u);
  for (const auto &command : {compile, explain}) {
    EXPECT_EQ(with(command, {"--stress", "sideways"}).status, 2);
    EXPECT_EQ(with(command, {"--isolation", "child"}).status, 0);
    // A folder that others can write to is not used, which is said in a line.
    std::filesystem::create_directory(file("open"));
    std::filesystem::permissions(file("open"), std::filesystem::perms::all);
    const Outcome open = with(command, {"--dump-dir", file("open")});
    EXPECT_EQ(open.status, 0);
    EXPECT_NE(open.err.find("no dumps: dump directory '" + file("open") + "' can be written to by others"),
              std::string::npos)
        << open.err;
    EXPECT_EQ(open.err.find("dumps: "), open.err.rfind("dumps: ")) << open.err;
    EXPECT_TRUE(std::filesystem::is_empty(file("open")));
  }
}

/// One file is hashed and loaded: that of this folder, never one that the loader finds elsewhere under its name.
TEST_F(KnobCliTest, ACompilerWithoutASlashIsThatOfThisFolder) {
  const std::string name = "libkiln-knob-cli-test.so";
  const std::filesystem::path here = std::filesystem::canonical(std::filesystem::current_path()) / name;
  std::filesystem::create_symlink(std::filesystem::canonical(KILN_BINARY_DIR "/bin/libkiln-compiler.so"), file(name));
  std::ofstream(here) << "four letters";
  const Outcome o = kiln({"demo", "add", "--dtype", "f32", "--target", "sm_80", "--compiler", name}, folder.path());
  std::filesystem::remove(here);
  EXPECT_EQ(o.status, 2) << o.out;
  EXPECT_NE(o.err.find("the compiler '" + here.string() + "' cannot be loaded"), std::string::npos) << o.err;
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

TEST_F(KnobCliTest, MistypedVariablesGetAHint) {
  const struct {
    const char *variable, *hint; ///< null: none
  } rows[] = {{"KILN_CACHEDIR", "KILN_CACHE_DIR"}, {"KILN_BLOCKING", "KILN_LAUNCH_BLOCKING"},
              {"KILN_PTXA", "KILN_PTXAS"},         {"KILN_TEST_LOG", nullptr},
              {"KILN_SOURCE_DIR", nullptr},        {"KILN_HOME", nullptr}};
  for (const auto &[variable, hint] : rows) {
    setenv(variable, "1", 1);
    const Outcome o = kiln({"devices"});
    unsetenv(variable);
    EXPECT_EQ(o.status, 0);
    const std::string line = hint ? "kiln: the variable " + std::string(variable) +
                                        " is no setting and is ignored (did you mean " + hint + "?)\n"
                                  : "";
    EXPECT_EQ(o.err, line);
  }
}

} // namespace
} // namespace kiln::test
