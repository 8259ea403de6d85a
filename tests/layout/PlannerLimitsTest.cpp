// Scratch limits, diagnostics, tiles with repetitions.
#include "compiler/layout/LocalAccess.h"
#include "compiler/layout/Reduction.h"
#include "compiler/layout/TilePlanner.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/layout/PlanOracle.h"
#include "tests/support/TestTier.h"

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

const Target &sm80() {
  return **findTarget("sm_80");
}

Blocked simple(Sizes warps) {
  return {.sizePerThread = {1, 1}, .threadsPerWarp = {4, 8}, .warpsPerCTA = std::move(warps), .order = {1, 0}};
}

/// A layout from flat columns.
LinearLayout make(std::initializer_list<std::uint32_t> shape, std::vector<BitVector> registers,
                  std::vector<BitVector> lanes, std::vector<BitVector> warps = {}, std::vector<BitVector> blocks = {}) {
  return unwrap(LinearLayout::create(shape, {registers, lanes, warps, blocks}));
}

template <typename T> void expectCode(const Result<T> &result, const char *code, const char *contains) {
  ASSERT_FALSE(result.ok()) << code;
  EXPECT_TRUE(result.status().message().find(std::string(code) + ":") != std::string::npos)
      << result.status().message();
  EXPECT_NE(result.status().toString().find(contains), std::string::npos) << result.status().toString();
  EXPECT_FALSE(result.status().remedy().empty()) << code;
}

} // namespace

TEST(PlannerLimits, LessScratchNeverCostsLessAndIsRespected) {
  Random random(7);
  for (int i = 0; i < kiln::test::pick(150, 3000); ++i) {
    auto [source, destination] = randomPair(random, 9);
    unsigned bits = random.pick({1u, 8u, 16u, 32u, 64u});
    const Target &target = source.bits(InDim::Block) ? **findTarget("sm_90a") : sm80();
    double last = 0;
    for (std::uint64_t limit : {48u << 10, 4096u, 1024u, 256u, 64u, 8u}) {
      auto plan = planConversion(source, destination, bits, target, limit);
      ASSERT_TRUE(plan.ok()) << plan.status().toString();
      EXPECT_GE(plan->cost, last) << source.text() << " -> " << destination.text() << " limit " << limit;
      EXPECT_LE(plan->scratchBytes, limit);
      last = plan->cost;
    }
  }
}

TEST(PlannerLimits, ScalarDownToOneElement) {
  LinearLayout source = make({16, 16}, {1, 2, 4}, {8, 16, 32, 64, 128}),
               destination = make({16, 16}, {128, 64, 32}, {16, 8, 4, 2, 1});
  for (unsigned bits : {8u, 16u, 32u, 64u}) {
    PlanOptions options{std::max(8u, bits) / 8, Strategy::SharedScalar};
    auto plan = planConversion(source, destination, bits, sm80(), options);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    EXPECT_EQ(plan->passes, 256u);
    EXPECT_EQ(plan->scratchBytes, options.scratchBytes);
    EXPECT_EQ(kiln::test::runPlan(*plan, source, destination).error, "");
    options.scratchBytes -= 1;
    expectCode(planConversion(source, destination, bits, sm80(), options), "L19", "at least");
  }
  // Chosen, not forced: data crosses warps, and only single elements fit.
  LinearLayout a = unwrap(lower(simple({4, 1}), {32, 32})), b = unwrap(lower(simple({1, 4}), {32, 32}));
  auto plan = planConversion(a, b, 32, sm80(), 4);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->strategy, Strategy::SharedScalar);
  EXPECT_EQ(plan->scratchBytes, 4u);
  expectCode(planConversion(a, b, 32, sm80(), 3), "L19", "4 bytes");
  expectCode(planConversion(a, b, 32, sm80(), 0), "L19", "4 bytes");
}

