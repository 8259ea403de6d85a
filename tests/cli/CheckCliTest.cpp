// `kiln check`: one line when all is good, the defect's place when not.
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class CheckCliTest : public CachedCliTest {
protected:
  static Words check(Words words, const Words &more = {}) {
    words.insert(words.begin(), "check");
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static void refused(const Words &words, const std::string &part, int status = 2) {
    const Outcome o = kiln(check(words));
    EXPECT_EQ(o.status, status) << o.out << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_NE(o.err.find(part), std::string::npos) << part << "\n" << o.err;
  }
};

TEST_F(CheckCliTest, AGoodLibraryKernelIsOneLine) {
  const Outcome o = kiln(check({"add", "--target", "sm_75,sm_80", "--dtype", "f32"}));
  EXPECT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_EQ(o.out, "good: add on sm_75, sm_80: 24 runs (in-order, random, adversarial), no finding, all results within "
                   "tolerance of float64\n");
}

TEST_F(CheckCliTest, TheJsonNamesEveryRun) {
  const Outcome o = kiln(check({"layer_norm", "copy", "--target", "sm_80", "--dtype", "f32", "--json"}));
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  const Json j = Json::parse(o.out);
  EXPECT_EQ(j["runs"], 24);
  EXPECT_EQ(j["bad"], 0);
  std::vector<std::string> inputs;
  for (const Json &run : j["checked"]) {
    EXPECT_EQ(run["good"], true);
    EXPECT_EQ(run["target"], "sm_80");
    inputs.push_back(run["inputs"]);
  }
  for (const char *shape : {"f32, x 4097", "f32, bias 31, weight 31, x 3x31", "f32, bias 1, weight 1, x 1x1"})
    EXPECT_NE(std::find(inputs.begin(), inputs.end(), shape), inputs.end()) << shape << j.dump();
}

TEST_F(CheckCliTest, AGoodPtxRunsOnTheGpuThatItNames) {
  const Words line = {write("add.ptx", addPtx), "--grid", "2",          "--block", "32",    "--arg",
                      floats("x.npy", 64),      "--arg",  "out:f32:64", "--arg",   "u32:64"};
  const Outcome o = kiln(check(line));
  EXPECT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_EQ(o.out, "good: add on sm_80: 3 runs (in-order, random, adversarial), no finding\n");
  EXPECT_EQ(kiln(check(line, {"--target", "sm_80,sm_89,sm_90a"})).out,
            "good: add on sm_80, sm_89, sm_90a: 9 runs (in-order, random, adversarial), no finding\n");
}

/// A word of a buffer that nobody wrote is read, and then nothing ends.
constexpr const char *endlessPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry endless(.param .u64 p) {
  .reg .b64 %rd<2>; .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [%rd1];
LOOP:
  add.u32 %r1, %r1, 1;
  bra LOOP;
}
)";

TEST_F(CheckCliTest, AKernelThatDoesNotEndIsEnded) {
  const std::string ptx = write("endless.ptx", endlessPtx);
  const Words line = {ptx, "--grid", "1", "--block", "32", "--timeout", "0.2", "--arg"};
  const Outcome o = kiln(check(line, {floats("x.npy", 64)}));
  EXPECT_EQ(o.status, 4) << o.out << o.err;
  EXPECT_NE(o.err.find("budget: kernel endless was ended by the limit of 0.2 seconds a launch, after "),
            std::string::npos)
      << o.err;
  EXPECT_NE(o.err.find("(schedule in-order) (look for a loop that does not end, or raise the limit: --timeout S"),
            std::string::npos)
      << o.err;
  // What was found before does not hide that the launch was ended.
  const Outcome both = kiln(check(line, {"out:f32:64"}));
  EXPECT_EQ(both.status, 1) << both.out << both.err;
  EXPECT_NE(both.out.find("finding uninit.global: kernel endless"), std::string::npos) << both.out;
  EXPECT_NE(both.err.find("budget: kernel endless was ended by the limit of 0.2 seconds"), std::string::npos)
      << both.err;
  const Words quick = {write("add.ptx", addPtx), "--grid", "2",          "--block", "32",     "--arg",
                       floats("x.npy", 64),      "--arg",  "out:f32:64", "--arg",   "u32:64", "--json"};
  EXPECT_EQ(Json::parse(kiln(check(quick)).out)["timeout"], 120);
  EXPECT_EQ(Json::parse(kiln(check(quick, {"--timeout", "0"})).out)["timeout"], 0);
}

