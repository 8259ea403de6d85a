// Slices and statistics of tiles, tiles as files, and where a NaN is born: from C++ to what a user sees.
#include "kiln/Language.h"
#include "kiln/OwnedTensor.h"
#include "runtime/io/Npy.h"
#include "tests/pipeline/JitHarness.h"
#include "tests/support/TestTier.h"

#include "compiler/language/Language.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kiln::language;

constexpr int rows = 32, columns = 16;

struct Outcome {
  std::string printed;
  std::vector<Finding> findings;
};

/// Runs k(x) on `blocks` programs.
Outcome run(const language::Kernel &k, const std::vector<float> &x, const std::string &target,
            EmulatorOptions emulator = {}, unsigned blocks = 1) {
  Outcome out;
  auto device = openDevice("emulator:" + target, emulator);
  EXPECT_TRUE(device.ok());
  JitOptions options;
  options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
  options.diskCache = false;
  auto jit = Jit::create(**device, std::move(options));
  const auto source = sourceOf(k);
  EXPECT_TRUE(source.ok()) << source.status().toString();
  auto kernel = (*jit)->kernel(*source);
  EXPECT_TRUE(kernel.ok()) << kernel.status().toString();
  const auto input = (*device)->tensor({static_cast<std::int64_t>(x.size())}, x);
  testing::internal::CaptureStdout();
  const Status s = (*kernel)->launch({blocks}, nullptr, named<"x">(*input));
  std::fflush(stdout);
  out.printed = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(s.ok()) << s.toString();
  out.findings = (*device)->takeFindings();
  return out;
}

std::vector<float> counting() {
  std::vector<float> x(rows * columns);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i) / 2;
  return x;
}

Tile<f32> loadAll(const language::Pointer<f32> &x) {
  return load(x + (expandDims(range(0, rows) * columns, 1) + expandDims(range(0, columns), 0)));
}

TEST(Debug, ASliceIsPrintedWithItsCoordinatesInOrder) {
  const language::Kernel k = kernel(
      "slice", {}, [&](Arg<language::Pointer<f32>, "x"> x) { devicePrintSlice("v ", loadAll(x), {{30, 32}, {0, 3}}); });
  for (const char *target : {"sm_80", "sm_90a"}) {
    std::string wanted;
    for (int i = 30; i < 32; ++i)
      for (int j = 0; j < 3; ++j)
        wanted += "program 0,0,0 [" + std::to_string(i) + "," + std::to_string(j) + "] v " +
                  std::to_string((i * columns + j) / 2) + (j % 2 ? ".5\n" : "\n");
    EXPECT_EQ(run(k, counting(), target).printed, wanted);
  }
}

TEST(Debug, StatisticsOfATile) {
  const auto statistics = []<Element T>() {
    return kernel("statistics", {},
                  [&](Arg<language::Pointer<f32>, "x"> x) { devicePrintStats("v", cast<T>(loadAll(x))); });
  };
  std::vector<float> x = counting();
  for (float &v : x)
    v = v / 8 - 4;
  x[3] = NAN;
  x[77] = -INFINITY;
  x[78] = NAN;
  x[500] = INFINITY;
  x[511] = -INFINITY;
  const std::string lead = "program 0,0,0 v ";
  const std::string wanted = lead + "min -inf\n" + lead + "max inf\n" + lead + "NaN 2\n" + lead + "infinite 3\n";
  EXPECT_EQ(run(statistics.operator()<f32>(), x, "sm_90a").printed, wanted);
  EXPECT_EQ(run(statistics.operator()<bf16>(), x, "sm_80").printed, wanted);
  EXPECT_EQ(run(statistics.operator()<f64>(), x, "sm_80").printed, wanted);
  for (const std::size_t i : {77u, 500u, 511u})
    x[i] = -2.5f;
  x[100] = 31.5f;
  EXPECT_EQ(run(statistics.operator()<f16>(), x, "sm_80").printed,
            lead + "min -4\n" + lead + "max 31.5\n" + lead + "NaN 2\n" + lead + "infinite 0\n");
  x[3] = x[78] = 0;
  EXPECT_EQ(run(statistics.operator()<i32>(), x, "sm_80").printed, lead + "min -4\n" + lead + "max 31\n");
  EXPECT_EQ(run(statistics.operator()<f8e4m3>(), x, "sm_90a").printed,
            lead + "min -4\n" + lead + "max 32\n" + lead + "NaN 0\n" + lead + "infinite 0\n");
}

