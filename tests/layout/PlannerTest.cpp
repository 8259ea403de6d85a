// Conversions that kernels really make, by name: class, strategy, instructions, counts (layouts specification, 6.3).
#include "compiler/layout/Planner.h"
#include "compiler/layout/Explain.h"
#include "support/Text.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/layout/PlanOracle.h"

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

Encoding mma2(Sizes warps, std::int64_t instrN = 8) {
  return Mma{.version = 2, .warpsPerCTA = warps, .instrN = instrN};
}
Encoding wgmma(Sizes warps, std::int64_t instrN) {
  return Mma{.version = 3, .warpsPerCTA = warps, .instrN = instrN};
}
Encoding dot(std::int64_t op, const Encoding &parent, std::int64_t kWidth) {
  return DotOperand{.op = op, .kWidth = kWidth, .parent = EncodingRef(parent)};
}
Encoding blocked(Sizes size, Sizes threads, Sizes warps, Sizes order) {
  return Blocked{.sizePerThread = size, .threadsPerWarp = threads, .warpsPerCTA = warps, .order = order};
}
Encoding clustered(Sizes ctas) {
  return Blocked{.sizePerThread = {1, 4},
                 .threadsPerWarp = {8, 4},
                 .warpsPerCTA = {4, 1},
                 .order = {1, 0},
                 .cta = CtaSplit{.ctas = ctas, .split = ctas, .order = {1, 0}}};
}
Encoding transposed(const Encoding &parent) {
  return Transposed{.perm = {1, 0}, .parent = EncodingRef(parent)};
}
Encoding sliceOf(std::int64_t dim, const Encoding &parent) {
  return Slice{.dim = dim, .parent = EncodingRef(parent)};
}
/// A row vector: bases along dimension 1.
Encoding row(std::initializer_list<std::int64_t> registers, std::initializer_list<std::int64_t> lanes) {
  Linear linear;
  for (std::int64_t x : registers)
    linear.registers.push_back({0, x});
  for (std::int64_t x : lanes)
    linear.lanes.push_back({0, x});
  return linear;
}

struct Case {
  const char *name;
  Sizes shape;
  Encoding source, destination;
  unsigned bits;
  const char *target, *cls, *strategy;
  const char *how;    ///< "store.bytes / load.bytes", or "idx, quad", or "selects only"
  const char *counts; ///< "shuffles+selects", or "wavefronts, scratch, passes"
  std::uint64_t scratch = defaultScratchBytes;
};