TEST_F(CheckCliTest, DecodingSaysWhichKernelsTheTargetCanRun) {
  const std::string good = write("good.ptx", addPtx);
  const Outcome fine = kiln(check({good, "--decode"}));
  EXPECT_EQ(fine.status, 0) << fine.err;
  EXPECT_EQ(fine.out, "1: add on sm_80: decoded\ngood: " + good + ": 1 of 1 kernels decoded\n");
  const std::string mixed =
      write("mixed.ptx", std::string(addPtx) + ".visible .entry bad() { .reg .b32 %r<2>; mov.u32 %r1, %pm0; ret; }\n"
                                               ".visible .entry empty() { ret; }\n");
  const Outcome o = kiln(check({mixed, "--decode"}));
  EXPECT_EQ(o.status, 3) << o.err;
  EXPECT_EQ(o.out, "1: add on sm_80: decoded\n2: bad on sm_80: refused\n3: empty on sm_80: decoded\nINCOMPLETE: " +
                       mixed + ": 2 of 3 kernels decoded; not: 2 on sm_80\n");
  EXPECT_NE(o.err.find("special register %pm0 does not exist on the emulator"), std::string::npos) << o.err;
  const Json j = Json::parse(kiln(check({mixed, "--decode", "--json"})).out);
  EXPECT_EQ(j["checked"].size(), 2u);
  EXPECT_EQ(j["checked"][1]["kernel"], "empty");
  EXPECT_EQ(j["failed"].size(), 1u);
  EXPECT_EQ(j["failed"][0]["kernel"], "bad");
  refused({"add", "--decode"}, "--decode is for PTX, 'add' is none");
}

/// The module is for sm_80: one target of the two runs it.
TEST_F(CheckCliTest, ATargetThatCannotRunTheKernelDoesNotEndTheCheck) {
  const std::string ptx = write("add.ptx", addPtx);
  const Words line = {ptx,     "--grid",     "2",     "--block", "32",       "--arg",      floats("x.npy", 64),
                      "--arg", "out:f32:64", "--arg", "u32:64",  "--target", "sm_75,sm_80"};
  const Outcome o = kiln(check(line));
  EXPECT_EQ(o.status, 3) << o.out << o.err;
  EXPECT_EQ(o.out, "INCOMPLETE: add on sm_80: 3 runs (in-order, random, adversarial), no finding; not compiled or not "
                   "run: " +
                       ptx + " on sm_75\n");
  EXPECT_NE(o.err.find("the module is for sm_80, the device is sm_75"), std::string::npos) << o.err;
  const Json j = Json::parse(kiln(check(line, {"--json"})).out);
  EXPECT_EQ(j["status"], 3);
  EXPECT_EQ(j["runs"], 3);
  ASSERT_EQ(j["failed"].size(), 1u) << j.dump();
  EXPECT_EQ(j["failed"][0]["target"], "sm_75");
  EXPECT_EQ(j["failed"][0]["status"], 3);
}

TEST_F(CheckCliTest, DefectsOfPtxAreStatus1) {
  const std::string ptx = write("add.ptx", addPtx);
  const Words shape = {"--grid", "1", "--block", "64"};
  const Outcome past =
      kiln(check({ptx, "--arg", floats("x.npy", 64), "--arg", "out:f32:48", "--arg", "u32:64"}, shape));
  EXPECT_EQ(past.status, 1) << past.out << past.err;
  EXPECT_NE(past.out.find("kernel add on sm_80, schedule in-order, " + ptx + ":\nfinding oob.global: kernel add"),
            std::string::npos)
      << past.out;
  EXPECT_NE(past.out.find("BAD: add on sm_80: 3 of 3 runs (in-order, random, adversarial) with findings\n"),
            std::string::npos)
      << past.out;
  const Outcome unwritten =
      kiln(check({ptx, "--arg", "out:f32:64", "--arg", "out:f32:64", "--arg", "u32:64", "--json"}, shape));
  EXPECT_EQ(unwritten.status, 1) << unwritten.err;
  EXPECT_EQ(Json::parse(unwritten.out)["checked"][0]["findings"][0]["id"], "uninit.global");
}

