// `kiln bench` and `kiln demo` of matmul and attention: what they count, the sizes that they are given.
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class BenchCliTest : public CachedCliTest {
protected:
  Json bench(Words words) {
    words.insert(words.begin(), "bench");
    words.insert(words.end(), {"--target", "sm_80", "--json"});
    const Outcome o = kiln(words);
    EXPECT_EQ(o.status, 0) << o.out << o.err;
    return Json::parse(o.out, nullptr, false);
  }
  void refused(Words words, const std::string &part) {
    words.insert(words.begin(), "bench");
    words.insert(words.end(), {"--target", "sm_80"});
    expectRefused(words, part);
  }
};

TEST_F(BenchCliTest, CountsOperations) {
  const Json j = bench({"attention", "matmul", "--dtype", "bf16"});
  ASSERT_EQ(j["results"].size(), 4u) << j.dump(); // the device's copy, full, causal, a product
  const Json &full = j["results"][1], &causal = j["results"][2], &product = j["results"][3];
  EXPECT_EQ(full["flops"], 4.0 * 256 * 256 * 64 * 2);
  EXPECT_EQ(causal["flops"], 2.0 * 256 * 256 * 64 * 2);
  EXPECT_EQ(product["flops"], 2.0 * 256 * 256 * 256);
  EXPECT_EQ(product["shape"], "256x256x256");
  EXPECT_EQ(causal["shape"], "B1 S256 H2 D64 causal");
  EXPECT_FALSE(j["results"][0].contains("flops"));
  for (const Json *row : {&full, &causal, &product}) {
    EXPECT_EQ((*row)["check"], "good");
    EXPECT_NEAR((*row)["teraflopsPerSecond"].get<double>(),
                (*row)["flops"].get<double>() / (*row)["medianMs"].get<double>() * 1e-9, 1e-9);
    EXPECT_LE((*row)["minMs"].get<double>(), (*row)["medianMs"].get<double>());
    EXPECT_LE((*row)["medianMs"].get<double>(), (*row)["maxMs"].get<double>());
  }
}

TEST_F(BenchCliTest, SizesOfTheCaller) {
  const Words sizes = {"--with", "q=1x30x4x16", "--with", "k=1x50x2x16", "--with", "v=1x50x2x8"};
  const auto flops = [&](Words more) {
    more.insert(more.begin(), sizes.begin(), sizes.end());
    more.insert(more.begin(), {"attention", "--dtype", "f16"});
    const Json j = bench(more);
    EXPECT_EQ(j["results"].size(), 2u);
    EXPECT_EQ(j["results"][1]["check"], "good");
    return j["results"][1]["flops"].get<double>();
  };
  const double each = 2.0 * (16 + 8) * 4; // of a pair, in all heads
  EXPECT_EQ(flops({}), each * 30 * 50);
  EXPECT_EQ(flops({"--with", "causal"}), each * (30 * 50 - 30 * 30 / 2.0));
  EXPECT_EQ(flops({"--with", "window=3,0"}), each * 30 * 4);                                           // from key 20 on
  EXPECT_EQ(flops({"--with", "window=3,0", "--with", "align=top_left"}), each * (27 * 4 + 1 + 2 + 3)); // from key 0 on
  const Json j = bench({"softmax", "--dtype", "f32", "--with", "x=7x33", "--code-target", "sm_75"});
  EXPECT_EQ(j["results"][1]["shape"], "7x33");
  EXPECT_EQ(j["codeTarget"], "sm_75");
}

TEST_F(BenchCliTest, WrongWords) {
  refused({"attention", "matmul", "--with", "causal"}, "--with causal: its parameters are of one kernel, 2 are named");
  refused({"--with", "causal"}, "0 are named");
  refused({"attention", "--dtype", "f32"}, "--dtype f32: kernel 'attention' exists for bf16, f16");
  refused({"attention", "--dtype", "f16", "--with", "o=1x2x3x4"},
          "--with o=1x2x3x4: the sizes of outputs follow from the inputs");
  refused({"attention", "--dtype", "f16", "--with", "cu_seqlens_q=3"}, "a table cannot be");
  refused({"attention", "--dtype", "f16", "--with", "q=1x2xx4"}, "bad shape '1x2xx4'");
  refused({"attention", "--dtype", "f16", "--with", "q=1x30x4x16"}, "given: q");
  refused({"attention", "--dtype", "f16", "--with", "tiles=4"}, "has no parameter 'tiles'");
  refused({"matmul", "--dtype", "f16", "--with", "a=3x4"}, "kernel 'matmul' needs --b");
  refused({"add", "--dtype", "f32", "--with", "x=3"}, "kernel 'add' needs --y");
  const Outcome newer = kiln({"bench", "add", "--dtype", "f32", "--target", "sm_80", "--code-target", "sm_90a"});
  EXPECT_EQ(newer.status, 3);
  EXPECT_NE(newer.err.find("code for sm_90a does not run on emulator:sm_80"), std::string::npos) << newer.err;
}

