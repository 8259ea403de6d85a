// `kiln explain KERNEL|FILE`: what the compiler made of a kernel.
#include "runtime/io/File.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class ExplainKernelCliTest : public CachedCliTest {
protected:
  static Outcome explain(Words words) {
    words.insert(words.begin(), "explain");
    return kiln(words);
  }
  static Json json(Words words) {
    words.emplace_back("--json");
    const Outcome o = explain(words);
    EXPECT_EQ(o.status, 0) << o.out << o.err;
    return Json::parse(o.out, nullptr, false);
  }
  static bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }
  static std::string scale() { return KILN_SOURCE_DIR "/docs/examples/scale.mlir"; }
};

TEST_F(ExplainKernelCliTest, ATextKernelByItsLines) {
  const Json j = json({scale(), "--target", "sm_80"});
  EXPECT_EQ(j["kernel"], "scale");
  EXPECT_EQ(j["target"], "sm_80");
  const Json &memory = j["explain"]["memory"];
  ASSERT_EQ(memory.size(), 2u);
  // 512 elements over 128 threads, aligned pointers and a mask of which nothing is known: the mask decides.
  EXPECT_EQ(memory[0]["line"], 17);
  EXPECT_EQ(memory[0]["op"], "tile.load");
  EXPECT_EQ(memory[0]["aligned_bytes"], 16);
  EXPECT_EQ(memory[0]["elements"].get<unsigned>() * memory[0]["accesses"].get<unsigned>(), 4u);
  EXPECT_EQ(memory[1]["line"], 22);
  EXPECT_TRUE(j["explain"]["conversions"].empty());
  EXPECT_TRUE(j["explain"]["barriers"].empty());
  EXPECT_EQ(j["explain"]["shared"]["bytes"], 0);
  bool multiply = false;
  for (const Json &op : j["explain"]["operations"])
    multiply |= op["op"] == "arith.mulf" && op["line"] == 19 && op["type"] == "512xf32" && op["registers"] == 4;
  EXPECT_TRUE(multiply) << j["explain"]["operations"].dump();
}

TEST_F(ExplainKernelCliTest, CallsArePredictedAsByBench) {
  const Words call = {"softmax", "--dtype", "bf16", "--target", "sm_90a", "--predict", "--with", "x=2048x4096"};
  const Json j = json(call);
  ASSERT_EQ(j["predicted"].size(), 1u);
  EXPECT_EQ(j["predictedFor"], "NVIDIA H200");
  Words words = call;
  words.insert(words.begin(), "bench");
  words.emplace_back("--json");
  const Outcome bench = kiln(words);
  ASSERT_EQ(bench.status, 0) << bench.err;
  EXPECT_EQ(j["predicted"], Json::parse(bench.out)["results"]);
  EXPECT_GT(j["predicted"][0]["predictedMs"].get<double>(), 0);
  const Outcome text = explain(call);
  EXPECT_TRUE(has(text.out, "predicted for an NVIDIA H200, not measured")) << text.out;
  EXPECT_TRUE(has(text.out, "limited by DRAM bytes")) << text.out;
}

TEST_F(ExplainKernelCliTest, WhatCannotBePredictedIsRefused) {
  for (const auto &[words, why] :
       {std::pair(Words{"softmax", "--with", "x=8x8"}, "add --predict"),
        std::pair(Words{scale(), "--predict"}, "is no kernel of the library"),
        std::pair(Words{"softmax", "--target", "sm_80", "--predict"}, "no numbers of such a GPU"),
        std::pair(Words{"softmax", "--predict", "--with", "y=8x8"}, "y")}) {
    const Outcome o = explain(words);
    EXPECT_EQ(o.status, 2) << o.out;
    EXPECT_TRUE(has(o.err, why)) << o.err;
  }
}

