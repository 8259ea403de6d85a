//===- AttentionBiasTest.cpp - What a bias adds to the logits, forward and backward ---===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

constexpr DType biasTypes[] = {DType::F32, DType::F16, DType::BF16};

class AttentionBias : public AttentionBackward {};

/// Every way to be the same for all sequences, heads, rows or keys; types, masks and groups of heads change with it.
Problem problemOf(unsigned pattern) {
  Problem p = with(70, 90, pattern % 2 ? DType::F16 : DType::BF16);
  p.biasOf = pattern, p.biasType = biasTypes[pattern % 3];
  p.batch = 2, p.heads = 4, p.keyHeads = pattern % 3 == 1 ? 4 : 2;
  p.causal = pattern % 4 == 1;
  if (pattern % 4 == 2)
    p.left = 20, p.right = 9;
  p.softcap = pattern % 5 == 4 ? 15 : 0;
  p.scale = p.softcap > 0 ? 0.125f : 0;
  p.sink = pattern % 3 == 2, p.alibi = pattern % 7 == 5;
  return p;
}

TEST_P(AttentionBias, EveryPatternForward) {
  for (unsigned pattern = 0; pattern < 16; ++pattern)
    if (chosen(pattern, 8)) {
      const Problem p = problemOf(pattern);
      compare(p, randomData(p, random));
    }
}

TEST_P(AttentionBias, EveryPatternBackward) {
  for (unsigned pattern = 0; pattern < 16; ++pattern)
    if (chosen(pattern, 8))
      compareRandom(problemOf(pattern), pattern % 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionBias, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
