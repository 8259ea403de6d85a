// Plans as text and JSON: every golden plan has both; the JSON parses and says what the plan says.
#include "compiler/layout/Explain.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/support/TestTier.h"

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

nlohmann::json parsed(const std::string &text) {
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << text;
  return json;
}

bool contains(const std::string &text, const std::string &what) {
  return text.find(what) != std::string::npos;
}

} // namespace

TEST(Explain, GoldenConversions) {
  const auto &list = golden().at("conversions");
  for (std::size_t i = 0; i < list.size(); i += kiln::test::pick(5, 1)) {
    const auto &c = list[i];
    SCOPED_TRACE(c.dump());
    const Target &target = **findTarget(c[3].get<std::string>());
    auto plan = planConversion(goldenLayout(c[0]), goldenLayout(c[1]), c[2], target, c[4].get<std::uint64_t>());
    ASSERT_TRUE(plan.ok());
    std::string text = explain(*plan);
    EXPECT_TRUE(text.starts_with(std::string(strategyName(plan->strategy)) + ":")) << text;
    EXPECT_TRUE(contains(text, "class " + std::string(className(plan->cls)))) << text;
    EXPECT_TRUE(contains(text, "target " + plan->target)) << text;
    for (const Rejected &r : plan->rejected)
      EXPECT_TRUE(contains(text, "not " + r.strategy + ": " + r.reason)) << text;
    if (plan->passes) {
      EXPECT_TRUE(contains(text, "scratch: " + std::to_string(plan->scratchBytes) + " bytes")) << text;
      EXPECT_TRUE(contains(text, std::to_string(plan->conflicts) + " of them bank conflicts")) << text;
      EXPECT_TRUE(contains(text, std::string(accessFormName(plan->shared.load.form)) + ",")) << text;
    }

    auto json = parsed(toJson(*plan));
    EXPECT_EQ(json.at("strategy"), strategyName(plan->strategy));
    EXPECT_EQ(json.at("class"), className(plan->cls));
    EXPECT_EQ(json.at("cost"), plan->cost);
    EXPECT_EQ(json.at("conflicts"), plan->conflicts);
    EXPECT_EQ(json.at("scratchBytes"), plan->scratchBytes);
    EXPECT_EQ(json.at("barrier"), barrierName(plan->barrier));
    ASSERT_EQ(json.at("rejected").size(), plan->rejected.size());
    for (std::size_t k = 0; k < plan->rejected.size(); ++k)
      EXPECT_EQ(json["rejected"][k].at("reason"), plan->rejected[k].reason);
    EXPECT_EQ(json.contains("shared"), plan->passes > 0);
    EXPECT_EQ(json.contains("shuffle"),
              plan->strategy == Strategy::MmaToMma || plan->strategy == Strategy::WarpShuffle);
    if (plan->passes) {
      EXPECT_EQ(json["shared"].at("offsetBasis").get<std::vector<Mask>>(), plan->shared.offsetBasis);
      EXPECT_EQ(json["shared"].at("load").at("wavefronts"), plan->shared.load.wavefronts);
      EXPECT_EQ(json["shared"].at("load").at("lane").get<std::vector<Mask>>(), plan->shared.load.lane);
      EXPECT_EQ(json["shared"].at("store").at("instruction").get<std::vector<Mask>>(), plan->shared.store.instruction);
    }
    if (json.contains("shuffle")) {
      ASSERT_EQ(json["shuffle"].at("rounds").size(), plan->shuffle.rounds.size());
      EXPECT_EQ(json["shuffle"].at("pick").size(), plan->shuffle.pick.size());
      EXPECT_EQ(json["shuffle"].at("laneColumns").get<std::vector<Mask>>(), plan->shuffle.laneColumns);
    }
  }
}

TEST(Explain, OtherPlans) {
  const Target &target = **findTarget("sm_90a");
  Encoding accumulator = Mma{.version = 3, .warpsPerCTA = {4, 1}, .instrN = 32};
  Encoding rows = Blocked{.sizePerThread = {1, 8}, .threadsPerWarp = {8, 4}, .warpsPerCTA = {4, 1}, .order = {1, 0}};
  TileLayout source = unwrap(TileLayout::create(accumulator, {64, 96})),
             destination = unwrap(TileLayout::create(rows, {64, 96}));
  auto tile = planTileConversion(source, destination, 16, target);
  ASSERT_TRUE(tile.ok());
  EXPECT_TRUE(contains(explain(*tile), "3 repetitions of the core")) << explain(*tile);
  EXPECT_EQ(parsed(toJson(*tile)).at("repetitions"), 3);
  EXPECT_EQ(parsed(toJson(*tile)).at("core").at("strategy"), "shared");

  LinearLayout layout = unwrap(lower(accumulator, {64, 64}));
  LinearLayout buffer = unwrap(lowerShared(Tma{.swizzle = 128}, {64, 64}, 16));
  auto local = planLocalAccess(layout, buffer, 16, target, true);
  ASSERT_TRUE(local.ok());
  EXPECT_TRUE(contains(explain(*local), "stmatrix, 16 bytes a lane")) << explain(*local);
  auto json = parsed(toJson(*local));
  EXPECT_EQ(json.at("operation"), "store");
  EXPECT_EQ(json.at("access").at("form"), "stmatrix");
  EXPECT_FALSE(json.at("rejected").empty());

  auto reduction = planReduction(unwrap(lower(accumulator, {64, 64})), 0, 32, target);
  ASSERT_TRUE(reduction.ok());
  std::string text = explain(*reduction);
  EXPECT_TRUE(contains(text, "order of combination")) << text;
  EXPECT_TRUE(contains(text, "4 partial results of different warps")) << text;
}
