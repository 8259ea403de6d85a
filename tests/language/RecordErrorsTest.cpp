// What C++ cannot see is an error when the kernel is recorded: it names file and line, operation, values and a remedy.
#include "tests/language/LanguageTesting.h"

#include <gtest/gtest.h>

#include <functional>

using namespace kiln::language;

namespace {

struct Case {
  const char *name;
  std::function<void(const Pointer<f32> &x, const Scalar<i32> &n)> body;
  std::vector<std::string> message; ///< all of these
  std::string remedy;               ///< a part of it
};

std::ostream &operator<<(std::ostream &out, const Case &c) {
  return out << c.name;
}

class RecordError : public testing::TestWithParam<Case> {};

TEST_P(RecordError, NamesLineOperationValuesAndRemedy) {
  const Case &c = GetParam();
  bool wentOn = false;
  const Kernel k = kernel("bad", {}, [&](Arg<Pointer<f32>, "x"> x, Arg<i32, "n"> n) {
    c.body(x, n);
    // Whatever happened, further recording is harmless.
    auto y = load(x + range(0, 32)) * 2;
    auto z = loop(over(0, n), y, [&](auto i, auto y) { return y + cast<f32>(i); });
    when(n > 0, [&] { store(x, sum(z)); });
    storeView(makeView(x, {n}, {1}, {8}), {0}, zeros<f32>({8}));
    wentOn = true;
  });
  EXPECT_TRUE(wentOn);
  ASSERT_FALSE(k.ok());
  EXPECT_EQ(k.text(), "");
  EXPECT_EQ(k.status().code(), kiln::StatusCode::InvalidArgument);
  const std::string &message = k.status().message();
  EXPECT_EQ(message.find("tests/language/RecordErrorsTest.cpp:"), 0u) << message;
  EXPECT_NE(message.find("kernel 'bad'"), std::string::npos) << message;
  for (const std::string &part : c.message)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
  EXPECT_FALSE(c.remedy.empty());
  EXPECT_NE(k.status().remedy().find(c.remedy), std::string::npos) << k.status().remedy();
}

using P = const Pointer<f32> &;
using N = const Scalar<i32> &;

INSTANTIATE_TEST_SUITE_P(
    Each, RecordError,
    testing::Values(
        Case{"RankMismatch",
             [](P x, N n) { (void)(zeros<f32>({32}) + zeros<f32>({32, 8})); },
             {"operator +", "[32]", "[32, 8]", "ranks 1 and 2"},
             "expandDims"},
        Case{"ExtentMismatch",
             [](P x, N n) { (void)(zeros<f32>({32, 4}) < zeros<f32>({32, 8})); },
             {"operator <", "[32, 4]", "[32, 8]", "dimension 1: 4 and 8"},
             "extent of 1"},
        Case{"MaskDoesNotBroadcast",
             [](P x, N n) { (void)load(x + range(0, 32), range(0, 16) < n); },
             {"load", "the mask", "[16]", "[32]"},
             "extents equal"},
        Case{"PointersAreNotBroadcast",
             [](P x, N n) { store(x + expandDims(range(0, 32), 1), zeros<f32>({32, 8})); },
             {"store", "the value", "[32, 8]", "[32, 1]"},
             "extents equal"},
        Case{"OtherWithoutMask", [](P x, N n) { (void)load(x, {}, 1.0f); }, {"load", "no mask"}, "mask"},
        Case{"BadExtent", [](P x, N n) { (void)zeros<f32>({17}); }, {"full", "[17]", "at most 15"}, "tile size"},
        Case{"TooLarge", [](P x, N n) { (void)zeros<f32>({1 << 21}); }, {"full", "2^20"}, "tile size"},
        Case{"ZeroExtent", [](P x, N n) { (void)zeros<f32>({0}); }, {"full", "[0]", "not positive"}, "tile size"},
        Case{"NoExtent", [](P x, N n) { (void)zeros<f32>({}); }, {"full", "at least one dimension"}, "tile size"},
        Case{"TooManyDims",
             [](P x, N n) { (void)zeros<f32>({1, 1, 1, 1, 1, 1, 1, 1, 1}); },
             {"full", "at most 8"},
             "tile size"},
        Case{"EmptyRange", [](P x, N n) { (void)range(8, 8); }, {"range", "8 .. 8"}, "begin below the end"},
        Case{"WideRange", [](P x, N n) { (void)range(0, 1LL << 40); }, {"range", "1099511627776"}, "32 bits"},
        Case{"ConstantOutOfRange",
             [](P x, N n) { (void)(n + 3000000000); },
             {"operator +", "3000000000", "i32", "-2147483648 .. 2147483647"},
             "wider"},
        Case{"NegativeUnsigned",
             [](P x, N n) { (void)(cast<u32>(n) * -1); },
             {"operator *", "-1", "u32", "0 .. 4294967295"},
             "range"},
        Case{"FloatOutOfRange", [](P x, N n) { (void)constant<f16>(70000); }, {"70000", "f16", "65504"}, "range"},
        Case{"NotAPermutation",
             [](P x, N n) { (void)transpose(zeros<f32>({4, 8}), {0, 0}); },
             {"transpose", "{0, 0}", "[4, 8]"},
             "each dimension once"},
        Case{"ShortPermutation",
             [](P x, N n) { (void)transpose(zeros<f32>({4, 8}), {0}); },
             {"transpose", "{0}", "[4, 8]"},
             "each dimension once"},
        Case{"ReshapeElements",
             [](P x, N n) { (void)reshape(zeros<f32>({4, 8}), {64}); },
             {"reshape", "[4, 8]", "32 elements", "64"},
             "same number"},
        Case{"BroadcastDown",
             [](P x, N n) { (void)broadcastTo(zeros<f32>({4, 8}), {4, 1}); },
             {"broadcastTo", "[4, 8]", "[4, 1]"},
             "extent of 1"},
        Case{"ExpandTooFar",
             [](P x, N n) { (void)expandDims(zeros<f32>({4}), 2); },
             {"expandDims", "dimension 2", "0 .. 1"},
             "dimension of the tile"},
        Case{"JoinShapes",
             [](P x, N n) { (void)join(zeros<f32>({4}), zeros<f32>({8})); },
             {"join", "[4]", "[8]"},
             "broadcastTo"},
        Case{"SplitOdd", [](P x, N n) { (void)split(zeros<f32>({4})); }, {"split", "[4]"}, "extent 2"},
        Case{"DotExtents",
             [](P x, N n) { (void)dot(zeros<f16>({4, 8}), zeros<f16>({4, 8}), zeros<f32>({4, 8})); },
             {"dot", "[4, 8] by [4, 8]", "[4, 8]"},
             "multiply [M, K] by [K, N]"},
        Case{"DotBatch",
             [](P x, N n) { (void)dot(zeros<f16>({2, 16, 16}), zeros<f16>({4, 16, 16})); },
             {"dot", "[2, 16, 16] by [4, 16, 16]", "[2, 16, 16]"},
             "a leading batch dimension"},
        Case{"GatherRank",
             [](P x, N n) { (void)gather(zeros<f32>({4, 8}), zeros<i32>({8, 4}), along(1)); },
             {"gather", "[4, 8]", "[8, 4]"},
             "extents"},
        Case{"ReduceRank1AlongADim",
             [](P x, N n) { (void)sum(zeros<f32>({32}), along(0)); },
             {"reduce", "[32]", "scalar"},
             "leave along(0) out"},
        Case{"ReduceDim",
             [](P x, N n) { (void)sum(zeros<f32>({4, 8}), along(2)); },
             {"reduce", "dimension 2", "0 .. 1"},
             "along(d)"},
        Case{"ArgmaxDim",
             [](P x, N n) { (void)argmax(zeros<f32>({4, 8}), along(-1)); },
             {"reduce", "dimension -1", "0 .. 1"},
             "along(d)"},
        Case{"ReduceShapes",
             [](P x, N n) {
               (void)reduce(std::tuple{zeros<f32>({4, 8}), zeros<f32>({8, 4})}, along(0),
                            [](auto a, auto b, auto c, auto d) { return std::tuple{a + c, b + d}; });
             },
             {"reduce", "[4, 8]", "[8, 4]"},
             "broadcastTo"},
        Case{"CombineUsesOutside",
             [](P x, N n) { (void)reduce(zeros<i32>({32}), [&](auto a, auto b) { return a + b * n; }); },
             {"operator *", "from outside"},
             "parameters"},
        Case{"CombineLoads",
             [](P x, N n) {
               (void)reduce(zeros<f32>({32}), [&](auto a, auto b) { return a + cast<f32>(programId()); });
             },
             {"programId", "combine function"},
             "move it out"},
        Case{"CombineLoops",
             [](P x, N n) {
               (void)reduce(zeros<f32>({32}), [&](auto a, auto b) {
                 return loop(over(0, 4), a, [&](auto, auto c) { return c + c; });
               });
             },
             {"loop", "combine function"},
             "move it out"},
        Case{"ValueLeavesLoop",
             [](P x, N n) {
               Scalar<f32> leaked;
               loop(over(0, n), [&](auto i) { leaked = load(x + i); });
               store(x, leaked);
             },
             {"store", "has ended", "RecordErrorsTest.cpp:"},
             "carried value"},
        Case{"ValueLeavesCondition",
             [](P x, N n) {
               auto leaked = n;
               when(n > 0, [&] { leaked = n + 1; });
               store(x + leaked, 1);
             },
             {"operator + of a pointer", "has ended"},
             "both bodies"},
        Case{"CarriedShapeChanges",
             [](P x, N n) {
               (void)loop(over(0, n), zeros<f32>({32}), [&](auto i, auto y) { return zeros<f32>({64}); });
             },
             {"loop", "carried value 0", "tensor<32xf32>", "tensor<64xf32>"},
             "shape the same"},
        Case{"WhileShapeChanges",
             [](P x, N n) {
               (void)whileLoop(
                   n, zeros<f32>({32}), [](auto n, auto) { return n > 0; },
                   [](auto n, auto) { return std::tuple{n - 1, zeros<f32>({64})}; });
             },
             {"whileLoop", "carried value 1", "tensor<32xf32>", "tensor<64xf32>"},
             "shape the same"},
        Case{"ValueLeavesWhileCondition",
             [](P x, N n) {
               Scalar<i32> leaked;
               whileLoop([&] { return (leaked = n + 1) > n; }, [&] { store(x + leaked, 1); });
             },
             {"operator + of a pointer", "has ended"},
             "carried value"},
        Case{"WhileInCombine",
             [](P x, N n) {
               (void)reduce(zeros<f32>({32}), [&](auto a, auto b) {
                 return whileLoop(a, [](auto a) { return a > 0; }, [](auto a) { return a - 1; });
               });
             },
             {"whileLoop", "combine function"},
             "move it out"},
        Case{"BranchesDiffer",
             [](P x, N n) {
               (void)when(
                   n > 0, [&] { return zeros<f32>({32}); }, [&] { return zeros<f32>({64}); });
             },
             {"when", "result 0", "tensor<32xf32>", "tensor<64xf32>"},
             "shape the same"},
        Case{"RandintEmpty",
             [](P x, N n) { (void)randint(1, n, 7, 7); },
             {"randint", "no i32 is one of 7 .. 7 - 1"},
             "low < high"},
        Case{"RandintTooWide",
             [](P x, N n) { (void)randint(1, range(0, 32), -2147483648, 2147483648); },
             {"randint", "-2147483648 .. 2147483648 - 1"},
             "at most 4294967295 apart"},
        Case{"RandintOutside",
             [](P x, N n) { (void)randint(1, n, 0, 3000000000); },
             {"randint", "0 .. 3000000000 - 1"},
             "2147483648"},
        Case{"UnrollNone",
             [](P x, N n) { loop(over(0, n).unroll(0), [](auto) {}); },
             {"loop", "does 0 rounds at once"},
             "1 to 64"},
        Case{"UnrollMany",
             [](P x, N n) { loop(over(0, n).unroll(65), [](auto) {}); },
             {"loop", "does 65 rounds at once"},
             "1 to 64"},
        Case{"PtxPlaceholder",
             [](P x, N n) { (void)inlinePtx<f32(f32)>("add.f32 $0, $1, $2;", zeros<f32>({32})); },
             {"inlinePtx", "$2 names nothing", "1 result and 1 operand"},
             "$0 to $1"},
        Case{"PtxOperandUnused",
             [](P x, N n) { (void)inlinePtx<f32(f32, i32)>("neg.f32 $0, $1;", zeros<f32>({32}), n); },
             {"inlinePtx", "operand 1", "$2 is missing"},
             "results and then the operands"},
        Case{"PtxDollar",
             [](P x, N n) { (void)inlinePtx<f32(f32)>("mov.f32 $0, $1; $L:", zeros<f32>({32})); },
             {"inlinePtx", "'$L' is no placeholder"},
             "$$"},
        Case{"PtxUnended",
             [](P x, N n) { (void)inlinePtx<i32(i32)>("neg.s32 $0, $1", n); },
             {"inlinePtx", "ends in '1'"},
             "';'"},
        Case{"PtxBarrier",
             [](P x, N n) { inlinePtxWithEffects<void()>("barrier.sync 0;"); },
             {"inlinePtxWithEffects", "'barrier.sync'"},
             "leave barriers to the compiler"},
        Case{"PtxShapes",
             [](P x, N n) {
               (void)inlinePtx<f32(f32, f32)>("add.f32 $0, $1, $2;", zeros<f32>({32}), zeros<f32>({16}));
             },
             {"inlinePtx", "[32] and [16]"},
             "extents equal"},
        Case{"PtxInCombine",
             [](P x, N n) {
               (void)reduce(zeros<f32>({32}),
                            [](auto a, auto b) { return inlinePtx<f32(f32, f32)>("max.f32 $0, $1, $2;", a, b); });
             },
             {"inlinePtx", "combine function"},
             "move it out"},
        Case{"SortDim",
             [](P x, N n) { (void)sort(zeros<f32>({4, 8}), along(2)); },
             {"sort", "dimension 2", "0 .. 1"},
             "along(d)"},
        Case{"SortExtent",
             [](P x, N n) { (void)sortWithIndex(zeros<f32>({4, 48}), along(1)); },
             {"sortWithIndex", "dimension 1 of [4, 48] has 48 elements"},
             "powers of two"},
        Case{"SortRank",
             [](P x, N n) { (void)sort(zeros<f32>({1, 1, 1, 1, 1, 8}), along(5)); },
             {"sort", "6 dimensions"},
             "at most 5"},
        Case{"TopKCount",
             [](P x, N n) { (void)topK(zeros<f32>({4, 64}), 12, along(1)); },
             {"topK", "k is 12 of 64 elements"},
             "power of two"},
        Case{"TopKMore",
             [](P x, N n) { (void)topK(zeros<f32>({4, 64}), 128, along(1)); },
             {"topK", "k is 128 of 64 elements"},
             "at most the extent"},
        Case{"TopKNone",
             [](P x, N n) { (void)topK(zeros<f32>({4, 64}), 0, along(1)); },
             {"topK", "k is 0"},
             "power of two"},
        Case{"HistogramElements",
             [](P x, N n) { (void)histogram(zeros<i32>({3, 32}), 16); },
             {"histogram", "[3, 32] has 96 elements"},
             "power of two"},
        Case{"HistogramBins",
             [](P x, N n) { (void)histogram(zeros<i32>({32}), 17); },
             {"range", "[17]", "at most 15"},
             "tile size"},
        Case{"BadStep", [](P x, N n) { loop(over(0, n, 0), [](auto) {}); }, {"loop", "step is 0"}, "positive step"},
        Case{"LayoutRank",
             [](P x, N n) {
               (void)withLayout(zeros<f32>({32, 8}),
                                {.sizePerThread = {1, 1}, .threadsPerWarp = {32}, .warpsPerCTA = {4, 1}});
             },
             {"withLayout", "threadsPerWarp is [32] of a tile of rank 2"},
             "one number for each dimension"},
        Case{"LayoutPowers",
             [](P x, N n) {
               (void)withLayout(zeros<f32>({32}), {.sizePerThread = {3}, .threadsPerWarp = {32}, .warpsPerCTA = {4}});
             },
             {"withLayout", "sizePerThread is [3]"},
             "powers of two"},
        Case{"LayoutZero",
             [](P x, N n) {
               (void)withLayout(zeros<f32>({32}), {.sizePerThread = {1}, .threadsPerWarp = {0}, .warpsPerCTA = {4}});
             },
             {"withLayout", "threadsPerWarp is [0]"},
             "powers of two"},
        Case{"LayoutLanes",
             [](P x, N n) {
               (void)withLayout(zeros<f32>({32}), {.sizePerThread = {1}, .threadsPerWarp = {16}, .warpsPerCTA = {4}});
             },
             {"withLayout", "threadsPerWarp is [16], 16 in all"},
             "multiply to 32, a warp's lanes"},
        Case{"LayoutWarps",
             [](P x, N n) {
               (void)withLayout(zeros<f32>({32}), {.sizePerThread = {1}, .threadsPerWarp = {32}, .warpsPerCTA = {8}});
             },
             {"withLayout", "warpsPerCTA is [8], 8 in all"},
             "multiply to 4, the kernel's warps"},
        Case{"LayoutOrder",
             [](P x, N n) {
               (void)withLayout(
                   zeros<f32>({32, 8}),
                   {.sizePerThread = {1, 1}, .threadsPerWarp = {32, 1}, .warpsPerCTA = {4, 1}, .order = {0, 0}});
             },
             {"withLayout", "order has the dimension 0"},
             "each dimension of the tile once"},
        Case{"LayoutShortOrder",
             [](P x, N n) {
               (void)withLayout(
                   zeros<f32>({32, 8}),
                   {.sizePerThread = {1, 1}, .threadsPerWarp = {32, 1}, .warpsPerCTA = {4, 1}, .order = {0}});
             },
             {"withLayout", "order has 1 dimensions of a tile of rank 2"},
             "each dimension of the tile once"},
        Case{"NoStages",
             [](P x, N n) { loop(over(0, n).stages(0), [](auto) {}); },
             {"loop", "has 0 stages"},
             "a pipeline has 1 to 8"},
        Case{"NegativeStages",
             [](P x, N n) { loop(over(0, n).stages(-1), [](auto) {}); },
             {"loop", "has -1 stages"},
             "a pipeline has 1 to 8"},
        Case{"TooManyStages",
             [](P x, N n) { loop(over(0, n).stages(9), [](auto) {}); },
             {"loop", "has 9 stages"},
             "a pipeline has 1 to 8"},
        Case{"Unassigned",
             [](P x, N n) {
               Scalar<f32> y;
               store(x, y);
             },
             {"store", "no value"},
             "before its first use"},
        Case{"TileCarriedAsOneMore",
             [](P x, N n) { store(x, sum(reshape(zeros<f32>({4, 8}), {3, 11}))); },
             {"reshape", "[3, 11]"},
             "tile size"},
        Case{"ViewRank",
             [](P x, N n) { (void)makeView(x, {n, n}, {1}, {8, 8}); },
             {"makeView", "2 extents and 1 strides", "[8, 8]"},
             "each dimension"},
        Case{"ViewUnitStride",
             [](P x, N n) { (void)makeView(x, {n, n}, {1, 7}, {8, 8}); },
             {"makeView", "unit dimension 1 is 7"},
             "unitDim"},
        Case{"ViewUnitDim",
             [](P x, N n) { (void)makeView(x, {n, n}, {1, 1}, {8, 8}, unitDim(2)); },
             {"makeView", "unit dimension 2"},
             "Unit::None"},
        Case{"ViewCoordinates",
             [](P x, N n) { (void)loadView(makeView(x, {n, n}, {n, 1}, {8, 8}), {n}); },
             {"loadView", "1 coordinates", "rank 2"},
             "each dimension"},
        Case{"ViewTile",
             [](P x, N n) { storeView(makeView(x, {n, n}, {n, 1}, {8, 8}), {n, n}, zeros<f32>({4, 8})); },
             {"storeView", "[4, 8]", "[8, 8]"},
             "extents equal"},
        Case{"NarrowDim",
             [](P x, N n) { (void)narrow(makeView(x, {n}, {1}, {8}), along(1), 0, n); },
             {"narrow", "dimension 1", "0 .. 0"},
             "dimension of the view"},
        Case{"PipelineRank", [](P, N) { (void)pipeline<f32, "x">({64}); }, {"pipeline", "[64]"}, "two dimensions"},
        Case{"PipelineStages",
             [](P, N) { (void)pipeline<f32, "x">({64, 32}, {.stages = 65}); },
             {"pipeline", "65 stages"},
             "1 to 64"},
        Case{"PipelineContiguous",
             [](P, N) { (void)pipeline<f32, "x">({64, 32}, {.contiguous = unitDim(2)}); },
             {"pipeline", "no dimension 2"},
             "unitDim(0)"},
        Case{"FillShape",
             [](P x, N n) { (void)fill(pipeline<f32, "x">({64, 32}), makeView(x, {n, n}, {n, 1}, {32, 32}), {0, 0}); },
             {"fill", "[32, 32]", "[64, 32]"},
             "same shape"},
        Case{"FillUnit",
             [](P x, N n) {
               (void)fill(pipeline<f32, "x">({64, 32}), makeView(x, {n, n}, {1, n}, {64, 32}, unitDim(0)), {0, 0});
             },
             {"fill", "along 0", "along 1"},
             "contiguous"},
        Case{"FillCoordinates",
             [](P x, N n) { (void)fill(pipeline<f32, "x">({64, 32}), makeView(x, {n, n}, {n, 1}, {64, 32}), {0}); },
             {"fill", "1 coordinates"},
             "one coordinate"}),
    [](const testing::TestParamInfo<Case> &info) { return std::string(info.param.name); });

TEST(RecordErrors, TheFirstOneWinsAndHasItsLine) {
  unsigned line = 0;
  const Kernel k = kernel("two", {}, [&](Arg<Pointer<f32>, "x"> x) {
    line = __LINE__ + 1;
    auto y = load(x + range(0, 32)) + zeros<f32>({16});
    store(x + range(0, 3000), y);
  });
  ASSERT_FALSE(k.ok());
  const std::string start =
      "tests/language/RecordErrorsTest.cpp:" + std::to_string(line) + ":39: kernel 'two': operator +";
  EXPECT_EQ(k.status().message().substr(0, start.size()), start);
}

TEST(RecordErrors, OfTheKernelItself) {
  const auto nothing = [](Arg<i32, "n"> n) {};
  const Kernel warps = kernel("k", {.warps = 3}, nothing);
  EXPECT_NE(warps.status().message().find("3 warps"), std::string::npos) << warps.status().message();
  EXPECT_NE(warps.status().remedy().find("1, 2, 4, 8, 16 or 32"), std::string::npos);
  for (const int limit : {-1, 1, 23, 256}) {
    const Kernel k = kernel("k", {.maxRegisters = limit}, nothing);
    EXPECT_NE(k.status().message().find("maxRegisters " + std::to_string(limit)), std::string::npos) << limit;
    EXPECT_NE(k.status().remedy().find("24 to 255"), std::string::npos);
  }
  const Kernel limited = kernel("k", {.maxRegisters = 32}, nothing);
  EXPECT_NE(limited.text().find("tile.max_registers = 32 : i32"), std::string::npos) << limited.text();
  EXPECT_EQ(limited.configText(), "warps = 4, maxRegisters = 32");
  EXPECT_EQ(kernel("k", {}, nothing).text().find("max_registers"), std::string::npos);
  for (const int level : {-1, 4}) {
    const Kernel k = kernel("k", {.assemblerLevel = level}, nothing);
    EXPECT_NE(k.status().message().find("assemblerLevel " + std::to_string(level)), std::string::npos) << level;
  }
  const Kernel quick = kernel("k", {.assemblerLevel = 1}, nothing);
  EXPECT_NE(quick.text().find("tile.assembler_level = 1 : i32"), std::string::npos) << quick.text();
  EXPECT_EQ(quick.configText(), "warps = 4, assemblerLevel = 1");
  EXPECT_EQ(kernel("k", {}, nothing).text().find("assembler_level"), std::string::npos);
  for (const std::array<int, 3> cluster : {std::array{3, 1, 1}, {0, 1, 1}, {-2, 1, 1}, {4, 2, 2}, {16, 1, 1}}) {
    const Kernel k = kernel("k", {.cluster = cluster}, nothing);
    EXPECT_NE(k.status().message().find("has a cluster of " + std::to_string(cluster[0]) + "x"), std::string::npos)
        << cluster[0];
    EXPECT_NE(k.status().remedy().find("power of two, and their product at most 8"), std::string::npos);
  }
  const Kernel paired = kernel("k", {.cluster = {2, 1, 4}}, nothing);
  EXPECT_NE(paired.text().find("tile.cluster = array<i32: 2, 1, 4>"), std::string::npos) << paired.text();
  EXPECT_EQ(paired.configText(), "warps = 4, cluster = 2x1x4");
  EXPECT_EQ(kernel("k", {.cluster = {1, 1, 1}}, nothing).text().find("cluster"), std::string::npos);
  for (const char *name : {"", "2x", "a b", "a\"b", "a\nb", "\xC3\xA4"}) {
    const Kernel k = kernel(name, {}, nothing);
    EXPECT_NE(k.status().message().find("no identifier"), std::string::npos) << name;
  }
  const Kernel twice = kernel("k", {}, [](Arg<i32, "n"> a, Arg<f32, "n"> b) {});
  EXPECT_NE(twice.status().message().find("both called 'n'"), std::string::npos) << twice.status().message();
  const Kernel none = withElement<f32, f16>(DType::I8, "k", [&]<Element T>() { return kernel("k", {}, nothing); });
  EXPECT_NE(none.status().message().find("i8"), std::string::npos);
  EXPECT_NE(none.status().remedy().find("f32, f16"), std::string::npos);
  EXPECT_FALSE(Kernel().ok());
}

} // namespace
