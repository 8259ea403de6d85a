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

/// A group's heads are rows of one tile: tiles that a group fills, that it does not divide, of several groups' tokens.
TEST_P(AttentionDecode, Groups) {
  unsigned number = 0;
  for (const std::int64_t group : {1, 4, 8, 5, 20})
    for (const std::int64_t tokens : {1, 7}) {
      if (!chosen(number++, 5))
        continue;
      DecodeProblem p = decoding(tokens, {90, 33});
      p.of.heads = 2 * group, p.of.keyHeads = 2, p.of.causal = true, p.of.alibi = true;
      both(p);
      p.of.sink = true, p.of.softcap = 15, p.of.scale = 0.125f;
      both(p);
    }
}

TEST_P(AttentionDecode, Pages) {
  unsigned number = 0;
  for (const std::int64_t page : {1, 4, 16, 128, 5})
    for (const std::int64_t splits : {1, 3}) {
      if (!chosen(number++, 5))
        continue;
      DecodeProblem p = decoding(2, {0, 1, 77, 259}, splits == 1 ? DType::BF16 : DType::F16);
      p.pageSize = page, p.splits = splits, p.of.causal = true;
      both(p);
    }
}

TEST_P(AttentionDecode, Splits) {
  unsigned number = 0;
  for (const std::int64_t splits : {1, 2, 3, 0, 256})
    for (unsigned mask = 0; mask < 3; ++mask) {
      if (!chosen(number++, 7))
        continue;
      DecodeProblem p = decoding(mask ? 9 : 1, {0, 1, 130, 300});
      p.splits = splits, p.of.sink = mask == 1, p.of.causal = mask == 1;
      if (mask == 2)
        p.of.left = 50, p.of.right = 0;
      both(p);
    }
}

TEST_P(AttentionDecode, HeadDims) {
  unsigned number = 0;
  for (const auto &[dim, dimV] : headDimsToTry)
    for (const std::int64_t page : {0, 16}) {
      if (!chosen(number++, 8))
        continue;
      DecodeProblem p = decoding(3, {70, 131});
      p.of.dim = dim, p.of.dimV = dimV, p.of.causal = true, p.pageSize = page, p.splits = 2;
      both(p);
    }
}

TEST_P(AttentionDecode, NewRows) {
  unsigned number = 0;
  for (const std::int64_t tokens : {1, 3, 40})
    for (const std::int64_t page : {0, 16, 64})
      for (const std::int64_t rotary : {0, 32, 64}) {
        if (!chosen(number++, 9))
          continue;
        DecodeProblem p = decoding(tokens, {0, 1, 60, 200}, rotary ? DType::BF16 : DType::F16);
        p.newTokens = tokens, p.of.keys += tokens, p.pageSize = page, p.rotary = rotary;
        p.interleaved = rotary && tokens == 3, p.anglesAsQ = page == 16, p.of.causal = tokens != 3,
        p.splits = number % 3;
        both(p);
      }
}

/// Columns that are rotated among those of a head; more queries than new rows.
TEST_P(AttentionDecode, RotaryWidths) {
  unsigned number = 0;
  for (const auto &[dim, rotary] :
       {std::pair<std::int64_t, std::int64_t>{16, 16}, {80, 48}, {96, 96}, {128, 112}, {192, 64}, {256, 240}})
    for (const bool interleaved : {false, true}) {
      if (!chosen(number++, 6))
        continue;
      DecodeProblem p = decoding(4, {0, 37}, interleaved ? DType::F16 : DType::BF16);
      p.of.dim = dim, p.of.dimV = 64, p.rotary = rotary, p.interleaved = interleaved, p.newTokens = 2;
      p.of.causal = dim != 96, p.pageSize = dim == 128 ? 16 : 0;
      both(p);
    }
}

TEST_P(AttentionDecode, PlacesInTheCache) {
  for (const std::int64_t page : {0, 16}) {
    DecodeProblem p = decoding(2, {40, 0, 90});
    p.of.keys = 128, p.leftPad = {3, 20, 0}, p.pageSize = page, p.newTokens = 2, p.of.causal = true;
    if (page == 0)
      p.batchIndex = {4, 0, 2};
    both(p);
    p.newTokens = 0, p.lengths.clear();
    both(p);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionDecode, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
