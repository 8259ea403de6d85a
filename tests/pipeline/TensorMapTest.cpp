// Tensor maps from a recipe in a kernel's text to the copy engine: docs/examples/tiles.mlir on the emulator, with
// extents and strides from arguments, tiles across every border, and what the launcher refuses.
#include "tests/pipeline/JitHarness.h"
#include "tests/pipeline/PipelineHarness.h"
#include "tests/support/TestTier.h"

#include <filesystem>
#include <nlohmann/json.hpp>

namespace kiln::test {
namespace {

std::string tilesText() {
  return fileText(KILN_SOURCE_DIR "/docs/examples/tiles.mlir");
}

KernelSource tilesSource(std::string text = tilesText()) {
  KernelSource source;
  source.name = "tiles";
  source.programText = std::move(text);
  source.fileName = "tiles.mlir";
  source.arguments = {{"x", "ptr<f32>"},  {"out", "ptr<f32>"},   {"rows", "i32"},
                      {"columns", "i32"}, {"row_stride", "i64"}, {"first", "i32"}};
  source.warps = 4;
  return source;
}

struct Problem {
  std::int32_t rows, columns;
  std::int64_t rowStride;
  std::int32_t first = 0;
};

/// The tiles of the whole tensor, and one more row of blocks that lies outside.
void check(JitOnEmulator &gpu, JitKernel &kernel, const Problem &p, std::uint32_t outside = 0) {
  SCOPED_TRACE(std::to_string(p.rows) + " x " + std::to_string(p.columns) + ", rows " + std::to_string(p.rowStride) +
               " apart, from " + std::to_string(p.first));
  std::vector<float> x(static_cast<std::size_t>((p.rows - 1) * p.rowStride + p.columns));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i + 1);
  const auto across = static_cast<std::uint32_t>((p.columns + 15) / 16),
             down = static_cast<std::uint32_t>((p.rows + 7) / 8 + 1);
  auto in = gpu.upload(x);
  auto out = gpu.poisoned(std::size_t(across) * down * 512);
  const Status s = kernel.launch({across, down}, nullptr, *in, *out, p.rows, p.columns, p.rowStride, p.first);
  ASSERT_TRUE(s.ok()) << s.toString();
  gpu.expectNoFindings();
  const std::vector<std::uint32_t> got = gpu.download<std::uint32_t>(*out);
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(8 * down); ++r)
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(16 * across); ++c) {
      const std::int32_t row = r + p.first, column = c + p.first;
      std::uint32_t want = outside;
      if (row >= 0 && row < p.rows && column >= 0 && column < p.columns)
        std::memcpy(&want, &x[static_cast<std::size_t>(row * p.rowStride + column)], 4);
      ASSERT_EQ(got[static_cast<std::size_t>(r) * 16 * across + static_cast<std::size_t>(c)], want) << r << ", " << c;
    }
}

TEST(TensorMap, ExtentsAndStridesComeFromArguments) {
  JitOnEmulator gpu;
  auto kernel = gpu.jit->kernel(tilesSource());
  ASSERT_TRUE(kernel.ok());
  for (const Problem &p : {Problem{8, 16, 16}, {16, 64, 64}, {13, 37, 40}, {1, 1, 4}, {9, 17, 20, -4}, {20, 30, 64, 8}})
    check(gpu, **kernel, p);
  EXPECT_EQ(gpu.jit->counters().compiles, 1u);
}

/// Where it is asked for, what lies outside is NaN: the hardware's pattern.
TEST(TensorMap, FillsWithNan) {
  JitOnEmulator gpu;
  auto kernel = gpu.jit->kernel(tilesSource(replaced(tilesText(), "box = [16, 8]>", "box = [16, 8], fill = \"nan\">")));
  ASSERT_TRUE(kernel.ok());
  check(gpu, **kernel, {13, 37, 40, -4}, 0x7FF77FF7);
}

TEST(TensorMap, TheMetadataHasTheRecipe) {
  const Compiled c = compile(tilesText(), {.target = "sm_90a"});
  ASSERT_EQ(c.status, KILN_COMPILE_OK) << c.diagnostics;
  const auto metadata = nlohmann::json::parse(c.metadata);
  EXPECT_EQ(metadata["num_warps"], 4);
  ASSERT_EQ(metadata["arguments"].size(), 6u);
  EXPECT_EQ(metadata["arguments"][4]["name"], "row_stride");
  EXPECT_EQ(metadata["hidden"], nlohmann::json::parse(R"([{"kind": "tensor_map", "offset": 64, "bytes": 128,
    "element": "f32", "address": 0, "extents": [{"argument": 3}, {"argument": 2}],
    "strides": [["*", {"argument": 4}, 4]], "box": [16, 8], "swizzle": "none", "interleave": "none",
    "promotion": "none", "fill": "zeros"}])"));
  EXPECT_NE(c.output.find(".param .align 64 .b8 tiles_param_6[128]"), std::string::npos) << c.output;
  EXPECT_EQ(c.output.find(".local"), std::string::npos); // the map is read where it lies
}