TEST(PlannerLimits, Diagnostics) {
  LinearLayout a = unwrap(lower(simple({2, 2}), {64, 64})), b = unwrap(lower(simple({4, 2}), {64, 64}));
  LinearLayout small = unwrap(lower(simple({2, 2}), {32, 64}));
  expectCode(planConversion(a, small, 16, sm80()), "L12", "64x64");
  expectCode(planConversion(a, a, 12, sm80()), "L12", "12");
  expectCode(planConversion(a, b, 16, sm80()), "L13", "4 warps");
  LinearLayout partial = make({8, 8}, {1}, {2, 4, 8, 16, 0}), whole = make({8, 8}, {1}, {2, 4, 8, 16, 32});
  expectCode(planConversion(partial, whole, 16, sm80()), "L07", "source");
  expectCode(planConversion(whole, partial, 16, sm80()), "L07", "destination");
  LinearLayout few = make({8, 8}, {1, 2, 32}, {4, 8, 16});
  expectCode(planConversion(few, whole, 16, sm80()), "L04", "8 lanes");
  LinearLayout blocks = make({8, 8}, {1}, {2, 4, 8, 16, 32}, {}, {0});
  expectCode(planConversion(blocks, blocks, 16, sm80()), "L16", "2 blocks");
  EXPECT_TRUE(planConversion(blocks, blocks, 16, **findTarget("sm_90")).ok());
  expectCode(planConversion(whole, blocks, 16, sm80()), "L13", "blocks");
  LinearLayout crowd = make({8, 8}, {1}, {2, 4, 8, 16, 32}, {0, 0, 0, 0, 0, 0});
  expectCode(planConversion(crowd, crowd, 16, sm80()), "L18", "64 warps");

  LinearLayout narrow = unwrap(LinearLayout::create({8, 8}, {.offsets = std::vector<BitVector>{1, 2, 4, 8, 16, 16}}));
  LinearLayout buffer = unwrap(LinearLayout::create({8, 8}, {.offsets = std::vector<BitVector>{1, 2, 4, 8, 16, 32}}));
  expectCode(planLocalAccess(whole, narrow, 16, sm80(), true), "L17", "rank");
  expectCode(planLocalAccess(a, buffer, 16, sm80(), true), "L12", "64x64");
  expectCode(planLocalAccess(whole, buffer, 7, sm80(), true), "L12", "7");
  expectCode(planLocalAccess(partial, buffer, 16, sm80(), false), "L07", "distributed");
  LinearLayout split = make({8, 8}, {}, {1, 2, 4, 8, 16}, {}, {32});
  expectCode(planLocalAccess(split, buffer, 16, sm80(), false), "L13", "2 blocks");
  expectCode(planReduction(whole, 2, 32, sm80()), "L10", "axis 2");
  expectCode(planScan(whole, 5, 32, sm80()), "L10", "axis 5");
  expectCode(planReduction(partial, 0, 32, sm80()), "L07", "reduced");
}

TEST(PlannerLimits, LargestTensors) {
  // 2^20 elements and as many bases as a layout may have: limits of the inline storage.
  Random random(11);
  for (int i = 0; i < kiln::test::pick(6, 40); ++i) {
    std::vector<BitVector> units, columns[2];
    for (unsigned b = 0; b < maxTensorBits; ++b)
      units.push_back(unitVector(b));
    for (auto &list : columns) {
      random.shuffle(units);
      list = units;
      for (unsigned extra = maxTensorBits; extra < maxInputBits; ++extra)
        list.push_back(random.chance(0.5) ? 0 : random.word() & lowMask(maxTensorBits));
      random.shuffle(list);
    }
    auto build = [&](const std::vector<BitVector> &c, unsigned blockBits) {
      std::span<const BitVector> all(c);
      return unwrap(LinearLayout::create({1024, 1024}, {.registers = all.subspan(10 + blockBits),
                                                        .lanes = all.first(5),
                                                        .warps = all.subspan(5, 5),
                                                        .blocks = all.subspan(10, blockBits)}));
    };
    unsigned blockBits = i % 5;
    LinearLayout source = build(columns[0], blockBits), destination = build(columns[1], blockBits);
    for (unsigned bits : {8u, 64u}) {
      auto plan = planConversion(source, destination, bits, **findTarget("sm_90a"));
      ASSERT_TRUE(plan.ok()) << plan.status().toString();
      EXPECT_LE(plan->scratchBytes, defaultScratchBytes);
    }
    EXPECT_TRUE(planReduction(source, 1, 32, **findTarget("sm_90a")).ok() || blockBits);
  }
}