/// A warpgroup of its own copies, and leaves its registers to the others.
TEST_F(ExplainKernelCliTest, RolesAndTheirRegisters) {
  const Words kernel = {"attention", "--target", "sm_90a",     "--set", "dim=128", "--set",
                        "dimV=128",  "--set",    "blockN=128", "--set", "warps=8"};
  const Json roles = json(kernel)["explain"]["roles"];
  ASSERT_EQ(roles.size(), 2u) << roles.dump();
  EXPECT_EQ(roles[0],
            Json::parse(R"j({"name": "copies", "warps": 4, "registers": 24, "work": ["bulk copies (TMA)"]})j"));
  EXPECT_EQ(roles[1]["name"], "computes");
  EXPECT_EQ(roles[1]["warps"], 8);
  EXPECT_EQ(roles[1]["registers"], 240);
  EXPECT_TRUE(has(explain(kernel).out,
                  "roles: copies, 4 warps of 24 registers a thread: bulk copies (TMA); computes, 8 "
                  "warps of 240 registers a thread: "));
}

TEST_F(ExplainKernelCliTest, FactsChangeTheWidthOfAccesses) {
  // n divisible by 16 makes the mask constant over vectors.
  const Words line = {scale(),       "--target", "sm_80",       "--divisible", "x=16",
                      "--divisible", "out=16",   "--divisible", "n=16"};
  EXPECT_EQ(json(line)["explain"]["memory"][0]["bytes"], 16);
  EXPECT_EQ(json({scale(), "--target", "sm_80", "--divisible", "n=16"})["explain"]["memory"][0]["bytes"], 4);
  const Outcome text = explain(line);
  EXPECT_TRUE(has(text.out, "compiled for: x divisible by 16, out divisible by 16, n divisible by 16\n")) << text.out;
  EXPECT_TRUE(has(text.out, "4 elements (16 bytes) an access along dimension 0, 1 access a thread")) << text.out;
}

TEST_F(ExplainKernelCliTest, ATransposeHasOneConversionWithItsPlan) {
  const Words line = {"transpose", "--target", "sm_80"};
  const Json j = json(line);
  const Json &e = j["explain"];
  ASSERT_EQ(e["conversions"].size(), 1u);
  const Json &plan = e["conversions"][0]["plan"];
  ASSERT_TRUE(plan.is_object());
  EXPECT_EQ(plan["core"]["strategy"], "shared") << plan.dump();
  ASSERT_EQ(e["shared"]["buffers"].size(), 1u);
  EXPECT_EQ(e["shared"]["buffers"][0]["offset"], 0);
  EXPECT_EQ(e["shared"]["buffers"][0]["bytes"], e["shared"]["bytes"]);
  EXPECT_EQ(e["shared"]["bytes"], 16384);
  ASSERT_EQ(e["shared_accesses"].size(), 2u);
  std::uint64_t conflicts = 0;
  for (const Json &a : e["shared_accesses"])
    conflicts += a["conflicts"].get<std::uint64_t>();
  // Eight warps; the plan counts the block, an access a warp.
  EXPECT_EQ(8 * conflicts, plan["core"]["conflicts"].get<std::uint64_t>());
  ASSERT_EQ(e["barriers"].size(), 1u);
  EXPECT_EQ(e["barriers"][0]["after"]["op"], "tile_gpu.exchange_store");
  EXPECT_EQ(e["barriers"][0]["before"]["op"], "tile_gpu.exchange_load");
  const Outcome text = explain(line);
  EXPECT_TRUE(has(text.out, "layout conversions left: 1\n  Transpose.cpp:")) << text.out;
  EXPECT_TRUE(has(text.out, "shared memory: 16384 of 166912 bytes\n")) << text.out;
  EXPECT_TRUE(has(text.out, "barriers: 1\n")) << text.out;
  EXPECT_FALSE(has(text.out, "not warp_shuffle: ")) << text.out;
  EXPECT_TRUE(has(explain({"transpose", "--target", "sm_80", "--rejected"}).out, "not warp_shuffle: "));
}