std::vector<Case> namedCases() {
  Encoding c41 = mma2({4, 1}), c22 = mma2({2, 2}), d41 = wgmma({4, 1}, 64);
  Encoding row4 = blocked({1, 4}, {8, 4}, {4, 1}, {1, 0}), row8 = blocked({1, 8}, {8, 4}, {4, 1}, {1, 0});
  Encoding col8 = blocked({8, 1}, {4, 8}, {1, 4}, {0, 1}), col4 = blocked({4, 1}, {4, 8}, {1, 4}, {0, 1});
  return {
      {"same layout", {64, 64}, row4, row4, 16, "sm_80", "none", "none", "", ""},
      {"flash attention P, 16 bit", {128, 64}, c41, dot(0, c41, 2), 16, "sm_80", "none", "none", "", ""},
      {"P of fp8, wgmma", {64, 64}, d41, dot(0, d41, 4), 8, "sm_90a", "lane", "warp_shuffle", "idx, quad", "8+16"},
      {"P of fp8, mma", {64, 64}, c41, dot(0, c41, 4), 8, "sm_89", "lane", "mma_to_mma", "idx, quad", "8+16"},
      {"the same, refused", {64, 64}, c41, dot(0, c41, 4), 8, "sm_120a", "lane", "warp_shuffle", "idx, quad", "8+16"},
      {"P of fp8, kWidth 2 on both", {64, 64}, c41, dot(0, c41, 2), 8, "sm_89", "none", "none", "", ""},
      {"P^T as operand B",
       {64, 64},
       transposed(c41),
       dot(1, mma2({1, 4}, 16), 2),
       16,
       "sm_80",
       "register",
       "register_permute",
       "",
       ""},
      {"dot, transpose, dot",
       {64, 64},
       transposed(c41),
       dot(0, c41, 2),
       16,
       "sm_80",
       "warp",
       "shared",
       "st.4 / ldmatrix.trans.16",
       "128, 8192, 1"},
      {"the same, stmatrix",
       {64, 64},
       transposed(d41),
       dot(0, d41, 2),
       16,
       "sm_90a",
       "warp",
       "shared",
       "stmatrix.16 / ldmatrix.trans.16",
       "128, 8192, 1"},
      {"warps 2x2 to 4x1", {64, 64}, c22, c41, 16, "sm_80", "warp", "shared", "st.16 / ld.16", "128, 8192, 1"},
      {"chained, 8 warps 8x1", {64, 64}, mma2({8, 1}), dot(0, mma2({8, 1}), 2), 16, "sm_80", "none", "none", "", ""},
      {"chained, 8 warps 4x2",
       {64, 64},
       mma2({4, 2}),
       dot(0, mma2({4, 2}), 2),
       16,
       "sm_80",
       "warp",
       "shared",
       "st.16 / ld.16",
       "192, 8192, 1"},
      {"16x1 over 128 threads",
       {16, 1},
       blocked({1, 1}, {32, 1}, {4, 1}, {1, 0}),
       blocked({1, 1}, {1, 32}, {1, 4}, {1, 0}),
       32,
       "sm_80",
       "lane",
       "warp_shuffle",
       "idx, warp",
       "16+0"},
      {"row statistics to a vector",
       {64},
       sliceOf(1, c41),
       blocked({1}, {32}, {4}, {0}),
       32,
       "sm_80",
       "warp",
       "shared",
       "st.8 / ld.4",
       "12, 256, 1"},
      {"transpose, 8 bit",
       {64, 64},
       blocked({1, 16}, {8, 4}, {4, 1}, {1, 0}),
       blocked({16, 1}, {4, 8}, {1, 4}, {0, 1}),
       8,
       "sm_80",
       "warp",
       "shared",
       "st.1 / ld.16",
       "160, 4096, 1"},
      {"transpose, 16 bit",
       {64, 64},
       row8,
       col8,
       16,
       "sm_80",
       "warp",
       "shared",
       "st.16 / ldmatrix.trans.16",
       "128, 8192, 1"},
      {"transpose, 32 bit", {64, 64}, row4, col4, 32, "sm_80", "warp", "shared", "st.16 / ld.16", "256, 16384, 1"},
      {"load to operand A",
       {64, 64},
       row8,
       dot(0, c22, 2),
       16,
       "sm_80",
       "warp",
       "shared",
       "st.16 / ldmatrix.16",
       "192, 8192, 1"},
      {"load to operand B, N contiguous",
       {64, 64},
       row8,
       dot(1, c22, 2),
       16,
       "sm_80",
       "warp",
       "shared",
       "st.16 / ldmatrix.trans.16",
       "192, 8192, 1"},
      {"epilogue, wgmma to row",
       {64, 64},
       d41,
       row8,
       16,
       "sm_90a",
       "warp",
       "shared",
       "st.16 / ldmatrix.16",
       "128, 8192, 1"},
      {"copy held by every warp",
       {32, 8},
       blocked({1, 8}, {32, 1}, {4, 1}, {1, 0}),
       blocked({1, 2}, {32, 1}, {1, 4}, {1, 0}),
       32,
       "sm_80",
       "thread",
       "warp_shuffle",
       "selects only",
       "0+6"},
      {"warps pick registers",
       {64, 64},
       dot(0, c22, 2),
       c22,
       16,
       "sm_80",
       "thread",
       "mma_to_mma",
       "selects only",
       "0+16"},
      {"one mixed swap",
       {1, 128},
       row({1, 2}, {4, 8, 16, 32, 64}),
       row({1, 4}, {2, 8, 16, 32, 64}),
       32,
       "sm_75",
       "lane",
       "warp_shuffle",
       "bfly, quad",
       "4+4"},
      {"two mixed swaps, packed",
       {1, 256},
       row({1, 2, 4}, {8, 16, 32, 64, 128}),
       row({1, 8, 16}, {2, 4, 32, 64, 128}),
       16,
       "sm_75",
       "lane",
       "warp_shuffle",
       "bfly, quad",
       "12+12"},
      {"three mixed swaps",
       {1, 256},
       row({1, 2, 4}, {8, 16, 32, 64, 128}),
       row({8, 16, 32}, {1, 2, 4, 64, 128}),
       32,
       "sm_75",
       "lane",
       "shared",
       "st.16 / ldmatrix.16",
       "16, 1024, 1"},
      {"lanes pick registers",
       {1, 128},
       row({1, 2}, {4, 8, 16, 32, 64}),
       row({1, 2}, {5, 10, 16, 32, 64}),
       32,
       "sm_75",
       "thread",
       "warp_shuffle",
       "selects only",
       "0+8"},
      {"broadcast from one lane each",
       {1, 32},
       row({}, {1, 2, 4, 8, 16}),
       row({1, 2, 4, 8, 16}, {0, 0, 0, 0, 0}),
       32,
       "sm_75",
       "lane",
       "warp_shuffle",
       "idx, warp",
       "32+0"},
      {"scratch in passes",
       {128, 256},
       blocked({1, 4}, {1, 32}, {4, 1}, {1, 0}),
       blocked({1, 4}, {4, 8}, {4, 1}, {1, 0}),
       32,
       "sm_80",
       "warp",
       "shared",
       "st.16 / ld.16",
       "2048, 32768, 4"},
      {"scratch limit 1 KiB",
       {64, 64},
       row4,
       col4,
       32,
       "sm_80",
       "warp",
       "shared_scalar",
       "st.4 / ld.4",
       "24576, 1024, 16",
       1024},
      {"two blocks, split dim changes",
       {64, 64},
       clustered({2, 1}),
       clustered({1, 2}),
       16,
       "sm_90a",
       "block",
       "shared",
       "st.4 / ld.2",
       "96, 4096, 1"},
  };
}