/// Tilings that no kernel takes, and stages that a block's shared memory does not hold: named, and nothing is compiled.
TEST_F(BenchCliTest, WrongTilings) {
  const Words products = {"matmul", "--dtype", "f16", "--with", "a=64x64", "--with", "b=64x64"};
  const Words heads = {"attention", "--dtype",     "f16",    "--with",     "q=1x40x2x64",
                       "--with",    "k=1x40x2x64", "--with", "v=1x40x2x64"};
  const auto wrong = [&](Words words, const Words &tiling, const Words &parts) {
    words.insert(words.begin(), "bench");
    words.insert(words.end(), {"--target", "sm_80"});
    for (const std::string &t : tiling)
      words.insert(words.end(), {"--with", t});
    const Outcome o = kiln(words);
    EXPECT_EQ(o.status, 2) << o.out << o.err;
    for (const std::string &part : parts)
      EXPECT_NE(o.err.find(part), std::string::npos) << "expected: " << part << "\nin: " << o.err;
    EXPECT_EQ(o.err.find("cannot be compiled"), std::string::npos) << o.err;
  };
  for (const Words &kernel : {products, heads}) {
    const std::string name = kernel.front() + ": ";
    wrong(kernel, {"block_m=48"}, {name + "block_m = 48: a power of two from 16 to 256"});
    wrong(kernel, {"warps=3"}, {name + "warps = 3: a power of two from 1 to 32"});
    wrong(kernel, {"stages=9"}, {name + "stages = 9: from 1 to 8"});
    wrong(kernel, {"stages=1.5"}, {name + "stages = 1.5", "a whole number"});
  }
  wrong(heads, {"block_k=16"}, {"has no parameter 'block_k'"});
  wrong(heads, {"block_n=256", "stages=4"},
        {"stages = 4", "block_n = 256", "need 262144 bytes of shared memory", "emulator:sm_80 has 166912",
         "give at most 2 stages, or smaller tiles"});
  wrong(products, {"block_m=256", "block_n=256", "block_k=256", "stages=2"},
        {"stages = 2", "block_m = 256, block_n = 256, block_k = 256", "need 524288 bytes of shared memory",
         "has 166912", "give smaller tiles, or 1 stage"});
}

TEST_F(BenchCliTest, TheDemoOfALlamaLayer) {
  const Outcome o = kiln({"demo", "attention", "--dtype", "bf16", "--target", "sm_80", "--json"});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  const Json j = Json::parse(o.out, nullptr, false);
  ASSERT_EQ(j["kernels"].size(), 1u);
  EXPECT_EQ(j["kernels"][0]["shape"], "B1 S256 H32/8 D128 causal");
  EXPECT_EQ(j["kernels"][0]["good"], true);
  const Outcome none = kiln({"demo", "attention", "--dtype", "f32", "--target", "sm_80"});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("kernel 'attention' exists for bf16, f16"), std::string::npos) << none.err;
}