TEST_F(ExplainKernelCliTest, AttentionHasARoleAndTwoPipelines) {
  const Words line = {"attention", "--target", "sm_80", "--set", "dim=64", "--set", "dimV=64", "--set", "warps=4"};
  const Json e = json(line)["explain"];
  ASSERT_EQ(e["roles"].size(), 1u);
  EXPECT_EQ(e["roles"][0]["warps"], 4);
  ASSERT_EQ(e["roles"][0]["work"].size(), 2u);
  ASSERT_EQ(e["pipelines"].size(), 2u);
  for (const auto &[i, name] : {std::pair(0u, "k"), std::pair(1u, "v")}) {
    EXPECT_EQ(e["pipelines"][i]["name"], name);
    EXPECT_EQ(e["pipelines"][i]["slots"], 2);
    EXPECT_EQ(e["pipelines"][i]["bytes"], 64 * 64 * 2);
  }
  const Outcome text = explain(line);
  EXPECT_TRUE(has(text.out, "roles: one, of 4 warps: asynchronous copies to shared memory (cp.async), "
                            "matrix products (mma.sync), everything else\n"))
      << text.out;
  EXPECT_TRUE(has(text.out, "k  2 slots of 8192 bytes, copied 1 round ahead\n")) << text.out;
  EXPECT_TRUE(has(explain({"add", "--target", "sm_80"}).out, "roles: one, of 4 warps: everything\n"));
}

// The accesses that banks matter to: not those of one thread to a mbarrier, nor the copy engine's.
TEST_F(ExplainKernelCliTest, AttentionByWarpgroupsListsWhatHasBanks) {
  const Json e = json({"attention", "--target", "sm_90a", "--set", "dim=64", "--set", "dimV=64"})["explain"];
  std::vector<std::string> ops;
  for (const Json &a : e["shared_accesses"])
    ops.push_back(a["op"]);
  EXPECT_EQ(ops, (std::vector<std::string>{"tile_gpu.warpgroup_dot", "tile_gpu.warpgroup_dot",
                                           "tile_gpu.exchange_store", "tile_gpu.exchange_load"}));
}

TEST_F(ExplainKernelCliTest, SoftmaxHasReductionsAndNoConversionOfItsTiles) {
  const Json j = json({"softmax", "--target", "sm_90a", "--dtype", "bf16", "--set", "looping=true"});
  const Json &e = j["explain"];
  EXPECT_EQ(j["configuration"].get<std::string>().find("looping = true") != std::string::npos, true);
  const auto looping = std::find_if(j["settings"].begin(), j["settings"].end(),
                                    [](const Json &setting) { return setting["name"] == "looping"; });
  ASSERT_NE(looping, j["settings"].end()) << j["settings"];
  EXPECT_EQ((*looping)["default"], "false");
  EXPECT_EQ((*looping)["values"], "true or false");
  EXPECT_FALSE(looping->contains("tuned"));
  EXPECT_EQ(j["settings"][0]["name"], "block");
  EXPECT_EQ(j["settings"][0]["tuned"][1], "2");
  EXPECT_FALSE(e["reductions"].empty());
  for (const Json &r : e["reductions"])
    EXPECT_FALSE(r["text"].get<std::string>().empty());
  // What is left are the partial results of the warps.
  EXPECT_EQ(e["conversions"].size(), 2u);
  for (const Json &c : e["conversions"]) {
    EXPECT_EQ(c["type"], "1x4xf32");
    EXPECT_EQ(c["of"], "partial results");
  }
  const Outcome text = explain({"softmax", "--target", "sm_90a", "--dtype", "bf16", "--set", "looping=true"});
  EXPECT_TRUE(has(text.out, "layout conversions left: 0\n\nexchanges of partial results between warps: 2\n"))
      << text.out;
  // Two small buffers next to each other.
  ASSERT_EQ(e["shared"]["buffers"].size(), 2u);
  EXPECT_NE(e["shared"]["buffers"][0]["offset"], e["shared"]["buffers"][1]["offset"]);
}

