// `kiln run FILE.mlir`: a text kernel through the JIT, and what its first call reports.
#include "runtime/io/Npy.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class RunTextCliTest : public CliTest {
protected:
  void SetUp() override {
    setenv("KILN_CACHE_DIR", file("cache").c_str(), 1);
    std::filesystem::copy_file(KILN_SOURCE_DIR "/docs/examples/scale.mlir", text);
    x = floats("x.npy", 600);
  }
  void TearDown() override { unsetenv("KILN_CACHE_DIR"); }

  static Words with(Words words, const Words &more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Words arguments(const Words &texts) const {
    Words out;
    for (const std::string &t : texts)
      out = with(out, {"--arg", t});
    return out;
  }
  Words command(const Words &texts, const Words &more = {}) const {
    return with(with({"run", text, "--grid", "2", "--target", "sm_80"}, arguments(texts)), more);
  }
  Words good(const Words &more = {}) const { return command({x, "out:f32:600", "f32:-0.5", "i32:600"}, more); }

  std::string text = file("scale.mlir"), x;
};

TEST_F(RunTextCliTest, ComputesAndComesFromTheCacheTheSecondTime) {
  const Words line = good({"--output", "1:" + file("y.npy"), "--json"});
  for (const char *source : {"compiled", "disk"}) {
    const Outcome o = kiln(line);
    ASSERT_EQ(o.status, 0) << o.out << o.err;
    const Json j = Json::parse(o.out);
    EXPECT_EQ(j["kernel"], "scale");
    EXPECT_EQ(j["block"], (Json{128, 1, 1}));
    EXPECT_EQ(j["grid"], (Json{2, 1, 1}));
    EXPECT_EQ(j["times"]["bytes"], 4800.0);
    EXPECT_GT(j["times"]["gigabytesPerSecond"], 0.0);
    ASSERT_EQ(j["firstCalls"].size(), 1u);
    EXPECT_EQ(j["firstCalls"][0]["source"], source);
    EXPECT_EQ(j["text"]["remembered"], source == std::string("disk"));
    auto y = readNpy(file("y.npy"));
    ASSERT_TRUE(y.ok());
    ASSERT_EQ(y->data.size(), 2400u);
    for (unsigned i = 0; i < 600; ++i) {
      float value = 0;
      std::memcpy(&value, &y->data[4 * i], 4);
      EXPECT_EQ(value, -0.5f * static_cast<float>(i)) << i;
    }
    std::filesystem::remove(file("y.npy"));
  }
}

TEST_F(RunTextCliTest, TheReportHasTheStagesOfTheCompile) {
  const Outcome o = kiln(good({"--json"}));
  ASSERT_EQ(o.status, 0) << o.err;
  const Json j = Json::parse(o.out);
  std::vector<std::string> names;
  for (const Json &s : j["firstCalls"][0]["stages"])
    names.push_back(s["name"]);
  for (const char *stage : {"key", "disk lookup", "compile", "compile: parse", "compile: tile", "compile: tile_gpu",
                            "compile: lowering", "compile: llvm", "compile: ptx", "load", "store"})
    EXPECT_NE(std::find(names.begin(), names.end(), stage), names.end()) << stage;
  const Outcome again = kiln(good());
  EXPECT_NE(again.out.find("kernel scale [x/16 out/16]: from the cache (disk); "), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("time: 1 launch, median "), std::string::npos) << again.out;
}

TEST_F(RunTextCliTest, AMissIsOneLineAndWholeIfAskedFor) {
  ASSERT_EQ(kiln(good()).status, 0);
  Words line = good();
  line[5] = "sm_90a"; // --target
  const Outcome brief = kiln(line);
  ASSERT_EQ(brief.status, 0) << brief.err;
  EXPECT_NE(brief.out.find("compiled: no entry of this key; the nearest of 1 differs in code target; "),
            std::string::npos)
      << brief.out;
  EXPECT_EQ(brief.out.find("'sm_90a', the entry has"), std::string::npos) << brief.out;
  line[5] = "sm_89";
  const Outcome whole = kiln(with(line, {"--explain-miss"}));
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_NE(whole.out.find("    code target: 'sm_89', the entry has 'sm_"), std::string::npos) << whole.out;
  line[5] = "sm_75";
  const Json j = Json::parse(kiln(with(line, {"--json"})).out);
  EXPECT_NE(j["firstCalls"][0]["explanation"].get<std::string>().find("'sm_75', the entry has"), std::string::npos);
}

