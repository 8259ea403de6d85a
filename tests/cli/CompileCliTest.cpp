// `kiln compile`, `kiln demo`, `kiln run KERNEL`: the library's kernels from the command line.
#include "runtime/io/Npy.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <cstring>

namespace kiln::test {
namespace {

class CompileCliTest : public CachedCliTest {
protected:
  std::string scale() { return std::string(KILN_SOURCE_DIR) + "/docs/examples/scale.mlir"; }
};

TEST_F(CompileCliTest, EveryStageOfALibraryKernel) {
  for (const auto &[emit, word] : {std::pair("tile", "tile.load"), std::pair("tile_gpu", "#tile_gpu.blocked"),
                                   std::pair("llvm", "target triple"), std::pair("ptx", ".visible .entry add")}) {
    const Outcome o = kiln({"compile", "add", "--target", "sm_80", "--emit", emit, "--divisible", "x=16"});
    EXPECT_EQ(o.status, 0) << o.err;
    EXPECT_NE(o.out.find(word), std::string::npos) << emit << "\n" << o.out;
  }
}

TEST_F(CompileCliTest, TheTypeIsTheFirstThatAKernelHas) {
  for (const auto &[kernel, type] : {std::pair("add", "xf32"), {"matmul", "xf32"}, {"attention", "xbf16"}}) {
    const Outcome o = kiln({"compile", kernel, "--emit", "tile", "--target", "sm_80"});
    EXPECT_EQ(o.status, 0) << o.err;
    EXPECT_NE(o.out.find(type), std::string::npos) << kernel;
  }
  const Outcome o = kiln({"compile", "attention", "--dtype", "f32"});
  EXPECT_EQ(o.status, 2);
  EXPECT_NE(o.err.find("kernel 'attention' has no variant for elements of type f32 (use one of f16, bf16, f8e4m3)"),
            std::string::npos)
      << o.err;
}

TEST_F(CompileCliTest, TheSameTextEveryTime) {
  const std::vector<std::string> line = {"compile", "softmax", "--target", "sm_90a", "--dtype", "bf16"};
  const Outcome first = kiln(line), second = kiln(line);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
  EXPECT_EQ(first.out.find(".loc"), std::string::npos);
}

TEST_F(CompileCliTest, AFileOfTextInAProcessOfItsOwn) {
  const Outcome o = kiln({"compile", scale(), "--target", "sm_75", "--line-info", "-o", file("s.ptx"), "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto j = nlohmann::json::parse(o.out);
  EXPECT_EQ(j["metadata"]["kernel"], "scale");
  EXPECT_EQ(j["metadata"]["assembler_level"], 3);
  EXPECT_EQ(j["metadata"]["arguments"][2]["type"], "f32");
  EXPECT_EQ(j["metadata"]["arguments"][2]["name"], "factor");
  const Outcome named = kiln({"compile", scale(), "--divisible", "x=16", "-o", file("n.ptx")});
  EXPECT_EQ(named.status, 0) << named.err;
  const Outcome unknown = kiln({"compile", scale(), "--divisible", "z=16"});
  EXPECT_NE(unknown.err.find("the arguments are x, out, factor, n"), std::string::npos) << unknown.err;
  const Outcome bad = kiln({"compile", write("bad.mlir", "func.func @k() attributes {tile.kernel} {\n  return 1\n}\n"),
                            "--target", "sm_80"});
  EXPECT_EQ(bad.status, 2) << bad.err;
  EXPECT_NE(bad.err.find("bad.mlir:2:"), std::string::npos) << bad.err;
}

TEST_F(CompileCliTest, AKernelsAssemblerLevelIsInTheMetadata) {
  const Outcome o = kiln({"compile", "attention", "--target", "sm_80", "--dtype", "bf16", "--set", "dim=128", "--set",
                          "dimV=128", "--set", "warps=4", "--set", "blockN=64", "-o", file("a.ptx"), "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(nlohmann::json::parse(o.out)["metadata"]["assembler_level"], 1);
}

/// nvJitLink's, of a kernel that has no register left: it is shown and said; what is to be run is PTX.
TEST_F(CompileCliTest, CodeThatMayBeWrongIsNamed) {
  std::string text = *readTextFile(KILN_SOURCE_DIR "/docs/examples/inverse.mlir");
  const std::string kernel = "tile.kernel, ";
  ASSERT_NE(text.find(kernel), std::string::npos);
  const std::string plain = write("plain.mlir", text);
  const std::string full =
      write("full.mlir", text.insert(text.find(kernel) + kernel.size(), "tile.max_registers = 24 : i32, "));
  const auto compiled = [&](const std::string &program, const std::string &emit) {
    return kiln(
        {"compile", program, "--target", "sm_80", "--ptxas", "none", "--emit", emit, "-o", file("out"), "--json"});
  };
  const Outcome trusted = compiled(plain, "cubin");
  if (trusted.err.find("no assembler for GPU code") != std::string::npos)
    GTEST_SKIP() << trusted.err;
  ASSERT_EQ(trusted.status, 0) << trusted.err;
  EXPECT_EQ(nlohmann::json::parse(trusted.out)["assembler"]["trusted"], true);
  EXPECT_EQ(trusted.err.find("may be wrong"), std::string::npos) << trusted.err;
  const Outcome cubin = compiled(full, "cubin");
  ASSERT_EQ(cubin.status, 0) << cubin.err;
  EXPECT_EQ(nlohmann::json::parse(cubin.out)["assembler"]["trusted"], false);
  EXPECT_NE(cubin.err.find("this code may be wrong"), std::string::npos) << cubin.err;
  for (const auto &[program, isAssembled] : {std::pair(plain, true), std::pair(full, false)}) {
    const Outcome c = compiled(program, "c");
    ASSERT_EQ(c.status, 0) << c.err;
    EXPECT_EQ(nlohmann::json::parse(c.out)["targets"][0]["assembled"], isAssembled) << c.out;
    EXPECT_EQ(c.err.find("the driver will assemble the code for sm_80: nvJitLink") == std::string::npos, isAssembled)
        << c.err;
  }
}

/// Guards are the facts asked for and those of the text, both at once; how arguments are specialised is passed on; what
/// is not known of an argument is said.
TEST_F(CompileCliTest, WhatAProgramSaysOfItsArguments) {
  const std::string program = write(
      "row.mlir", "func.func @row(%x: !tile.ptr<bf16> {tile.name = \"x\", tile.divisibility = 4 : i32},\n"
                  "    %s: i64 {tile.name = \"s\", tile.specialize = \"stride\", tile.element = bf16},\n"
                  "    %n: i64 {tile.name = \"n\", tile.divisibility = 24 : i32}, %k: i32 {tile.name = \"k\", "
                  "tile.specialize = \"value\"})\n"
                  "    attributes {tile.kernel} {\n"
                  "  %r = tile.range 0 to 1024 : tensor<1024xi32>\n"
                  "  %p = tile.program_id x\n  %q = arith.extsi %p : i32 to i64\n  %at = arith.muli %q, %s : i64\n"
                  "  %row = tile.addptr %x, %at : !tile.ptr<bf16>, i64\n"
                  "  %rows = tile.splat %row : !tile.ptr<bf16> to tensor<1024x!tile.ptr<bf16>>\n"
                  "  %to = tile.addptr %rows, %r : tensor<1024x!tile.ptr<bf16>>, tensor<1024xi32>\n"
                  "  %v = arith.constant dense<1.0> : tensor<1024xbf16>\n"
                  "  tile.store %to, %v : tensor<1024x!tile.ptr<bf16>>\n  return\n}\n");
  const Outcome known =
      kiln({"compile", program, "--divisible", "x=16", "--divisible", "s=8", "-o", file("r.ptx"), "--json"});
  ASSERT_EQ(known.status, 0) << known.err;
  const auto m = nlohmann::json::parse(known.out)["metadata"];
  EXPECT_EQ(m["guards"].dump(), R"([{"argument":0,"divisibility":16},{"argument":1,"divisibility":8},)"
                                R"({"argument":2,"divisibility":8}])");
  EXPECT_EQ(m["arguments"][1]["specialize"], "stride");
  EXPECT_EQ(m["arguments"][1]["element_bytes"], 2);
  EXPECT_EQ(m["arguments"][3]["specialize"], "value");
  EXPECT_FALSE(m["arguments"][0].contains("specialize"));
  EXPECT_EQ(known.err.find("remark"), std::string::npos) << known.err;
  const Outcome unknown = kiln({"compile", program, "--divisible", "x=16", "-o", file("r.ptx")});
  EXPECT_NE(unknown.err.find("row.mlir:13:3: remark: this access moves 2 bytes at a time, where it could move 16: too "
                             "little is known of 's'"),
            std::string::npos)
      << unknown.err;
}

TEST_F(CompileCliTest, WrongInputIsNamed) {
  struct Case {
    std::vector<std::string> line;
    const char *message;
  };
  const Case cases[] = {
      {{"compile", "sofmax"}, "did you mean softmax"},
      {{"compile", "add", "--target", "sm_81"}, "sm_81"},
      {{"compile", "add", "--dtype", "i4"}, "f32, f16 and bf16"},
      {{"compile", "add", "--set", "blok=1"}, "the settings are block, warps, strided"},
      {{"compile", "add", "--set", "block"}, "expected NAME=VALUE"},
      {{"compile", "add", "--divisible", "z=16"}, "the arguments are x, y, out, n"},
      {{"compile", "/nonexistent/k.mlir"}, "/nonexistent/k.mlir"},
      {{"run", "softmax", "--device", "emulator"}, "needs --x FILE.npy"},
      {{"run", "softmax", "--y", "a.npy"}, "its parameters are --x, --out"},
      {{"run", "softmax", "--grid", "4"}, "not --arg, --grid or --block"},
  };
  for (const Case &c : cases) {
    const Outcome o = kiln(c.line);
    EXPECT_NE(o.status, 0) << c.message;
    EXPECT_NE(o.err.find(c.message), std::string::npos) << c.message << "\n" << o.err;
    EXPECT_EQ(o.out, "");
  }
  // With --json standard output is one object, so the result needs a file.
  const Outcome json = kiln({"compile", "add", "--json"});
  EXPECT_EQ(json.status, 2);
  EXPECT_EQ(nlohmann::json::parse(json.out)["error"]["remedy"], "name a file with -o");
}

TEST_F(CompileCliTest, ARunTakesTheKernelFromTheCacheTheSecondTime) {
  const std::string x = floats("x.npy", 64);
  const std::vector<std::string> line = {
      "run", "add", "--x", x, "--y", x, "--output", file("z.npy"), "--device", "emulator:sm_80", "--json"};
  const Outcome first = kiln(line), second = kiln(line);
  ASSERT_EQ(first.status, 0) << first.err;
  ASSERT_EQ(second.status, 0) << second.err;
  const auto a = nlohmann::json::parse(first.out), b = nlohmann::json::parse(second.out);
  EXPECT_EQ(a["compiles"], 1);
  // The compile is the first call's, not the run's.
  EXPECT_LT(a["times"]["medianMs"].get<double>(), a["firstCalls"][0]["milliseconds"].get<double>());
  EXPECT_GE(a["times"]["firstCallMs"].get<double>(), a["firstCalls"][0]["milliseconds"].get<double>());
  EXPECT_EQ(a["times"]["runs"], 1);
  EXPECT_EQ(b["compiles"], 0);
  EXPECT_EQ(b["diskHits"], 1);
  auto z = readNpy(file("z.npy"));
  ASSERT_TRUE(z.ok());
  float last = 0;
  std::memcpy(&last, &z->data[63 * 4], 4);
  EXPECT_EQ(last, 126.0f);
}

TEST_F(CompileCliTest, TheDemoChecksWhatItShows) {
  const Outcome o = kiln({"demo", "add", "softmax", "--dtype", "f32", "--device", "emulator:sm_75", "--json"});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  const auto j = nlohmann::json::parse(o.out);
  EXPECT_EQ(j["kernels"].size(), 2u);
  for (const auto &k : j["kernels"])
    EXPECT_EQ(k["good"], true);
}

} // namespace
} // namespace kiln::test