std::string howText(const ConversionPlan &p) {
  if (p.passes) {
    auto side = [](const Access &a) { return format("%s.%u", std::string(accessFormName(a.form)).c_str(), a.bytes); };
    return side(p.shared.store) + " / " + side(p.shared.load);
  }
  if (p.strategy != Strategy::MmaToMma && p.strategy != Strategy::WarpShuffle)
    return "";
  if (!p.shuffles)
    return "selects only";
  return std::string(p.shuffle.butterfly ? "bfly" : "idx") + (p.shuffle.lanesTouched & ~3u ? ", warp" : ", quad");
}

std::string countsText(const ConversionPlan &p) {
  if (p.passes)
    return format("%llu, %llu, %u", (unsigned long long)p.wavefronts, (unsigned long long)p.scratchBytes, p.passes);
  if (p.strategy == Strategy::MmaToMma || p.strategy == Strategy::WarpShuffle)
    return format("%u+%u", p.shuffles, p.selects);
  return "";
}

const Target &targetNamed(const char *name) {
  return **findTarget(name);
}

std::string reasonAgainst(const ConversionPlan &plan, std::string_view strategy) {
  for (const Rejected &r : plan.rejected)
    if (r.strategy == strategy)
      return r.reason;
  return "";
}

} // namespace

TEST(Planner, NamedCases) {
  for (const Case &c : namedCases()) {
    SCOPED_TRACE(c.name);
    LinearLayout source = unwrap(lower(c.source, c.shape)), destination = unwrap(lower(c.destination, c.shape));
    auto plan = planConversion(source, destination, c.bits, targetNamed(c.target), c.scratch);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    EXPECT_EQ(className(plan->cls), c.cls);
    EXPECT_EQ(strategyName(plan->strategy), c.strategy);
    EXPECT_EQ(howText(*plan), c.how);
    EXPECT_EQ(countsText(*plan), c.counts);
    EXPECT_EQ(plan->conflicts, c.scratch == 1024 ? 20480u : 0u);
    EXPECT_EQ(kiln::test::runPlan(*plan, source, destination).error, "");
    // Every strategy is either taken or listed with a reason.
    for (Strategy s : {Strategy::None, Strategy::RegisterPermute, Strategy::MmaToMma, Strategy::WarpShuffle,
                       Strategy::Shared, Strategy::SharedScalar}) {
      std::string name(strategyName(s));
      bool listed = s == plan->strategy;
      for (const Rejected &r : plan->rejected)
        listed |= r.strategy.starts_with(name) && !r.reason.empty();
      EXPECT_TRUE(listed) << name;
    }
  }
}