TEST_F(CheckCliTest, ATextKernelOnEachTarget) {
  const std::string text = KILN_SOURCE_DIR "/docs/examples/scale.mlir", x = floats("x.npy", 600);
  const Words good = {text, "--grid", "2", "--arg", x, "--arg", "out:f32:600", "--arg", "f32:2", "--arg", "i32:600"};
  const Outcome o = kiln(check(good, {"--target", "sm_75,sm_90a"}));
  EXPECT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_EQ(o.out, "good: scale on sm_75, sm_90a: 6 runs (in-order, random, adversarial), no finding\n");
  const Words bad = {text, "--grid", "2", "--arg", x, "--arg", "out:f32:500", "--arg", "f32:2", "--arg", "i32:600"};
  const Outcome past = kiln(check(bad, {"--target", "sm_80"}));
  EXPECT_EQ(past.status, 1) << past.err;
  EXPECT_NE(past.out.find("scale.mlir:22"), std::string::npos) << past.out;
}

/// A text kernel reads what nobody wrote: no fatal finding.
TEST_F(CheckCliTest, TheSettingMakesLaunchesFailOrChecksLess) {
  const Words line = {"run",      KILN_SOURCE_DIR "/docs/examples/scale.mlir",
                      "--grid",   "2",
                      "--arg",    "out:f32:600",
                      "--arg",    "out:f32:600",
                      "--arg",    "f32:2",
                      "--arg",    "i32:600",
                      "--target", "sm_80"};
  const auto with = [&](const char *value) {
    Words words = line;
    words.insert(words.end(), {"--checks", value});
    return kiln(words);
  };
  const Outcome on = with("on"), off = with("off"), strict = with("fail");
  EXPECT_EQ(on.status, 1) << on.out << on.err;
  EXPECT_NE(on.out.find("finding uninit.global"), std::string::npos) << on.out;
  EXPECT_EQ(off.status, 0) << off.out << off.err;
  EXPECT_EQ(strict.status, 1) << strict.out << strict.err;
  EXPECT_NE(strict.err.find("finding uninit.global: kernel scale"), std::string::npos) << strict.err;
  EXPECT_NE(strict.err.find("(KILN_CHECKS=fail)"), std::string::npos) << strict.err;
}

/// Warp 1 reads what warp 0 writes; with the barrier it is right.
TEST_F(CheckCliTest, ARaceNamesBothSides) {
  const auto program = [](const std::string &barrier) {
    return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry race(.param .u64 out) {
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<4>; .shared .align 4 .b32 cell;
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READ;
  st.shared.b32 [cell], 7;
READ:
  )" + barrier +
           R"(
  setp.ne.u32 %p1, %r1, 32;
  @%p1 bra DONE;
  ld.shared.b32 %r2, [cell]; st.global.b32 [%d1], %r2;
DONE:
  ret;
}
)";
  };
  const Words shape = {"--grid", "1", "--block", "64", "--arg", "out:i32:1", "--json"};
  const Outcome good = kiln(check({write("good.ptx", program("bar.sync 0;"))}, shape));
  EXPECT_EQ(good.status, 0) << good.out << good.err;
  const Outcome o = kiln(check({write("race.ptx", program(""))}, shape));
  EXPECT_EQ(o.status, 1) << o.out << o.err;
  const Json j = Json::parse(o.out);
  unsigned races = 0;
  for (const Json &run : j["checked"])
    for (const Json &f : run["findings"])
      if (f["id"] == "race.shared") {
        ++races;
        EXPECT_NE(f["warp"], f["other"]["warp"]);
        EXPECT_NE(f["opcode"], f["other"]["opcode"]);
      }
  EXPECT_EQ(races, 3u) << o.out; // one a schedule
}

TEST_F(CheckCliTest, WrongUsesAreNamed) {
  const std::string ptx = write("add.ptx", addPtx);
  refused({}, "what is required");
  refused({"sofmax"}, "did you mean softmax");
  refused({"add", "--target", "sm_81"}, "sm_81");
  refused({"add", "--dtype", "i32"}, "kernel 'add' exists for f32, f16, bf16");
  refused({"add", "--schedule", "backwards"}, "backwards");
  refused({"add", "--grid", "4"}, "--grid, --block and --arg are for files");
  refused({ptx, "add", "--grid", "1", "--block", "1"}, "a file is checked alone");
  refused({ptx}, "--grid is required");
  refused({ptx, "--grid", "1", "--block", "1"}, "takes 3 arguments, 0 were given");
  refused({file("none.ptx"), "--grid", "1", "--block", "1"}, "No such file");
  refused(
      {write("bad.ptx", ".version 8.0\n.target sm_80\n.address_size 64\nnonsense;\n"), "--grid", "1", "--block", "1"},
      "bad.ptx", 3);
}

} // namespace
} // namespace kiln::test
