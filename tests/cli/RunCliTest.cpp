// `kiln run` on the emulator: results, findings and their exit status.
#include "runtime/io/Npy.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <cstring>

namespace kiln::test {
namespace {

class RunCliTest : public CliTest {
protected:
  void SetUp() override {
    ptx = write("add.ptx", addPtx);
    x = floats("x.npy", 64);
  }
  std::vector<float> values(const std::string &name) {
    auto a = readNpy(file(name));
    EXPECT_TRUE(a.ok()) << a.status().toString();
    std::vector<float> out(a.ok() ? a->data.size() / 4 : 0);
    if (a.ok())
      std::memcpy(out.data(), a->data.data(), a->data.size());
    return out;
  }
  std::string ptx, x;
};

TEST_F(RunCliTest, Computes) {
  for (const char *target : {"sm_80", "sm_90a"}) {
    const Outcome o = kiln({"run", ptx, "--grid", "2", "--block", "32", "--arg", x, "--arg", "out:float32:8x8", "--arg",
                            "i32:64", "--output", "1:" + file("y.npy"), "--target", target});
    ASSERT_EQ(o.status, 0) << o.out << o.err;
    const std::vector<float> y = values("y.npy");
    ASSERT_EQ(y.size(), 64u);
    for (unsigned i = 0; i < 64; ++i)
      EXPECT_EQ(y[i], 2.0f * i);
    EXPECT_EQ(readNpy(file("y.npy"))->shape, (Shape{8, 8}));
  }
}

TEST_F(RunCliTest, UnwrittenElementsKeepThePoison) {
  const Outcome o = kiln({"run", ptx, "--grid", "1", "--block", "64", "--arg", x, "--arg", "out:u32:64", "--arg",
                          "i32:60", "--output", "1:" + file("y.npy"), "--device", "emulator"});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  auto y = readNpy(file("y.npy"));
  std::uint32_t last;
  std::memcpy(&last, &y->data[63 * 4], 4);
  EXPECT_EQ(last, 0xcdcdcdcdu);
}

TEST_F(RunCliTest, InPlaceAndRepeated) {
  // Each launch starts from the file, so three launches double once.
  const Outcome o = kiln({"run", ptx, "--grid", "1", "--block", "64", "--arg", x, "--arg", x, "--arg", "i32:64",
                          "--output", "1:" + file("y.npy"), "--device", "emulator", "--repeat", "3", "--time"});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_NE(o.out.find("time: 3 launches, median"), std::string::npos);
  EXPECT_EQ(values("y.npy")[63], 126.0f);
}

TEST_F(RunCliTest, FindingsAreStatus1AndNothingIsWritten) {
  const Outcome o = kiln({"run", ptx, "--grid", "1", "--block", "64", "--arg", x, "--arg", "out:f32:48", "--arg",
                          "i32:64", "--output", "1:" + file("y.npy"), "--device", "emulator:sm_80"});
  EXPECT_EQ(o.status, 1) << o.out << o.err;
  EXPECT_NE(o.out.find("finding oob.global: kernel add block (0,0,0) warp 1"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("no output was written"), std::string::npos) << o.out;
  EXPECT_EQ(files(), (std::vector<std::string>{"add.ptx", "x.npy"}));
  const Outcome json = kiln({"run", ptx, "--grid", "1", "--block", "64", "--arg", x, "--arg", "out:f32:48", "--arg",
                             "i32:64", "--device", "emulator:sm_80", "--json"});
  EXPECT_EQ(json.status, 1);
  const auto j = nlohmann::json::parse(json.out);
  EXPECT_EQ(j["status"], 1);
  EXPECT_EQ(j["findings"][0]["id"], "oob.global");
}

TEST_F(RunCliTest, ReadingWhatNobodyWroteIsFound) {
  const std::vector<std::string> line = {
      "run",        ptx,     "--grid",     "1",     "--block", "64",       "--arg",
      "out:f32:64", "--arg", "out:f32:64", "--arg", "i32:64",  "--device", "emulator:sm_80"};
  const Outcome o = kiln(line);
  EXPECT_EQ(o.status, 1) << o.out << o.err;
  EXPECT_NE(o.out.find("uninit.global"), std::string::npos) << o.out;
  std::vector<std::string> unchecked = line;
  unchecked.emplace_back("--no-checks");
  EXPECT_EQ(kiln(unchecked).status, 0);
}

TEST_F(RunCliTest, RefusedPtxIsStatus3) {
  const std::string bad = write("bad.ptx", ".version 8.0\n.target sm_80\n.address_size 64\nnonsense here;\n");
  const Outcome o = kiln({"run", bad, "--grid", "1", "--block", "1", "--device", "emulator"});
  EXPECT_EQ(o.status, 3) << o.out << o.err;
  EXPECT_NE(o.err.find("bad.ptx"), std::string::npos) << o.err;
}

TEST_F(RunCliTest, TypesAreChecked) {
  const Outcome o = kiln({"run", ptx, "--grid", "1", "--block", "64", "--arg", x, "--arg", "out:f32:64", "--arg",
                          "f32:64", "--device", "emulator"});
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(o.err,
            "kiln run: argument 2 ('f32:64') is a floating-point number; parameter 2 'n' of kernel 'add' is u32 (4 "
            "bytes) (pass i32:V)\n");
}

TEST_F(RunCliTest, ABudgetEndsALoop) {
  const std::string loop =
      write("loop.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\nL:\n  bra L;\n}\n");
  const Outcome o =
      kiln({"run", loop, "--grid", "1", "--block", "32", "--device", "emulator", "--instruction-budget", "10000"});
  EXPECT_NE(o.status, 0);
  EXPECT_LT(o.status, 128) << o.err;
}

TEST_F(RunCliTest, SeveralEntriesNeedAName) {
  const std::string two =
      write("two.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry a() { ret; }\n"
                       ".visible .entry b() { ret; }\n");
  const Outcome o = kiln({"run", two, "--grid", "1", "--block", "1", "--device", "emulator"});
  EXPECT_EQ(o.status, 2);
  EXPECT_NE(o.err.find("has 2 kernels: 1: a, 2: b (choose one with --entry NAME, a part of its name or its number)"),
            std::string::npos)
      << o.err;
  EXPECT_EQ(kiln({"run", two, "--grid", "1", "--block", "1", "--device", "emulator", "--entry", "b"}).status, 0);
}

} // namespace
} // namespace kiln::test