constexpr std::string_view numbersMap = R"(, %map: !tile_gpu.tensor_map {
    tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "s32", address = 0, extents = ()[s0, s1] -> (16, s1 ceildiv 16),
      strides = ()[s0, s1] -> (s1 * 4), box = [16, 1]>})";

/// Writes 0 to 127, and has a map that nothing copies by.
KernelSource numbersSource(std::string_view map = numbersMap) {
  KernelSource source;
  source.name = "numbers";
  source.fileName = "numbers.mlir";
  source.arguments = {{"out", "ptr<i32>"}, {"n", "i32"}};
  source.programText = R"(
func.func @numbers(%out: !tile.ptr<i32> {tile.name = "out"}, %n: i32 {tile.name = "n"})" +
                       std::string(map) + R"() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.range 0 to 128 : tensor<128xi32>
  %base = tile.splat %out : !tile.ptr<i32> to tensor<128x!tile.ptr<i32>>
  %to = tile.addptr %base, %i : tensor<128x!tile.ptr<i32>>, tensor<128xi32>
  tile.store %to, %i : tensor<128x!tile.ptr<i32>>
  return
})";
  return source;
}

void checkNumbers(JitOnEmulator &gpu, JitKernel &kernel, std::int32_t n) {
  auto out = gpu.poisoned(512);
  const Status s = kernel.launch({1}, nullptr, *out, n);
  ASSERT_TRUE(s.ok()) << s.toString();
  gpu.expectNoFindings();
  const std::vector<std::int32_t> got = gpu.download<std::int32_t>(*out);
  for (std::int32_t i = 0; i < 128; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
}

/// Through all stages: a map that nothing copies by is made, passed and checked all the same.
TEST(TensorMap, AKernelAtStageTileMayHaveOne) {
  JitOnEmulator gpu;
  auto kernel = gpu.jit->kernel(numbersSource());
  ASSERT_TRUE(kernel.ok());
  checkNumbers(gpu, **kernel, 100);
  auto out = gpu.poisoned(512);
  const Status refused = (*kernel)->launch({1}, nullptr, *out, 102);
  EXPECT_NE(
      refused.message().find("the tensor map of argument 0 'out' (extents 16, 'n' ceildiv 16 = 7; strides 'n' * 4 "
                             "= 408 bytes): tensor map: strides[0] = 408 bytes is not a multiple of 16"),
      std::string::npos)
      << refused.message();
}

/// As passes are told.  Maps of the text are the author's and stay.
TEST(TensorMap, ARequestForNoMapsIsInTheText) {
  const std::string facts = R"([{"argument": 0, "divisibility": 16}, {"tensor_maps": false}])";
  const Compiled tile =
      compile(numbersSource().programText, {.target = "sm_90a", .facts = facts, .emit = "tile", .isolation = "none"});
  ASSERT_EQ(tile.status, KILN_COMPILE_OK) << tile.diagnostics;
  EXPECT_NE(tile.output.find("tile_gpu.no_tensor_maps"), std::string::npos) << tile.output;
  const Compiled ptx = compile(numbersSource().programText, {.target = "sm_90a", .facts = facts});
  ASSERT_EQ(ptx.status, KILN_COMPILE_OK) << ptx.diagnostics;
  const auto metadata = nlohmann::json::parse(ptx.metadata);
  EXPECT_EQ(metadata["hidden"].size(), 1u);
  EXPECT_FALSE(metadata.contains("maps_by_passes"));
  EXPECT_EQ(metadata["guards"].size(), 1u);
  EXPECT_EQ(
      compile(numbersSource().programText, {.target = "sm_90a", .facts = R"([{"argument": 0, "divisibility": 16}])"})
          .output,
      ptx.output);
  for (const char *wrong :
       {R"([{"tensor_maps": true}])", R"([{"tensor_maps": 0}])", R"([{"tensor_maps": false, "argument": 0}])"}) {
    const Compiled c = compile(numbersSource().programText, {.target = "sm_90a", .facts = wrong});
    EXPECT_EQ(c.status, KILN_COMPILE_INPUT);
    EXPECT_NE(c.diagnostics.find("a fact of the specialization about tensor maps is not {\\\"tensor_maps\\\": false}"),
              std::string::npos)
        << c.diagnostics;
  }
}

/// A map that stage tile_gpu adds (here by a text that takes its place): arguments that it cannot be made of run code
/// without.
TEST(TensorMap, WhereAMapOfAStageCannotBeMadeOtherCodeRuns) {
  const TemporaryDirectory dumped, changed;
  Knobs knobs;
  knobs.dumpDir = dumped.path();
  KernelSource source = numbersSource("");
  source.arguments[0].specialise = Specialise::Divisibility;
  {
    JitOnEmulator gpu("sm_90a", knobs);
    auto kernel = gpu.jit->kernel(source);
    ASSERT_TRUE(kernel.ok());
    checkNumbers(gpu, **kernel, 102);
  }
  unsigned files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(dumped.path()))
    if (const std::string name = entry.path().filename(); name.ends_with(".tile_gpu.mlir")) {
      ++files;
      std::ofstream(changed.path() + "/" + name)
          << replaced(fileText(entry.path()), ") attributes", std::string(numbersMap) + ") attributes");
    }
  ASSERT_EQ(files, 1u);
  knobs = {};
  knobs.overrideDir = changed.path();
  JitOnEmulator gpu("sm_90a", knobs);
  auto kernel = gpu.jit->kernel(source);
  ASSERT_TRUE(kernel.ok());
  checkNumbers(gpu, **kernel, 100);
  EXPECT_EQ(gpu.jit->counters().compiles, 1u);
  for (const std::int32_t n : {102, 0, -16, 102, 100})
    checkNumbers(gpu, **kernel, n);
  EXPECT_EQ(gpu.jit->counters().compiles, 2u);
  auto out = gpu.poisoned(512);
  const auto with = (*kernel)->prepare(nullptr, named<"out">(out->address()), named<"n">(100)),
             without = (*kernel)->prepare(nullptr, named<"out">(out->address()), named<"n">(102));
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_EQ((*with)->variant(), "out/16");
  EXPECT_EQ((*without)->variant(), "out/16, no tensor maps");
  EXPECT_NE((*with)->metadata().find("\"maps_by_passes\":true"), std::string::npos) << (*with)->metadata();
}