TEST(Debug, TilesBecomeFilesOfTheirTypeAndShape) {
  const language::Kernel k = kernel("dump", {}, [&](Arg<language::Pointer<f32>, "x"> x) {
    const auto v = loadAll(x) + cast<f32>(programId());
    dumpTile("f32", v);
    dumpTile("bf16", cast<bf16>(v));
    dumpTile("f16", cast<f16>(v));
    dumpTile("f64", cast<f64>(v) / 3);
    dumpTile("e4m3", cast<f8e4m3>(v));
    dumpTile("i64", cast<i64>(v) - (std::int64_t(1) << 40));
    dumpTile("u16", cast<u16>(v) - 1);
    dumpTile("mask", v > 100.0f);
    dumpTile("row", sum(v, along(0)));
  });
  const TemporaryDirectory folder;
  EmulatorOptions options;
  options.tileDirectory = folder.path();
  const std::vector<float> x = counting();
  EXPECT_EQ(run(k, x, "sm_90a", options, 2).printed, "");
  for (int program = 0; program < 2; ++program) {
    const auto expectFile = [&](const char *name, DType type, const auto &wanted) {
      const auto read = readNpy(folder.path() + "/dump." + name + "." + std::to_string(program) + "_0_0.npy");
      ASSERT_TRUE(read.ok()) << read.status().toString();
      EXPECT_EQ(read->type, type) << name;
      EXPECT_EQ(read->shape, (kiln::Shape{rows, columns})) << name;
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(loadElement(&read->data[i * dtypeBytes(type)], type), wanted(x[i] + static_cast<float>(program)))
            << name << " " << i;
    };
    expectFile("f32", DType::F32, [](float v) { return v; });
    expectFile("bf16", DType::F32, [](float v) { return static_cast<float>(bfloat16(v)); });
    expectFile("f16", DType::F16, [](float v) { return static_cast<float>(float16(v)); });
    expectFile("f64", DType::F64, [](float v) { return v / 3.0; });
    expectFile("e4m3", DType::F32, [](float v) { return static_cast<float>(float8_e4m3(v)); });
    expectFile("i64", DType::I64, [](float v) { return std::trunc(v) - std::ldexp(1, 40); });
    expectFile("u16", DType::U16, [](float v) { return v < 1 ? 65535 : std::trunc(v) - 1; });
    expectFile("mask", DType::I1, [](float v) { return v > 100; });
    const auto row = readNpy(folder.path() + "/dump.row." + std::to_string(program) + "_0_0.npy");
    ASSERT_TRUE(row.ok());
    EXPECT_EQ(row->shape, kiln::Shape{columns});
  }
}

/// Rows that are hidden as a whole, the usual way to a NaN: -inf - -inf.
TEST(Debug, TheLineAtWhichANanIsBorn) {
  int line = 0;
  const language::Kernel k = kernel("hidden", {}, [&](Arg<language::Pointer<f32>, "x"> x) {
    const auto v = loadAll(x);
    const auto scores = select(v < 100.0f, v, -INFINITY);
    const auto shifted = scores - expandDims(max(scores, along(1)), 1);
    line = __LINE__ - 1;
    const auto weights = exp2(shifted, approx) * 2;
    store(x + range(0, columns), sum(weights, along(0)));
  });
  for (const char *target : {"sm_80", "sm_90a"}) {
    EmulatorOptions options;
    EXPECT_TRUE(run(k, counting(), target, options).findings.empty());
    options.firstNan = true;
    const Outcome out = run(k, counting(), target, options);
    ASSERT_FALSE(out.findings.empty());
    for (const Finding &f : out.findings) {
      EXPECT_EQ(f.id, "nan.born") << f.toString();
      EXPECT_NE(f.location.find("DebugTest.cpp:" + std::to_string(line)), std::string::npos) << f.toString();
      EXPECT_NE(f.message.find("-inf"), std::string::npos) << f.toString();
    }
  }
}

TEST(Debug, WhatCannotBePrintedOrDumpedIsSaidWhenRecorded) {
  const auto message = [](auto body) {
    return kernel("bad", {}, [&](Arg<language::Pointer<f32>, "x"> x) { body(loadAll(x)); }).status().toString();
  };
  EXPECT_NE(message([](auto v) {
              devicePrintSlice("v ", v, {{0, 4}, {8, 17}});
            }).find("devicePrintSlice: the tile [32, 16] has no slice [0, 4, 8, 17] (give begin and end"),
            std::string::npos);
  EXPECT_NE(message([](auto v) { devicePrintSlice("v ", v, {{0, 4}}); }).find("no slice [0, 4]"), std::string::npos);
  EXPECT_NE(message([](auto v) { devicePrintSlice("v ", v, {{4, 4}, {0, 1}}); }).find("no slice"), std::string::npos);
  EXPECT_NE(message([](auto v) { dumpTile("../v", v); }).find("dumpTile: '../v' cannot be part of a file's name"),
            std::string::npos);
}

} // namespace
} // namespace kiln::test
