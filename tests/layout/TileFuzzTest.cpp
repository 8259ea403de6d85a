// Tiles of m * 2^k, and all pairs of layout families: conversions whose plans are executed.
#include "compiler/layout/Planner.h"
#include "compiler/layout/TilePlanner.h"
#include "support/Text.h"
#include "tests/layout/PlanOracle.h"
#include "tests/layout/RandomLayouts.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace kiln::test {
namespace {

using namespace kiln::layout;

// Every m of the tile shapes.  The core's plan is executed and carried to each repetition; every register
// of every thread must then hold the coordinates that its layout names, element by element.
TEST(TileFuzz, RepetitionsElementByElement) {
  Random random(1113);
  std::map<std::string, unsigned> seen;
  for (unsigned i = 0; i < pick(400u, 8000u); ++i) {
    const std::int64_t counts[] = {1, 3, 5, 7, 9, 11, 13, 15};
    std::int64_t m = counts[i % 8];
    unsigned rowBits = random.between(0, 5), columnBits = random.between(0, 5), warpBits = random.between(0, 3);
    Sizes shape = {std::int64_t(1) << rowBits, std::int64_t(1) << columnBits};
    if (m % 3 == 0 && m > 3 && random.chance(50)) {
      shape[0] *= 3;
      shape[1] *= m / 3;
    } else {
      shape[random.below(2)] *= m;
    }
    bool fragments = random.chance(30);
    Encoding a = fragments ? randomFragment(random, warpBits) : randomEncoding(random, warpBits);
    Encoding b = fragments ? randomFragment(random, warpBits) : randomEncoding(random, warpBits);
    unsigned bits = randomWidth(random);
    const Target &target = randomTarget(random, false);
    std::uint64_t scratch = randomScratch(random);
    auto source = TileLayout::create(a, shape), destination = TileLayout::create(b, shape);
    ASSERT_TRUE(source.ok() && destination.ok());
    SCOPED_TRACE(format("%lldx%lld, %u bits, %s, %llu bytes of scratch\n  %s\n  %s", (long long)shape[0],
                        (long long)shape[1], bits, std::string(target.name).c_str(), (unsigned long long)scratch,
                        source->text().c_str(), destination->text().c_str()));
    auto plan = planTileConversion(*source, *destination, bits, target, scratch);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    OracleRun run = runPlan(plan->core, source->core(), destination->core(), {.seed = random.bits()});
    ASSERT_EQ(run.error, "");
    ASSERT_EQ(plan->core.repetitions, m);
    ++seen[format("m = %lld", (long long)m)];
    ++seen[std::string(strategyName(plan->core.strategy))];

    // Repetition by repetition.
    const unsigned from = source->core().size(InDim::Register), to = destination->core().size(InDim::Register);
    for (unsigned rep = 0; rep < plan->core.repetitions; ++rep) {
      for (unsigned h = 0; h < run.places.size(); ++h) {
        unsigned p = run.places[h];
        ASSERT_EQ(source->coords(rep * from + p % from, p / from % 32, p / from / 32, 0),
                  destination->coords(rep * to + h % to, h / to % 32, h / to / 32, 0));
      }
    }

    // Rounds: slabs that fit, and one barrier after each phase but the last.
    EXPECT_LE(plan->scratchBytes, scratch);
    auto less = planTileConversion(*source, *destination, bits, target, 1024);
    ASSERT_TRUE(less.ok()) << less.status().toString();
    if (scratch >= 1024) {
      EXPECT_GE(less->core.cost, plan->core.cost);
    }
    if (plan->core.passes == 0) {
      EXPECT_EQ(plan->barriers, 0u);
      EXPECT_EQ(plan->scratchBytes, 0u);
      continue;
    }
    unsigned stored = 0, phases = 0;
    for (unsigned round = 0; round < plan->core.rounds(); ++round) {
      stored += std::min(plan->core.perRound, plan->core.repetitions - stored);
      phases += 2 * plan->core.passes;
    }
    EXPECT_EQ(stored, plan->core.repetitions);
    EXPECT_EQ(plan->barriers, phases - (plan->core.barrier == Barrier::Cluster ? 0 : 1));
    EXPECT_EQ(plan->scratchBytes, plan->core.perRound * plan->core.scratchBytes);
    if (plan->core.passes > 1) {
      EXPECT_EQ(plan->core.perRound, 1u);
    }
    // Both halves of an exchange plan anew within the scratch that it was given.
    auto again = planTileConversion(*source, *destination, bits, target, plan->scratchBytes);
    ASSERT_TRUE(again.ok()) << again.status().toString();
    EXPECT_EQ(again->core.strategy, plan->core.strategy);
    EXPECT_EQ(again->core.cost, plan->core.cost);
    EXPECT_EQ(again->core.passes, plan->core.passes);
    EXPECT_EQ(again->core.perRound, plan->core.perRound);
    EXPECT_EQ(again->scratchBytes, plan->scratchBytes);
    EXPECT_EQ(again->core.shared.scope, plan->core.shared.scope);
    EXPECT_EQ(again->core.shared.offsetBasis, plan->core.shared.offsetBasis);
    EXPECT_EQ(again->core.shared.store.form, plan->core.shared.store.form);
    EXPECT_EQ(again->core.shared.load.form, plan->core.shared.load.form);
    seen["several slabs a round"] += plan->core.perRound > 1;
    seen["several rounds"] += plan->core.rounds() > 1;
  }
  for (const auto &[name, count] : seen)
    std::printf("  %-24s%u\n", name.c_str(), count);
  EXPECT_GT(seen["several slabs a round"], 10u);
  EXPECT_GT(seen["several rounds"], 2u);
}

/// The families of layouts that kernels use, for w warps, on 32x64.
std::vector<LinearLayout> families(unsigned w) {
  const std::int64_t warps = w, half = std::int64_t(1) << std::countr_zero(w) / 2;
  const Mma rows{.version = 2, .warpsPerCTA = {warps, 1}}, split{.version = 2, .warpsPerCTA = {warps / half, half}};
  const Blocked blocked{.sizePerThread = {1, 4}, .threadsPerWarp = {8, 4}, .warpsPerCTA = {warps, 1}, .order = {1, 0}};
  std::vector<Encoding> encodings = {
      blocked,
      Blocked{.sizePerThread = {4, 1}, .threadsPerWarp = {8, 4}, .warpsPerCTA = {1, warps}, .order = {0, 1}},
      Slice{.dim = 1,
            .parent = Encoding(Blocked{.sizePerThread = {1, 1, 2},
                                       .threadsPerWarp = {4, 2, 4},
                                       .warpsPerCTA = {warps, 1, 1},
                                       .order = {2, 0, 1}})},
      rows,
      split,
      DotOperand{.op = 0, .kWidth = 2, .parent = Encoding(rows)},
      DotOperand{.op = 1, .kWidth = 4, .parent = Encoding(split)},
      Transposed{.perm = {1, 0}, .parent = Encoding(rows)},
      Blocked{.sizePerThread = {1, 1}, .threadsPerWarp = {1, 32}, .warpsPerCTA = {1, warps}, .order = {1, 0}}};
  if (w >= 4) {
    const Mma wgmma{.version = 3, .warpsPerCTA = {warps, 1}, .instrN = 64};
    encodings.push_back(wgmma);
    encodings.push_back(DotOperand{.op = 0, .kWidth = 2, .parent = Encoding(wgmma)});
  }
  std::vector<LinearLayout> out;
  for (const Encoding &e : encodings)
    out.push_back(*lower(e, {32, 64}));
  // The first one on a sheared tensor: no encoding has these bases.
  std::vector<BitVector> columns[4];
  for (InDim d : hardwareDims)
    for (BitVector c : out[0].columns(d))
      columns[index(d)].push_back(c ^ (c >> 3 & 1) << 8 ^ (c >> 9 & 1) << 2);
  out.push_back(*LinearLayout::create(
      {32, 64},
      {.registers = columns[0], .lanes = columns[1], .warps = columns[2], .blocks = columns[3], .offsets = {}}));
  return out;
}

TEST(PlanMatrix, AllPairsOfFamilies) {
  std::map<std::string, unsigned> seen;
  unsigned number = 0, failures = 0;
  for (unsigned w : {1u, 2u, 4u, 8u, 16u}) {
    std::vector<LinearLayout> layouts = families(w);
    for (const LinearLayout &source : layouts)
      for (const LinearLayout &destination : layouts)
        for (unsigned bits : {8u, 16u, 32u})
          for (const char *name : {"sm_75", "sm_80", "sm_90a", "sm_120a"}) {
            if (!isFullTier() && number++ % 9)
              continue;
            auto plan = planConversion(source, destination, bits, **findTarget(name));
            ASSERT_TRUE(plan.ok()) << plan.status().toString();
            OracleRun run = runPlan(*plan, source, destination);
            EXPECT_EQ(run.error, "") << w << " warps, " << bits << " bits, " << name << "\n  " << source.text()
                                     << "\n  " << destination.text();
            failures += !run.error.empty();
            ASSERT_LT(failures, 5u);
            ++seen["all"];
            ++seen[std::string(strategyName(plan->strategy))];
            seen["with conflicts"] += plan->conflicts > 0;
          }
  }
  for (const auto &[name, count] : seen)
    std::printf("  %-24s%u\n", name.c_str(), count);
}

} // namespace
} // namespace kiln::test
