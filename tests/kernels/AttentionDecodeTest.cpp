//===- AttentionDecodeTest.cpp - Attention over a cache: lengths, groups, pages, splits ===//
#include "tests/kernels/AttentionDecodeHarness.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

TEST_P(AttentionDecode, TokensAndLengths) {
  unsigned number = 0;
  for (const std::int64_t tokens : {1, 2, 8, 16, 33})
    for (unsigned mask = 0; mask < 3; ++mask) {
      if (!chosen(number++, 8))
        continue;
      DecodeProblem p = decoding(tokens, {0, 1, 77, 130}, mask % 2 ? DType::F16 : DType::BF16);
      p.of.causal = mask == 1;
      if (mask == 2)
        p.of.left = 40, p.of.right = 3;
      both(p);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionDecode, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