TEST_F(RunTextCliTest, ArgumentsAreCheckedAgainstTheKernelsTypes) {
  floats("wide.npy", 4);
  const auto refused = [&](const Words &texts, const std::string &part) {
    const Outcome o = kiln(command(texts, {"--output", "1:" + file("y.npy")}));
    EXPECT_EQ(o.status, 2) << o.out << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_NE(o.err.find(part), std::string::npos) << part << "\n" << o.err;
    EXPECT_FALSE(std::filesystem::exists(file("y.npy")));
  };
  refused({x, "out:f16:600", "f32:1", "i32:600"},
          "argument 1 ('out:f16:600') holds f16; parameter 1 'out' of kernel 'scale' is ptr<f32> (pass out:f32:SHAPE)");
  refused({"bf16:" + x, "out:f32:600", "f32:1", "i32:600"}, "holds bf16; parameter 0 'x'");
  refused({x, "out:f32:600", "f16:1", "i32:600"}, "argument 2 ('f16:1') has 2 bytes; parameter 2 'factor'");
  refused({x, "out:f32:600", "i32:1", "i32:600"}, "argument 2 ('i32:1') is an integer; parameter 2 'factor'");
  refused({x, "out:f32:600", "f32:1", "f32:600"}, "is a floating-point number; parameter 3 'n'");
  refused({x, "out:f32:600", "f32:1", "i64:600"}, "argument 3 ('i64:600') has 8 bytes; parameter 3 'n'");
  refused({x, "out:f32:600", "f32:1"}, "takes 4 arguments, 3 were given");
  refused({"i64:4096", "out:f32:600", "f32:1", "i32:1"}, "argument 0 ('i64:4096') is a number; parameter 0 'x'");
  refused({"ptr:3", "out:f32:600", "f32:1", "i32:600"}, "is no multiple of the 4 bytes of f32");
}

TEST_F(RunTextCliTest, OptionsOfOtherKindsOfFilesAreRefused) {
  const auto refused = [&](const Words &line, const std::string &part) {
    const Outcome o = kiln(line);
    EXPECT_EQ(o.status, 2) << o.out << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << part << "\n" << o.err;
  };
  refused(good({"--block", "128"}), "--block 128: the kernel of a text file says this itself");
  refused(good({"--shared", "16"}), "--shared 16");
  refused(good({"--cluster", "2"}), "--cluster 2");
  refused(good({"--dtype", "f16"}), "--dtype f16: the kernel of a text file has types of its own");
  refused(good({"--entry", "skale"}), "the program has no kernel 'skale'; it has scale");
  refused(with({"run", text, "--target", "sm_80"}, arguments({x, "out:f32:600", "f32:1", "i32:600"})),
          "--grid is required to run a text kernel");
  refused({"run", file("none.mlir"), "--grid", "1"}, "none.mlir': No such file");
  refused({"run", write("bad.mlir", "func.func @k(\n"), "--grid", "1"}, "bad.mlir:1:14: error:");
  refused({"run", text, "--grid", "1", "--target", "sm_81"}, "unknown target 'sm_81'");
}

TEST_F(RunTextCliTest, AKernelThatDoesNotFitIsStatus3) {
  const std::string big =
      write("big.mlir", R"(func.func @big(%x: !tile.ptr<f32> {tile.name = "x"}) attributes {tile.kernel} {
  %r = tile.range 0 to 1048576 : tensor<1048576xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<1048576x!tile.ptr<f32>>
  %p = tile.addptr %xs, %r : tensor<1048576x!tile.ptr<f32>>, tensor<1048576xi32>
  %v = tile.load %p : tensor<1048576x!tile.ptr<f32>>
  tile.store %p, %v : tensor<1048576x!tile.ptr<f32>>
  return
}
)");
  const Outcome o = kiln({"run", big, "--grid", "1", "--arg", "out:f32:8", "--output", "0:" + file("y.npy")});
  EXPECT_EQ(o.status, 3) << o.out << o.err;
  EXPECT_NE(o.err.find("big.mlir:2:"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("the limit is"), std::string::npos) << o.err;
  EXPECT_FALSE(std::filesystem::exists(file("y.npy")));
}

