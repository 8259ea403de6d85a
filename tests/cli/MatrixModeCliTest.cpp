// How the emulator sums matrix products (`--mma`, KILN_MMA): it computes so, and `run`, `check` and `devices` say so.
#include "runtime/io/File.h"
#include "tests/cli/Program.h"

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kiln::test {
namespace {

using Json = nlohmann::json;

/// D = 1 + 1.5 * 2^-24 in rows 0 to 7: f32 fused multiply-adds round it up, a tensor core cuts it off.
constexpr char productPtx[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry product(.param .u64 out) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .f32 %f<5>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d2, %d1, %d2;
  and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0;
  selp.b32 %r3, 0x3E00, 0, %p1; selp.b32 %r4, 0x0001, 0, %p1; mov.b32 %r5, 0; mov.f32 %f1, 0f3F800000;
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r3, %r5}, {%r4}, {%f1, %f1, %f1, %f1};
  st.global.f32 [%d2], %f1;
  ret;
}
)";

class MatrixModeCliTest : public CliTest {
protected:
  void TearDown() override { unsetenv("KILN_MMA"); }
  Outcome run(const std::vector<std::string> &more, const std::string &device = "emulator:sm_80") {
    std::vector<std::string> words = {
        "run", write("product.ptx", productPtx), "--grid", "1", "--block", "32", "--arg", "out:f32:32", "--device",
        device};
    words.insert(words.end(), more.begin(), more.end());
    return kiln(words);
  }
  /// The first element of a .npy file.
  float firstOf(const std::string &name) const {
    const auto bytes = readTextFile(file(name));
    EXPECT_TRUE(bytes.ok());
    float value = 0;
    if (bytes.ok() && bytes->size() > 32 * sizeof value)
      std::memcpy(&value, bytes->data() + bytes->size() - 32 * sizeof value, sizeof value);
    return value;
  }
};

TEST_F(MatrixModeCliTest, RunComputesAndReportsIt) {
  const Outcome exact = run({"--output", "0:" + file("exact.npy")});
  ASSERT_EQ(exact.status, 0) << exact.err;
  EXPECT_EQ(exact.out.find("mma"), std::string::npos) << exact.out;
  EXPECT_EQ(firstOf("exact.npy"), 1.0f);
  const Outcome fast = run({"--output", "0:" + file("fast.npy"), "--mma", "fast"});
  ASSERT_EQ(fast.status, 0) << fast.err;
  EXPECT_NE(fast.out.find("emulator:sm_80 (mma fast): kernel 'product': good\n"), std::string::npos) << fast.out;
  EXPECT_EQ(firstOf("fast.npy"), 1.0f + 0x1p-23f);
  EXPECT_EQ(Json::parse(run({"--json"}).out)["mma"], "exact");
  EXPECT_EQ(Json::parse(run({"--json", "--mma", "fast"}).out)["mma"], "fast");
}

TEST_F(MatrixModeCliTest, TheVariableIsTheOptionAndTheOptionWins) {
  setenv("KILN_MMA", "fast", 1);
  EXPECT_EQ(Json::parse(run({"--json"}).out)["mma"], "fast");
  EXPECT_EQ(Json::parse(run({"--json", "--mma", "exact"}).out)["mma"], "exact");
  const Json devices = Json::parse(kiln({"devices", "--json"}).out);
  unsigned emulators = 0;
  for (const Json &d : devices["devices"])
    if (d["kind"] == "emulator") {
      ++emulators;
      EXPECT_EQ(d["mma"], "fast") << d["name"];
    }
  EXPECT_GT(emulators, 0u);
  EXPECT_NE(kiln({"devices"}).out.find(" host threads, mma fast\n"), std::string::npos);
  EXPECT_NE(kiln({"devices", "--report"}).out.find(", mma fast\n"), std::string::npos);
  unsetenv("KILN_MMA");
  EXPECT_EQ(kiln({"devices"}).out.find("mma fast"), std::string::npos);
}

TEST_F(MatrixModeCliTest, CheckReportsIt) {
  const std::vector<std::string> line = {
      "check", write("product.ptx", productPtx), "--grid", "1", "--block", "32", "--arg", "out:f32:32"};
  auto check = [&](const std::vector<std::string> &more) {
    std::vector<std::string> words = line;
    words.insert(words.end(), more.begin(), more.end());
    return kiln(words);
  };
  EXPECT_EQ(check({}).out, "good: product on sm_80: 3 runs (in-order, random, adversarial), no finding\n");
  EXPECT_EQ(check({"--mma", "fast"}).out,
            "good: product on sm_80: 3 runs (in-order, random, adversarial, mma fast), no finding\n");
  EXPECT_EQ(Json::parse(check({"--json"}).out)["mma"], "exact");
  EXPECT_EQ(Json::parse(check({"--json", "--mma", "fast"}).out)["mma"], "fast");
}

TEST_F(MatrixModeCliTest, OtherWordsAreRefused) {
  const Outcome o = run({"--mma", "quick"});
  EXPECT_EQ(o.status, 2) << o.out << o.err;
  EXPECT_NE(o.err.find("quick"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("exact"), std::string::npos) << o.err;
}

TEST_F(MatrixModeCliTest, AGpuHasNone) {
  const Outcome o = kiln({"devices", "--json"}, fakeDriver());
  ASSERT_EQ(o.status, 0) << o.err;
  const Json report = Json::parse(o.out);
  for (const Json &d : report["devices"])
    EXPECT_EQ(d.contains("mma"), d["kind"] == "emulator") << d["name"];
}

} // namespace
} // namespace kiln::test
