// The planner against the answers of the executable reference.  A better plan passes, a worse one fails: classes are
// equal; cost (recomputed here from the plan's counts) and conflicts are at most the reference's; strategy and barrier
// are equal whenever the cost is.
#include "compiler/layout/LocalAccess.h"
#include "compiler/layout/Reduction.h"
#include "compiler/layout/TilePlanner.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/layout/OracleChecks.h"
#include "tests/layout/PlanOracle.h"
#include "tests/support/TestTier.h"

#include <bit>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

const Target &targetOf(const nlohmann::json &name) {
  return **findTarget(name.get<std::string>());
}

/// Class, cost, conflicts and scratch of a plan, which needs `conflicts` and `scratch` in all, against the reference's.
/// True if the cost is the reference's.
bool comparePlan(const ConversionPlan &plan, std::uint64_t conflicts, std::uint64_t scratch, const Target &target,
                 std::uint64_t limit, const nlohmann::json &want) {
  EXPECT_EQ(className(plan.cls), want.at("cls").get<std::string>());
  const double cost = kiln::test::specifiedCost(plan), wantCost = want.at("cost");
  EXPECT_EQ(cost, plan.cost);
  EXPECT_LE(cost, wantCost + 0.005); // the file rounds to 1/100; costs are multiples of 1/4
  EXPECT_LE(conflicts, want.value("conflicts", std::uint64_t(0)));
  EXPECT_LE(scratch, limit);
  EXPECT_TRUE(plan.strategy != Strategy::MmaToMma || target.has(Capability::MmaToMma));
  if (cost != wantCost)
    return false;
  EXPECT_EQ(strategyName(plan.strategy), want.at("strategy").get<std::string>());
  EXPECT_EQ(barrierName(plan.barrier), want.value("barrier", "none"));
  return true;
}

} // namespace

TEST(GoldenPlanner, Conversions) {
  const auto &list = golden().at("conversions");
  ASSERT_GE(list.size(), 500u);
  unsigned equal = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto &c = list[i];
    const auto &want = c[5];
    SCOPED_TRACE(c.dump());
    const Target &target = targetOf(c[3]);
    auto limit = c[4].get<std::uint64_t>();
    auto plan = planConversion(goldenLayout(c[0]), goldenLayout(c[1]), c[2], target, limit);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    equal += comparePlan(*plan, plan->conflicts, plan->scratchBytes, target, limit, want);
  }
  RecordProperty("equal_cost", static_cast<int>(equal));
  EXPECT_GT(equal, 0u);
}

// Tiles of m * 2^k: the plan is the cheapest for all repetitions.
TEST(GoldenPlanner, TileConversions) {
  const auto &list = golden().at("tile_conversions");
  ASSERT_GE(list.size(), 126u);
  unsigned equal = 0, several = 0;
  for (const auto &c : list) {
    SCOPED_TRACE(c.dump());
    const auto counts = c[2].get<std::vector<std::uint32_t>>();
    const TileLayout source = unwrap(TileLayout::create(goldenLayout(c[0]), counts));
    const TileLayout destination = unwrap(TileLayout::create(goldenLayout(c[1]), counts));
    const Target &target = targetOf(c[4]);
    const auto limit = c[5].get<std::uint64_t>();
    const auto &want = c[6];
    auto plan = planTileConversion(source, destination, c[3], target, limit);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    ASSERT_EQ(plan->core.repetitions, source.repetitions());
    if (comparePlan(plan->core, plan->conflicts, plan->scratchBytes, target, limit, want)) {
      ++equal;
      EXPECT_EQ(plan->core.shuffles, want.value("shuffles", 0u)); // of one repetition
      EXPECT_EQ(plan->core.selects, want.value("selects", 0u));
      EXPECT_EQ(plan->wavefronts, want.value("wavefronts", std::uint64_t(0))); // of all
    }
    several += plan->core.passes == 1 && plan->core.perRound > 1;
    EXPECT_EQ(kiln::test::runPlan(plan->core, source.core(), destination.core()).error, "");
  }
  RecordProperty("equal_cost", static_cast<int>(equal));
  EXPECT_GT(equal, list.size() / 2);
  EXPECT_GT(several, 10u);
}

