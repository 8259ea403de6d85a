// The planner against the answers of the executable reference.  A better plan passes, a worse one fails: classes are
// equal; cost (recomputed here from the plan's counts) and conflicts are at most the reference's; strategy and barrier
// are equal whenever the cost is.
#include "compiler/layout/LocalAccess.h"
#include "compiler/layout/Planner.h"
#include "compiler/layout/Reduction.h"
#include "tests/layout/LayoutTestSupport.h"

#include "tests/support/TestTier.h"

#include <bit>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

const Target &targetOf(const nlohmann::json &name) {
  return **findTarget(name.get<std::string>());
}

/// The formulas of the layouts specification, 3.8, on the counts alone.
double recomputedCost(const ConversionPlan &p) {
  double warps = 1u << p.warpBits;
  switch (p.strategy) {
  case Strategy::None:
  case Strategy::RegisterPermute:
    return 0;
  case Strategy::MmaToMma:
  case Strategy::WarpShuffle:
    return warps * (p.shuffles + 0.5 * (p.selects + p.permutes)) +
           5.0 * static_cast<double>(p.shuffle.pick.size() + p.shuffle.place.size()) + (p.shuffles ? 24 : 0);
  default:
    break;
  }
  const SharedPlan &s = p.shared;
  bool cluster = s.scope == Scope::Cluster;
  double storing = (1u << p.warpBits) >> std::popcount(s.store.warpPredicate), far = cluster ? 4 : 1;
  double is = s.store.instructions, il = s.load.instructions, passes = p.passes;
  double barrier = s.scope == Scope::Warp ? 4 : cluster ? 200 : 20 + warps;
  return storing * is * s.store.wavefronts + far * warps * il * s.load.wavefronts + 0.25 * warps * (is + il) +
         0.5 * warps *
             (12 + s.store.constants + s.load.constants + p.permutes + (s.predicatedPasses ? 2 * (is + il) : 0)) +
         passes * (12 + 30 * far) + (2 * passes - (cluster ? 0 : 1)) * barrier;
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
    EXPECT_EQ(className(plan->cls), want.at("cls").get<std::string>());
    double cost = recomputedCost(*plan), wantCost = want.at("cost");
    EXPECT_EQ(cost, plan->cost);
    EXPECT_LE(cost, wantCost + 0.005); // the file rounds to 1/100; costs are multiples of 1/4
    EXPECT_LE(plan->conflicts, want.value("conflicts", std::uint64_t(0)));
    EXPECT_LE(plan->scratchBytes, limit);
    if (cost == wantCost) {
      ++equal;
      EXPECT_EQ(strategyName(plan->strategy), want.at("strategy").get<std::string>());
      EXPECT_EQ(barrierName(plan->barrier), want.value("barrier", "none"));
    }
    EXPECT_TRUE(plan->strategy != Strategy::MmaToMma || target.has(Capability::MmaToMma));
  }
  RecordProperty("equal_cost", static_cast<int>(equal));
  EXPECT_GT(equal, 0u);
}

TEST(GoldenPlanner, SkippingFormPairsChangesNothing) {
  // planConversion leaves out pairs of forms that cannot win; planEveryConversion works out all of them.
  const auto &list = golden().at("conversions");
  for (std::size_t i = 0; i < list.size(); i += kiln::test::pick(4, 1)) {
    const auto &c = list[i];
    SCOPED_TRACE(c.dump());
    LinearLayout source = goldenLayout(c[0]), destination = goldenLayout(c[1]);
    auto plan = planConversion(source, destination, c[2], targetOf(c[3]), c[4].get<std::uint64_t>());
    auto all = planEveryConversion(source, destination, c[2], targetOf(c[3]), c[4].get<std::uint64_t>());
    ASSERT_TRUE(plan.ok() && all.ok());
    ASSERT_FALSE(all->empty());
    const ConversionPlan *best = &all->front();
    for (const ConversionPlan &p : *all)
      if (p.cost < best->cost && p.strategy != Strategy::SharedScalar)
        best = &p;
    EXPECT_EQ(best->cost, plan->cost);
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