TEST(Planner, CapabilityDecidesMmaToMma) {
  Encoding accumulator = mma2({4, 1});
  LinearLayout source = unwrap(lower(accumulator, {64, 64})),
               destination = unwrap(lower(dot(0, accumulator, 4), {64, 64}));
  const Target &ampere = targetNamed("sm_89");
  auto taken = planConversion(source, destination, 8, ampere);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->strategy, Strategy::MmaToMma);

  Target without = ampere; // the same name: only the capability differs
  without.capabilities.erase(Capability::MmaToMma);
  auto refused = planConversion(source, destination, 8, without);
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->strategy, Strategy::WarpShuffle);
  EXPECT_EQ(reasonAgainst(*refused, "mma_to_mma"), "target sm_89 lacks the capability mma_to_mma");
  EXPECT_NE(explain(*refused).find("not mma_to_mma: target sm_89 lacks the capability mma_to_mma"), std::string::npos);
  EXPECT_EQ(refused->cost, taken->cost);

  // Bit for bit the same movement: every destination register gets its value from the same place.
  auto a = kiln::test::runPlan(*taken, source, destination, {1, &ampere});
  auto b = kiln::test::runPlan(*refused, source, destination, {1, &without});
  EXPECT_EQ(a.error, "");
  EXPECT_EQ(b.error, "");
  EXPECT_EQ(a.places, b.places);

  Target hopper = targetNamed("sm_90a");
  hopper.capabilities.insert(Capability::MmaToMma);
  auto granted = planConversion(source, destination, 8, hopper);
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted->strategy, Strategy::MmaToMma);
}

TEST(Planner, CapabilityDecidesMatrixForms) {
  Encoding row8 = blocked({1, 8}, {8, 4}, {4, 1}, {1, 0}), accumulator = mma2({2, 2});
  LinearLayout source = unwrap(lower(row8, {64, 64})), destination = unwrap(lower(dot(0, accumulator, 2), {64, 64}));
  Target target = targetNamed("sm_80");
  auto with = planConversion(source, destination, 16, target);
  ASSERT_TRUE(with.ok());
  EXPECT_EQ(with->shared.load.form, AccessForm::Ldmatrix);
  target.capabilities.erase(Capability::Ldmatrix);
  auto without = planConversion(source, destination, 16, target);
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without->shared.load.form, AccessForm::Ld);
  EXPECT_GT(without->cost, with->cost);
  EXPECT_EQ(kiln::test::runPlan(*without, source, destination, {1, &target}).error, "");
}

TEST(Planner, OperandsWantRegistersSideBySide) {
  // Four rows of two f32 by one 16-byte load lie where no tf32 instruction wants them; ldmatrix puts them there.
  const LinearLayout source = unwrap(lower(blocked({1, 8}, {4, 8}, {8, 1}, {1, 0}), {64, 64})),
                     destination = unwrap(lower(dot(0, mma2({4, 2}, 16), 1), {64, 64}));
  const Target &target = targetNamed("sm_90");
  const auto any = planConversion(source, destination, 32, target),
             operand = planConversion(source, destination, 32, target, PlanOptions{.neighbours = true});
  ASSERT_TRUE(any.ok() && operand.ok());
  EXPECT_TRUE(howText(*any).ends_with("/ ld.16")) << howText(*any);
  EXPECT_TRUE(howText(*operand).ends_with("/ ldmatrix.16")) << howText(*operand);
  EXPECT_LE(any->cost, operand->cost);
  EXPECT_EQ(any->wavefronts, operand->wavefronts);
  EXPECT_EQ(kiln::test::runPlan(*operand, source, destination).error, "");
}

TEST(Planner, ForcedStrategies) {
  Encoding accumulator = mma2({4, 1});
  LinearLayout source = unwrap(lower(accumulator, {64, 64})),
               destination = unwrap(lower(dot(0, accumulator, 4), {64, 64}));
  for (Strategy s : {Strategy::MmaToMma, Strategy::WarpShuffle, Strategy::Shared, Strategy::SharedScalar}) {
    auto plan = planConversion(source, destination, 8, targetNamed("sm_89"), PlanOptions{defaultScratchBytes, s});
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    EXPECT_EQ(plan->strategy, s);
    EXPECT_EQ(kiln::test::runPlan(*plan, source, destination).error, "");
  }
  auto none =
      planConversion(source, destination, 8, targetNamed("sm_89"), PlanOptions{defaultScratchBytes, Strategy::None});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("data moves between lanes"), std::string::npos) << none.status().message();
  // Even a conversion that moves nothing can be sent through shared memory.
  auto needless =
      planConversion(source, source, 8, targetNamed("sm_89"), PlanOptions{defaultScratchBytes, Strategy::Shared});
  ASSERT_TRUE(needless.ok());
  EXPECT_EQ(kiln::test::runPlan(*needless, source, source).error, "");
}