TEST_F(BenchCliTest, AttentionExplained) {
  const Words line = {"explain", "attention", "--target", "sm_80", "--set",     "lse=true", "--set",
                      "dim=64",  "--set",     "dimV=64",  "--set", "blockM=64", "--set",    "warps=4"};
  Words json = line;
  json.emplace_back("--json");
  const Outcome o = kiln(json);
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  const Json j = Json::parse(o.out, nullptr, false);
  const Json &e = j["explain"];
  EXPECT_FALSE(e["conversions"].empty());
  for (const Json &c : e["conversions"])
    EXPECT_TRUE(c["plan"].is_object()) << c.dump();
  EXPECT_FALSE(e["shared"]["buffers"].empty());
  EXPECT_GT(e["shared"]["bytes"], 0);
  for (const Json &access : e["shared_accesses"])
    EXPECT_EQ(access["conflicts"], 0) << access.dump();
  EXPECT_TRUE(j["resources"].contains("registers") || j["resources"].contains("unknown")) << j["resources"].dump();
  // The strides of dense tensors: the last is 1.
  const Outcome text = kiln(line);
  EXPECT_NE(text.out.find("q_stride_3 divisible by 8"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("lse_stride_2 = 1"), std::string::npos) << text.out;
}

// The GPU's sizes, a sample of blocks, each launch with what limits it; nothing was timed or compared.
TEST_F(BenchCliTest, PredictsWhatAGpuWouldTake) {
  const Outcome o = kiln({"bench", "softmax", "--dtype", "f32", "--target", "sm_90a", "--predict", "--json"});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  const Json j = Json::parse(o.out, nullptr, false);
  ASSERT_EQ(j["results"].size(), 1u) << j.dump();
  const Json &row = j["results"][0];
  EXPECT_EQ(j["hardware"], "NVIDIA H200");
  EXPECT_EQ(row["shape"], "8192x8192");
  ASSERT_EQ(row["launches"].size(), 1u);
  EXPECT_EQ(row["launches"][0]["limiter"], "DRAM bytes");
  EXPECT_EQ(row["predictedMs"], row["launches"][0]["predictedMs"]);
  // 512 MiB once there and back, at what DRAM gives; the work in between overlaps in part (special functions and issue
  // take a seventh of that each).
  EXPECT_NEAR(row["launches"][0]["aloneMs"]["DRAM bytes"].get<double>(), 2.0 * 4 * 8192 * 8192 / 4260e6, 1e-4);
  const Json &alone = row["launches"][0]["aloneMs"];
  const double bare = alone["DRAM bytes"].get<double>() + alone["launch"].get<double>();
  EXPECT_GT(row["predictedMs"].get<double>(), 1.02 * bare);
  EXPECT_LT(row["predictedMs"].get<double>(), 1.2 * bare);
  EXPECT_FALSE(row.contains("medianMs"));
}

TEST_F(BenchCliTest, PredictsCallsWithoutLaunches) {
  const Outcome o =
      kiln({"bench", "softmax", "--dtype", "f32", "--target", "sm_90a", "--predict", "--json", "--with", "x=0x8"});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  const Json row = Json::parse(o.out, nullptr, false)["results"][0];
  EXPECT_EQ(row["predictedMs"], 0);
  EXPECT_EQ(row["gigabytesPerSecond"], 0);
  EXPECT_TRUE(row["launches"].empty());
}

TEST_F(BenchCliTest, PredictionsAreForTargetsOnly) {
  const Outcome gpu = kiln({"bench", "softmax", "--device", "cuda:0", "--predict"}, fakeDriver());
  EXPECT_EQ(gpu.status, 2) << gpu.out;
  EXPECT_NE(gpu.err.find("--predict: cuda:0 can be measured"), std::string::npos) << gpu.err;
  const Outcome seeded = kiln({"bench", "softmax", "--target", "sm_90a", "--predict", "--schedule", "random"});
  EXPECT_EQ(seeded.status, 2) << seeded.out;
  EXPECT_NE(seeded.err.find("blocks run in the schedule random"), std::string::npos) << seeded.err;
}

TEST_F(BenchCliTest, PredictionsKnowTheirGpu) {
  const Outcome o = kiln({"bench", "softmax", "--target", "sm_75", "--predict"});
  EXPECT_EQ(o.status, 2) << o.out;
  EXPECT_NE(o.err.find("target sm_75: the performance model has no numbers"), std::string::npos) << o.err;
}

/// What a GPU machine would have in its cache is made where there is none.
TEST_F(BenchCliTest, OfflineDevicesCompileAndRunNothing) {
  const std::vector<std::string> call = {"bench",     "matmul", "--dtype",   "bf16",     "--with",
                                         "a=256x256", "--with", "b=256x256", "--device", "offline:sm_90a"};
  std::vector<std::string> words = call;
  words.insert(words.end(), {"--resources", "--json"});
  const Outcome o = kiln(words);
  ASSERT_EQ(o.status, 0) << o.err;
  const Json kernel = Json::parse(o.out)["results"][0]["kernels"][0];
  EXPECT_GT(kernel["threads"], 0);
  EXPECT_GT(kernel["sharedBytes"], 0);
  const Outcome list = kiln({"cache", "list", "--json"});
  const Json entry = Json::parse(list.out)["entries"][0];
  EXPECT_EQ(entry["key"]["assembly arch"], "sm_90a");
  EXPECT_EQ(entry["key"]["line info"], "off");
  if (entry["kind"] == "cubin") // an assembler was found
    EXPECT_GT(kernel["registers"], 0) << kernel.dump();
  const Outcome run = kiln(call);
  EXPECT_EQ(run.status, 3);
  EXPECT_NE(run.err.find("offline:sm_90a compiles and has no memory"), std::string::npos) << run.err;
  const Outcome tune = kiln({"tune", "matmul", "--dtype", "bf16", "--device", "offline:sm_90a"});
  EXPECT_EQ(tune.status, 3);
  EXPECT_NE(tune.err.find("offline:sm_90a compiles and measures nothing"), std::string::npos) << tune.err;
}

TEST_F(BenchCliTest, FirstCallsAreMadeByNewProcesses) {
  const Outcome o = kiln({"bench", "layer_norm", "--dtype", "f32", "--target", "sm_80", "--first-call", "1", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const Json results = Json::parse(o.out)["results"];
  ASSERT_FALSE(results.empty());
  for (const Json &row : results) {
    EXPECT_EQ(row["kernel"], "layer_norm");
    EXPECT_GT(row["coldMs"], 0) << row.dump();
    EXPECT_GT(row["diskMs"], 0);
    EXPECT_EQ(row["coldRuns"].size(), 1u);
    for (const Json &kernel : row["kernels"]) {
      EXPECT_EQ(kernel["compiled"], true);
      EXPECT_GT(kernel["stages"]["compile"], 0);
    }
  }
  for (const char *wrong : {"0", "101"})
    EXPECT_NE(kiln({"bench", "add", "--target", "sm_80", "--first-call", wrong}).err.find("1 to 100 processes"),
              std::string::npos);
  EXPECT_EQ(kiln({"bench", "add", "--target", "sm_90a", "--first-call", "1", "--predict"}).status, 2);
}

} // namespace
} // namespace kiln::test