TEST(PlannerLimits, LargestTensorElementByElement) {
  // 2^20 passes of 2^15 accesses: counts beyond 32 bits.
  std::vector<BitVector> units;
  for (unsigned b = 0; b < maxTensorBits; ++b)
    units.push_back(unitVector(b));
  std::span<const BitVector> all(units);
  LinearLayout source =
      unwrap(LinearLayout::create({1024, 1024}, {.registers = all.subspan(5), .lanes = all.first(5)}));
  LinearLayout destination =
      unwrap(LinearLayout::create({1024, 1024}, {.registers = all.first(15), .lanes = all.subspan(15)}));
  auto plan = planConversion(source, destination, 16, sm80(), PlanOptions{2, Strategy::SharedScalar});
  ASSERT_TRUE(plan.ok()) << plan.status().toString();
  EXPECT_EQ(plan->passes, 1u << 20);
  EXPECT_EQ(plan->shared.store.instructions, std::uint64_t(1) << 35);
  EXPECT_EQ(plan->permutes, std::uint64_t(1) << 36);
  EXPECT_GT(plan->cost, 0x1p35);
  plan = planConversion(source, destination, 16, sm80());
  ASSERT_TRUE(plan.ok());
  EXPECT_LT(plan->cost, 0x1p24);
}

TEST(PlannerLimits, TilesWithRepetitions) {
  Encoding accumulator = Mma{.version = 3, .warpsPerCTA = {4, 1}, .instrN = 32};
  Encoding rows = Blocked{.sizePerThread = {1, 8}, .threadsPerWarp = {8, 4}, .warpsPerCTA = {4, 1}, .order = {1, 0}};
  for (std::int64_t m : {1, 3, 5, 7, 9, 11}) {
    TileLayout source = unwrap(TileLayout::create(accumulator, {64, 32 * m}));
    TileLayout destination = unwrap(TileLayout::create(rows, {64, 32 * m}));
    const Target &target = **findTarget("sm_90a");
    for (std::uint64_t limit : {48u << 10, 8192u, 1024u}) {
      auto plan = planTileConversion(source, destination, 16, target, limit);
      ASSERT_TRUE(plan.ok()) << plan.status().toString();
      EXPECT_EQ(plan->core.repetitions, static_cast<unsigned>(m));
      auto one = planConversion(source.core(), destination.core(), 16, target, limit);
      ASSERT_TRUE(one.ok()) << one.status().toString();
      if (m == 1) {
        EXPECT_EQ(plan->core.cost, one->cost);
      } else if (plan->core.perRound > 1) { // latencies and barriers are shared
        EXPECT_LT(plan->core.cost, one->cost * static_cast<double>(m));
      }
      EXPECT_LE(plan->scratchBytes, limit);
      EXPECT_GE(plan->core.perRound, 1u);
      EXPECT_EQ(plan->barriers, 2 * plan->core.rounds() * plan->core.passes - 1);
      EXPECT_EQ(kiln::test::runPlan(plan->core, source.core(), destination.core()).error, "");
      // Element by element: the core's places, carried to every repetition, hold what the destination asks for.
      auto places = kiln::test::runPlan(plan->core, source.core(), destination.core()).places;
      unsigned sourceRegisters = source.core().size(InDim::Register);
      unsigned registers = destination.core().size(InDim::Register);
      ASSERT_EQ(places.size(), std::size_t(4) * 32 * registers);
      for (unsigned place = 0; place < places.size(); ++place)
        for (unsigned rep = 0; rep < plan->core.repetitions; ++rep) {
          unsigned reg = place % registers, lane = place / registers % 32, warp = place / registers / 32;
          unsigned from = places[place], fromReg = from % sourceRegisters;
          unsigned fromLane = from / sourceRegisters % 32, fromWarp = from / sourceRegisters / 32;
          ASSERT_EQ(source.coords(rep * sourceRegisters + fromReg, fromLane, fromWarp, 0),
                    destination.coords(rep * registers + reg, lane, warp, 0));
        }
    }
  }
  TileLayout a = unwrap(TileLayout::create(rows, {64, 96})), b = unwrap(TileLayout::create(rows, {64, 160}));
  expectCode(planTileConversion(a, b, 16, sm80()), "L12", "64x96");
}