TEST(GoldenPlanner, SkippingFormPairsChangesNothing) {
  // planConversion leaves out pairs of forms that cannot win; planEveryConversion works out all of them.
  auto compare = [](const nlohmann::json &source, const nlohmann::json &destination, unsigned bits,
                    const Target &target, std::uint64_t limit, unsigned repetitions) {
    const LinearLayout from = goldenLayout(source), to = goldenLayout(destination);
    auto plan = planConversion(from, to, bits, target, PlanOptions{.scratchBytes = limit, .repetitions = repetitions});
    auto all = planEveryConversion(from, to, bits, target, limit, repetitions);
    ASSERT_TRUE(plan.ok() && all.ok());
    ASSERT_FALSE(all->empty());
    const ConversionPlan *best = &all->front();
    for (const ConversionPlan &p : *all)
      if (p.cost < best->cost && p.strategy != Strategy::SharedScalar)
        best = &p;
    EXPECT_EQ(best->cost, plan->cost);
  };
  const auto &list = golden().at("conversions"), &tiles = golden().at("tile_conversions");
  for (std::size_t i = 0; i < list.size(); i += kiln::test::pick(4, 1)) {
    const auto &c = list[i];
    SCOPED_TRACE(c.dump());
    compare(c[0], c[1], c[2], targetOf(c[3]), c[4], 1);
  }
  for (std::size_t i = 0; i < tiles.size(); i += kiln::test::pick(4, 1)) {
    const auto &c = tiles[i];
    SCOPED_TRACE(c.dump());
    unsigned repetitions = 1;
    for (unsigned m : c[2])
      repetitions *= m;
    compare(c[0], c[1], c[3], targetOf(c[4]), c[5], repetitions);
  }
}

TEST(GoldenPlanner, LocalAccess) {
  const auto &list = golden().at("local");
  ASSERT_GE(list.size(), 200u);
  for (const auto &c : list) {
    SCOPED_TRACE(c.dump());
    LinearLayout layout = goldenLayout(c[0]);
    Coords shape = layout.shape();
    auto shared = lowerShared(sharedFromJson(c[1]), Sizes(shape.begin(), shape.end()), c[2]);
    ASSERT_TRUE(shared.ok()) << shared.status().toString();
    auto plan = planLocalAccess(layout, *shared, c[2], targetOf(c[3]), c[4] == "store");
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    const Access &a = plan->access;
    EXPECT_EQ(accessFormName(a.form), c[5].get<std::string>());
    EXPECT_EQ(a.bytes, c[6].get<unsigned>());
    EXPECT_EQ(a.instructions, c[7].get<unsigned>());
    EXPECT_EQ(a.wavefronts, c[8].get<unsigned>());
    EXPECT_EQ(a.ideal, c[9].get<unsigned>());
    double instructions = static_cast<double>(a.instructions), warps = layout.size(InDim::Warp);
    EXPECT_EQ(plan->cost, instructions * (a.wavefronts + 0.25) + 0.5 * a.constants);
    double storing = warps / (1u << std::popcount(a.warpPredicate));
    EXPECT_EQ(static_cast<double>(plan->wavefronts), storing * instructions * a.wavefronts);
    EXPECT_EQ(static_cast<double>(plan->conflicts), storing * instructions * (a.wavefronts - a.ideal));
  }
}

TEST(GoldenPlanner, Reductions) {
  const auto &list = golden().at("reductions");
  ASSERT_GE(list.size(), 50u);
  for (const auto &c : list) {
    SCOPED_TRACE(c.dump());
    auto plan = planReduction(goldenLayout(c[0]), c[1], c[2], targetOf(c[3]));
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    EXPECT_EQ(plan->registerSteps.size(), c[4].get<std::size_t>());
    EXPECT_EQ(plan->laneSteps.size(), c[5].get<std::size_t>());
    EXPECT_EQ(plan->crossSteps.size(), c[6].get<std::size_t>());
    EXPECT_EQ(plan->shuffles, c[7].get<unsigned>());
    EXPECT_EQ(plan->exchange ? plan->exchange->plan.scratchBytes : 0, c[8].get<std::uint64_t>());
    EXPECT_EQ(plan->result, goldenLayout(c[9]));
  }
}
