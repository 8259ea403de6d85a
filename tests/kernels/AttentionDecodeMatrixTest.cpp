//===- AttentionDecodeMatrixTest.cpp - Attention over a cache: options pairwise ---===//
//
// Of type, head dims, groups, tokens, mask, place in the cache, splits, new and rotated rows, cap, sink and slopes
// every two levels of two: against float64 and by the probe of the mask.  A GPU runs all of it; the emulators share it
// in the full tier, and take a sample each in the default tier.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionDecodeHarness.h"
#include "tests/kernels/Pairwise.h"

#include <array>

namespace kiln::test {
namespace {

enum Factor : std::uint8_t {
  OfType,
  OfDims,
  OfGroup,
  OfTokens,
  OfMask,
  OfPage,
  OfSplits,
  OfNew,
  OfRotary,
  OfSoftcap,
  OfSink,
  OfAlibi
};
using HeadDims = std::pair<std::int64_t, std::int64_t>;
constexpr std::array<HeadDims, 9> headDims = {
    {{64, 64}, {96, 96}, {128, 128}, {192, 192}, {256, 256}, {192, 128}, {40, 40}, {80, 80}, {8, 8}}};
constexpr std::array<std::int64_t, 4> groups = {1, 4, 8, 5}, tokens = {1, 3, 16, 2};
constexpr std::array<std::int64_t, 5> pages = {0, 1, 4, 16, 128}; // 0: none
constexpr std::array<std::int64_t, 4> splits = {1, 2, 3, 0};      // 0: chosen

TEST_P(AttentionDecode, PairsOfOptions) {
  const auto rows =
      pairwise({2, headDims.size(), groups.size(), tokens.size(), 3, pages.size(), splits.size(), 2, 3, 3, 2, 2});
  ASSERT_GE(rows.size(), headDims.size() * pages.size());
  for (unsigned number = 0; number < rows.size() && !HasFatalFailure(); ++number) {
    if (!shared(number, static_cast<unsigned>(rows.size() / 2)))
      continue;
    const auto &row = rows[number];
    DecodeProblem p = decoding(tokens[row[OfTokens]], {0, 1, 77, 150}, row[OfType] ? DType::F16 : DType::BF16);
    std::tie(p.of.dim, p.of.dimV) = headDims[row[OfDims]];
    p.of.heads = 2 * groups[row[OfGroup]], p.of.keyHeads = 2;
    p.of.causal = row[OfMask] == 1;
    if (row[OfMask] == 2)
      p.of.left = 40, p.of.right = 3;
    p.pageSize = pages[row[OfPage]], p.splits = splits[row[OfSplits]];
    if (row[OfNew])
      p.newTokens = p.of.queries, p.of.keys += p.newTokens;
    if (row[OfNew] && row[OfRotary] && p.of.dim >= 16) // angles are of new rows, at least 16 columns
      p.rotary = p.of.dim / 16 * 16, p.interleaved = row[OfRotary] == 2;
    p.of.softcap = std::array{0.0f, 15.0f, 50.0f}[row[OfSoftcap]];
    p.of.sink = row[OfSink], p.of.alibi = row[OfAlibi];
    both(p);
  }
}

/// The widest rows, all of them rotated: besides keys and values q and new rows fill the least shared memory that there
/// is (sm_89 and sm_120a).
TEST_P(AttentionDecode, WideRowsThatAreRotatedFit) {
  if (!isOneOf({1, 3}))
    return;
  for (const bool interleaved : {false, true}) {
    DecodeProblem p = decoding(16, {0, 77});
    p.of.dim = p.of.dimV = p.rotary = interleaved ? 192 : 256, p.interleaved = interleaved;
    p.of.heads = 8, p.of.keyHeads = 2, p.of.causal = true;
    p.newTokens = p.of.queries, p.of.keys += p.newTokens, p.pageSize = 16, p.splits = 1;
    both(p);
  }
}

} // namespace
} // namespace kiln::test
