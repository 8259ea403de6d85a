// The axis analysis claims nothing that is not so.
#include "tests/analysis/AxisOracle.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

TEST(AxisSoundness, RandomProgramsHoldEveryFact) {
  unsigned values = 0, strong = 0;
  for (std::uint64_t seed = 0; seed < pick(300u, 8000u); ++seed) {
    const AxisCheck check = checkAxisFacts(seed);
    ASSERT_EQ(check.error, "") << "seed " << seed;
    values += check.values;
    strong += check.strong;
  }
  // The programs are no desert: most values have a fact to be wrong about.
  EXPECT_GT(strong, values / 2);
}

TEST(AxisSoundness, StrongerClaimsAreNoticed) {
  for (AxisFault fault : {AxisFault::Contiguity, AxisFault::Divisibility, AxisFault::Constancy}) {
    unsigned noticed = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed)
      noticed += !checkAxisFacts(seed, fault).error.empty();
    EXPECT_GT(noticed, 30u) << "fault " << static_cast<int>(fault);
  }
}

} // namespace
} // namespace kiln::test
