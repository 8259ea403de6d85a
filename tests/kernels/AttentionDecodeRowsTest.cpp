//===- AttentionDecodeRowsTest.cpp - Attention over a cache: many rows of a key head, chunks of prompts ===//
#include "tests/kernels/AttentionDecodeHarness.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;

/// 128 rows: 16 tokens of 8 heads.
DecodeProblem manyRows(std::vector<std::int64_t> lengths, DType type = DType::BF16) {
  DecodeProblem p = decoding(16, std::move(lengths), type);
  p.of.heads = 8, p.of.dim = p.of.dimV = 64;
  return p;
}

/// Tiles of 128 keys: none, some of one, one whole, one and a bit, several.  All that is no key is NaN.  Each mask
/// where warps of their own copy.
TEST_P(AttentionDecode, ManyRows) {
  unsigned number = 0;
  for (const std::int64_t splits : {1, 3})
    for (unsigned mask = 0; mask < 4; ++mask) {
      if (!chosen(number++, 4) && !(isOneOf({2}) && splits == (mask % 2 ? 3 : 1)))
        continue;
      DecodeProblem p = manyRows({0, 1, 127, 128, 300}, mask % 2 ? DType::F16 : DType::BF16);
      p.splits = splits, p.of.causal = mask == 1;
      if (mask == 2)
        p.of.left = 140, p.of.right = 0, p.of.sink = true;
      if (mask == 3)
        p.batchIndex = {3, 0, 4, 1, 2}, p.of.alibi = true;
      both(p);
    }
}

/// New rows, rotated or not, which a launch before may have written.
TEST_P(AttentionDecode, ManyRowsWithNewOnes) {
  for (const std::int64_t rotary : {0, 32}) {
    DecodeProblem p = manyRows({0, 3, 127, 240}, rotary ? DType::BF16 : DType::F16);
    p.newTokens = rotary ? 16 : 21, p.of.keys += p.newTokens, p.rotary = rotary;
    p.of.causal = rotary || GetParam() % 2, p.splits = rotary ? 2 : 1;
    both(p);
  }
}

/// Without lengths the keys end where the cache does.
TEST_P(AttentionDecode, ManyRowsOfAFullCache) {
  DecodeProblem p = manyRows({150, 150});
  p.lengths.clear(), p.of.keys = 150, p.of.causal = true, p.splits = 1 + GetParam() % 2;
  both(p);
}

/// Blocks counted back from the last key without tensor maps as well: rows with a gap that 16 bytes do not divide, and
/// heads that warpgroups do not multiply.
TEST_P(AttentionDecode, ManyRowsOfOtherWidths) {
  unsigned number = 0;
  for (const std::int64_t dim : {8, 40, 80, 128, 64})
    if (chosen(number++, 4) || isOneOf({2})) {
      DecodeProblem p = manyRows({0, 150});
      p.of.dim = dim, p.of.dimV = dim == 128 ? 64 : dim, p.of.causal = true;
      p.of.pad = dim == 64 ? 1 : 8, p.of.around = 8;
      both(p);
    }
}

/// Where warpgroups multiply the copy engine fetches the cache's tiles, whatever the lengths; not from pages.
TEST_P(AttentionDecode, TheCopyEngineFetchesTilesForWarpgroups) {
  if (!on->emulated() || testName(deviceName()) != "sm_90a")
    return;
  const auto fetched = [&](const DecodeProblem &p) {
    const DecodeData d = randomDecodeData(p, random);
    const PreparedDecode call = prepare(*on->device, p, d, random);
    on->device->takeCounters();
    EXPECT_TRUE(on->device->record({.counters = true}).ok());
    run(call);
    EXPECT_TRUE(on->device->record({}).ok());
    std::uint64_t out = 0;
    for (const LaunchCounters &c : on->device->takeCounters())
      out += c.total.global[static_cast<unsigned>(AccessKind::BulkLoad)].requests;
    return out;
  };
  DecodeProblem p = manyRows({40, 200});
  EXPECT_GT(fetched(p), 0u);
  p.lengths.clear();
  EXPECT_GT(fetched(p), 0u);
  p.lengths = {40, 200};
  const std::uint64_t ofCached = fetched(p);
  p.newTokens = 1, p.of.keys += 1, p.rotary = 32;
  EXPECT_EQ(fetched(p), ofCached);
  p.pageSize = 16, p.newTokens = p.rotary = 0;
  EXPECT_EQ(fetched(p), 0u);
}

/// A chunk of a prompt: as many queries as new keys, more than a program has rows, with and without what came before;
/// the last query stands at the last key of each sequence.
TEST_P(AttentionDecode, ChunksOfPrompts) {
  unsigned number = 0;
  for (const bool append : {true, false})
    for (const std::int64_t page : {0, 16, 128}) {
      if (!chosen(number++, 4))
        continue;
      constexpr std::int64_t tokens = 160;
      DecodeProblem p = decoding(tokens, append ? std::vector<std::int64_t>{0, 37, 150}
                                                : std::vector<std::int64_t>{tokens, 3, tokens + 101});
      p.of.heads = 2, p.of.dim = p.of.dimV = 64, p.of.causal = true, p.pageSize = page;
      if (append)
        p.newTokens = tokens, p.of.keys += tokens, p.rotary = page == 16 ? 32 : 0;
      both(p);
    }
}

/// A cache of e4m3 with factors of each sequence and key head: few rows and many, pages, new rows, splits.
TEST_P(AttentionDecode, Eighths) {
  unsigned number = 0;
  for (const std::int64_t tokens : {1, 16})
    for (const std::int64_t page : {0, 16, 128})
      for (const std::int64_t splits : {1, 3}) {
        if (!chosen(number++, 6))
          continue;
        DecodeProblem p = decoding(tokens, {0, 1, 130, 300}, DType::F8E4M3);
        p.of.heads = 16, p.of.keyHeads = 2, p.of.dim = p.of.dimV = number % 2 ? 64 : 128;
        p.of.causal = tokens > 1, p.of.descale = true, p.pageSize = page, p.splits = splits;
        if (splits == 3)
          p.newTokens = 5, p.of.keys += 5, p.of.descale = page > 0;
        both(p);
      }
}

} // namespace
} // namespace kiln::test