TEST(TensorMap, ATensorThatNoMapDescribesIsRefused) {
  JitOnEmulator gpu;
  auto kernel = gpu.jit->kernel(tilesSource());
  ASSERT_TRUE(kernel.ok());
  auto in = gpu.poisoned(4096), out = gpu.poisoned(4096);
  const Status stride = (*kernel)->launch({1, 1}, nullptr, *in, *out, 8, 16, std::int64_t(18), 0);
  EXPECT_EQ(stride.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(stride.message(), "kernel 'tiles' [general]: the tensor map of argument 0 'x' (extents 'columns' = 16, "
                              "'rows' = 8; strides 'row_stride' * 4 = 72 bytes): tensor map: strides[0] = 72 bytes is "
                              "not a multiple of 16");
  EXPECT_EQ(stride.remedy(), "pad the rows of the tensor");
  const Status address = (*kernel)->launch({1, 1}, nullptr, in->address() + 4, *out, 8, 16, std::int64_t(16), 0);
  EXPECT_NE(address.message().find("is not a multiple of 16"), std::string::npos) << address.message();
}

TEST(TensorMap, KernelsAtStageLlvmAreChecked) {
  const auto refused = [](const std::string &text, const std::string &why, std::string_view target = "sm_90a") {
    const Compiled c = compile(text, {.target = target});
    EXPECT_NE(c.status, KILN_COMPILE_OK);
    EXPECT_NE(c.diagnostics.find(why), std::string::npos) << c.diagnostics;
  };
  const std::string text = tilesText();
  refused(text, "argument 6 of kernel 'tiles' is a tensor map, sm_80 has none: it lacks the capability 'tma'", "sm_80");
  refused(replaced(text, ", nvvm.reqntid = array<i32: 128>", ""), "it says no block of 1 to 32 warps along x");
  refused(replaced(text, "array<i32: 128>}", "array<i32: 100>}"), "it says no block of 1 to 32 warps along x");
  refused(replaced(text, "array<i32: 128>}", "array<i32: 64, 2>}"), "it says no block of 1 to 32 warps along x");
  refused(replaced(text, "nvvm.grid_constant,", ""), "argument 6 is a tensor map that is no grid constant");
  refused(replaced(text, "llvm.align = 64 : i64, ", ""), "argument 6 is a tensor map that is no grid constant");
  refused(replaced(text, "%rows: i32", "%rows: i128"), "argument 2 of type 'i128'");
  refused(replaced(text, "llvm.return\n", "func.call @f() : () -> ()\n llvm.return\n"), "func.call");
  refused(replaced(text, "module {", "module attributes {tile_gpu.target = \"sm_100a\"} {"),
          "the program is written for sm_100a, not for sm_90a");
}

} // namespace
} // namespace kiln::test