/// Buffers that the author placed, a gather, and a buffer that is alive through a loop.
TEST_F(ExplainKernelCliTest, HandWrittenSharedMemory) {
  const std::string text =
      write("shared.mlir",
            R"(#a = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#b = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#sh = #tile_gpu.swizzled<vec=4, perPhase=1, maxPhase=8>
func.func @turn(%x: !tile.ptr<f32> {tile.name = "x"}, %n: i32 {tile.name = "n"}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.range 0 to 32 : tensor<32xi32, #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>>>
  %i = tile.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>>> to tensor<32x1xi32, #a>
  %tile = tile.broadcast %i : tensor<32x1xi32, #a> to tensor<32x32xi32, #a>
  %buffer = tile_gpu.local_alloc : !tile_gpu.buffer<32x32xi32, #sh>
  scf.for %k = %c0 to %n step %c1 : i32 {
    tile_gpu.local_store %tile, %buffer : tensor<32x32xi32, #a>, !tile_gpu.buffer<32x32xi32, #sh>
    %turned = tile_gpu.local_load %buffer : !tile_gpu.buffer<32x32xi32, #sh> to tensor<32x32xi32, #b>
    tile.print "turned" %turned : tensor<32x32xi32, #b>
  }
  return
}
)");
  const Json j = json({text, "--target", "sm_80"});
  const Json &e = j["explain"];
  ASSERT_EQ(e["shared"]["buffers"].size(), 1u);
  const Json &buffer = e["shared"]["buffers"][0];
  EXPECT_EQ(buffer["bytes"], 4096);
  EXPECT_EQ(buffer["line"], 10);
  EXPECT_EQ(buffer["to"]["op"], "scf.for");
  ASSERT_EQ(e["shared_accesses"].size(), 2u);
  EXPECT_EQ(e["shared_accesses"][0]["op"], "tile_gpu.local_store");
  EXPECT_EQ(e["shared_accesses"][0]["line"], 12);
  EXPECT_EQ(e["shared_accesses"][1]["form"], "ld");
  EXPECT_EQ(e["barriers"].size(), 2u); // store to load, and the load to the next trip's store
}

TEST_F(ExplainKernelCliTest, ResourcesOrWhyTheyAreUnknown) {
  setenv("KILN_NVJITLINK", "none", 1);
  setenv("KILN_PTXAS", "none", 1);
  const Outcome o = explain({"add", "--target", "sm_80"});
  unsetenv("KILN_NVJITLINK");
  unsetenv("KILN_PTXAS");
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(o.out, "registers and spills: unknown; no assembler was found: ")) << o.out;
  const Json found = json({"add", "--target", "sm_80"})["resources"];
  if (found.contains("unknown"))
    GTEST_SKIP() << "resources: " << found["unknown"];
  EXPECT_GT(found["registers"], 0);
  EXPECT_EQ(found["spillStoreBytes"], 0);
}

TEST_F(ExplainKernelCliTest, ALayoutIsDrawn) {
  const Outcome o = explain({"transpose", "--target", "sm_80", "--svg", file("b.svg"), "--draw", "B"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(has(*readTextFile(file("b.svg")), "</svg>"));
  const Outcome none = explain({"transpose", "--target", "sm_80", "--svg", file("z.svg"), "--draw", "Z"});
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(has(none.err, "--draw Z: the kernel has no layout of that letter (its layouts are A, B")) << none.err;
  EXPECT_FALSE(std::filesystem::exists(file("z.svg")));
}

TEST_F(ExplainKernelCliTest, TheSameEveryTimeAndOnEveryTarget) {
  EXPECT_EQ(json({"cumsum", "--target", "sm_80"})["explain"], json({"cumsum", "--target", "sm_80"})["explain"]);
  for (const char *target : {"sm_75", "sm_89", "sm_120a"})
    EXPECT_EQ(json({"reduce_sum", "--target", target})["target"], target);
}

TEST_F(ExplainKernelCliTest, WrongUsesAreNamed) {
  const auto refused = [](const Words &words, const std::string &part, int status = 2) {
    const Outcome o = explain(words);
    EXPECT_EQ(o.status, status) << o.out << o.err;
    EXPECT_TRUE(has(o.err, part)) << part << "\n" << o.err;
  };
  refused({"sofmax"}, "did you mean softmax");
  refused({"add", "--target", "sm_81"}, "sm_81");
  refused({"add", "--dtype", "i4"}, "f32, f16 and bf16");
  refused({"add", "--set", "blok=1"}, "the settings are block, warps, strided");
  refused({"add", "--divisible", "z=16"}, "the arguments are x, y, out, n");
  refused({"add", "--layout", "blocked<sizePerThread=[1]> : 32"}, "exclude each other");
  refused({"add", "--bits", "16"}, "--layout");
  refused({file("none.mlir")}, "none.mlir");
  refused({scale(), "--set", "block=1"}, "a text file has no configuration");
  refused({scale(), "--entry", "skale"}, "the program has no kernel 'skale'");
  refused({write("bad.mlir", "func.func @k(\n")}, "bad.mlir:1:");
}

} // namespace
} // namespace kiln::test