TEST_F(RunTextCliTest, FindingsNameTheTextsLine) {
  const Outcome o = kiln(command({x, "out:f32:500", "f32:1", "i32:600"}, {"--output", "1:" + file("y.npy")}));
  EXPECT_EQ(o.status, 1) << o.out << o.err;
  EXPECT_NE(o.out.find("finding oob.global: kernel scale"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("scale.mlir:22"), std::string::npos) << o.out;
  EXPECT_FALSE(std::filesystem::exists(file("y.npy")));
}

/// The fake GPU's modules hold one kernel, add(x, y, n), which does nothing in 1.5 ms.
TEST_F(RunTextCliTest, OnAGpuTimesAreTheGpus) {
  const std::string add =
      write("add.mlir", R"(func.func @add(%x: !tile.ptr<f32> {tile.name = "x"}, %y: !tile.ptr<f32> {tile.name = "y"},
                %n: i32 {tile.name = "n"}) attributes {tile.kernel} {
  %v = tile.load %x : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}
)");
  const Words line = {"run",    add,        "--grid",      "1",        "--arg",
                      x,        "--arg",    "out:f32:600", "--arg",    "i32:600",
                      "--json", "--repeat", "3",           "--output", "1:" + file("y.npy")};
  for (const char *source : {"compiled", "disk"}) {
    const Outcome o = kiln(line, fakeDriver());
    ASSERT_EQ(o.status, 0) << o.out << o.err;
    const Json j = Json::parse(o.out);
    EXPECT_EQ(j["device"], "cuda:0");
    EXPECT_EQ(j["times"]["launches"], 3);
    EXPECT_EQ(j["times"]["medianMs"], 1.5);
    EXPECT_EQ(j["firstCalls"].size(), 1u); // one compile, whatever the number of launches
    EXPECT_EQ(j["firstCalls"][0]["source"], source);
    std::filesystem::remove_all(file("driver"));
  }
  EXPECT_TRUE(std::filesystem::exists(file("y.npy")));
}

TEST_F(RunTextCliTest, LineInfoAndPathAreNoPartOfTheResult) {
  // Another path of the same text: line information names the path, so on the emulator it is another entry.
  ASSERT_EQ(kiln(good()).status, 0);
  setenv("KILN_LINE_INFO", "off", 1);
  ASSERT_EQ(kiln(good()).status, 0);
  std::filesystem::copy_file(text, file("other.mlir"));
  Words line = good({"--json"});
  line[1] = file("other.mlir");
  const Json j = Json::parse(kiln(line).out);
  unsetenv("KILN_LINE_INFO");
  EXPECT_EQ(j["firstCalls"][0]["source"], "disk") << j.dump();
}

/// A kernel that an author wrote at stage tile_gpu, with a pipeline.  One tile: the slots of those that do not exist
/// are never read.
TEST_F(RunTextCliTest, APipelineWrittenByHand) {
  for (const unsigned tiles : {1u, 2u, 7u}) {
    const unsigned elements = 64 * 32;
    const std::string in = floats("tiles.npy", tiles * elements);
    for (const char *target : {"sm_80", "sm_90a", "sm_120a"}) {
      std::filesystem::remove(file("sum.npy"));
      const Outcome o = kiln(with({"run", KILN_SOURCE_DIR "/docs/examples/ring.mlir", "--grid", "1", "--target", target,
                                   "--output", "1:" + file("sum.npy")},
                                  arguments({in, "out:f32:64x32", "i32:" + std::to_string(tiles)})));
      ASSERT_EQ(o.status, 0) << target << o.out << o.err;
      auto sums = readNpy(file("sum.npy"));
      auto values = readNpy(in);
      ASSERT_TRUE(sums.ok() && values.ok());
      ASSERT_EQ(sums->data.size(), 4 * elements);
      for (unsigned i = 0; i < elements; ++i) {
        double expected = 0;
        float value = 0;
        for (unsigned t = 0; t < tiles; ++t) {
          std::memcpy(&value, &values->data[4 * (t * elements + i)], 4);
          expected += value;
        }
        std::memcpy(&value, &sums->data[4 * i], 4);
        ASSERT_EQ(value, expected) << target << ", element " << i; // small whole numbers: exact
      }
    }
  }
  const Outcome lacks =
      kiln(with({"run", KILN_SOURCE_DIR "/docs/examples/ring.mlir", "--grid", "1", "--target", "sm_75"},
                arguments({floats("tiles.npy", 2048), "out:f32:64x32", "i32:1"})));
  EXPECT_EQ(lacks.status, 3);
  EXPECT_NE(lacks.err.find("needs the capability 'cp.async', which sm_75 lacks"), std::string::npos) << lacks.err;
}

} // namespace
} // namespace kiln::test
