// Property 13: access to buffers of a given layout is correct, its wavefronts are those of the bank simulation.
#include "compiler/layout/LocalAccess.h"
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

/// A bijection of offsets and elements: unit vectors in random order, then sheared.
LinearLayout randomBijection(Random &random, std::span<const std::uint32_t> shape, unsigned n) {
  std::vector<BitVector> offsets;
  for (unsigned i = 0; i < n; ++i)
    offsets.push_back(unitVector(i));
  random.shuffle(offsets);
  for (unsigned count = n >= 2 ? random.below(6) : 0; count > 0; --count) {
    unsigned i = random.below(n), j = (i + random.between(1, n - 1)) % n;
    offsets[i] ^= offsets[j];
  }
  return *LinearLayout::create(shape, {.offsets = offsets});
}

TEST(LocalAccess, MovesTheRightElements) {
  Random random(13);
  std::map<std::string, unsigned> seen;
  for (unsigned i = 0; i < pick(1200u, 20000u); ++i) {
    unsigned least = random.chance(50) ? 0 : 4, rowBits = random.between(least, 6),
             columnBits = random.between(least, 6);
    const std::array<std::uint32_t, 2> shape = {1u << rowBits, 1u << columnBits};
    const Sizes extents = {shape[0], shape[1]};
    unsigned bits = randomWidth(random), warpBits = random.between(0, 3);
    LinearLayout distributed = random.chance(40) ? *lower(randomEncoding(random, warpBits), extents)
                               : random.chance(50)
                                   ? *lower(randomFragment(random, warpBits), extents)
                                   : randomPermutation(random, rowBits + columnBits, warpBits, 0, shape);
    auto given = lowerShared(randomSharedEncoding(random, shape[0], shape[1], bits), extents, bits);
    ASSERT_TRUE(given.ok()) << given.status().toString();
    LinearLayout shared = random.chance(80) ? *given : randomBijection(random, shape, rowBits + columnBits);
    const Target &target = randomTarget(random, false);
    for (bool store : {false, true}) {
      SCOPED_TRACE(format("%s of %u bits on %s\n  %s\n  buffer %s", store ? "store" : "load", bits,
                          std::string(target.name).c_str(), distributed.text().c_str(), shared.text().c_str()));
      auto plan = planLocalAccess(distributed, shared, bits, target, store);
      ASSERT_TRUE(plan.ok()) << plan.status().toString();
      if (isMatrix(plan->access.form)) {
        EXPECT_TRUE(target.has(store ? Capability::Stmatrix : Capability::Ldmatrix));
      }
      LocalRun run = runLocalAccess(plan->access, distributed, shared, plan->storageBytes, plan->registerCopy);
      ASSERT_EQ(run.error, "");
      ASSERT_EQ(run.wavefronts, plan->wavefronts);
      ASSERT_EQ(run.conflicts, plan->conflicts);
      ++seen[std::string(accessFormName(plan->access.form))];
      seen["with conflicts"] += plan->conflicts > 0;

      // The oracle must notice a wrong access: one bit of an offset that some instruction uses (those of vector
      // directions are implied by the vector).
      Access wrong = plan->access;
      Mask used = 0;
      for (Mask direction : wrong.instruction)
        used ^= direction;
      if (shared.totalBits() == 0 || wrong.lanePredicate)
        continue;
      std::vector<Mask> *list = isMatrix(wrong.form) ? &wrong.rowOffset : &wrong.lane;
      unsigned column = random.below(static_cast<unsigned>(list->size()));
      if (used && random.chance(50)) {
        list = &wrong.registerOffset;
        column = static_cast<unsigned>(std::countr_zero(used));
      }
      (*list)[column] ^= 1u << random.below(shared.totalBits());
      LocalRun bad = runLocalAccess(wrong, distributed, shared, plan->storageBytes, plan->registerCopy);
      ++seen["mutants"];
      EXPECT_NE(bad.error, "") << "a wrong offset was not noticed";
    }
  }
  for (const auto &[name, count] : seen)
    std::printf("  %-20s%u\n", name.c_str(), count);
  EXPECT_GT(seen["ldmatrix"], 20u);
  EXPECT_GT(seen["ldmatrix.trans"], 5u);
  EXPECT_GT(seen["stmatrix"], 0u);
  EXPECT_GT(seen["stmatrix.trans"], 0u);
  EXPECT_GT(seen["mutants"], 500u);
}

} // namespace
} // namespace kiln::test
