//===- AttentionMatrixTest.cpp - Attention forward: the specification's matrix -------===//
//
// Section 10: every combination of type, head dims, grouping of heads, mask, dense or packed, with the other options
// pairwise over them; every length of its list under every mask, dense and packed; every number of heads and groups;
// batches of random lengths.  Each case against float64 and by the probe of the mask.
//
// A GPU runs all of it.  The emulators share, in the full tier, what has at most 300 rows and 6 heads; in the default
// tier each takes a sample.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionHarness.h"
#include "tests/kernels/Pairwise.h"
#include "tests/support/TestTier.h"

#include <algorithm>
#include <array>

namespace kiln::test {
namespace {

using namespace kernels;
using Lengths = std::pair<std::int64_t, std::int64_t>; // queries, keys

/// The longest first: where the host's cores share the cases, none ends long after the others.
const std::vector<Lengths> allLengths = {
    {4224, 4224}, {4096, 4096}, {2048, 3577}, {1024, 1024}, {1024, 1023}, {1023, 1024}, {16, 20000},
    {512, 256},   {384, 256},   {640, 128},   {307, 256},   {257, 257},   {256, 256},   {64, 800},
    {200, 200},   {128, 217},   {108, 256},   {128, 192},   {113, 211},   {113, 203},   {128, 128},
    {113, 128},   {97, 97},     {64, 128},    {3, 1024},    {3, 799},     {799, 3},     {3, 513},
    {511, 1},     {1, 339},     {239, 1},     {1, 128},     {1, 3},       {2, 1},       {1, 1}};

std::vector<Lengths> lengthsUpTo(std::int64_t most) {
  std::vector<Lengths> out;
  for (const Lengths &l : allLengths)
    if (l.first <= most && l.second <= most)
      out.push_back(l);
  return out;
}

/// Masks by number: none, causal, windows in turn.
constexpr unsigned masks = 3;
void setMask(Problem &p, unsigned mask, unsigned number) {
  constexpr std::pair<std::int64_t, std::int64_t> windows[] = {{37, 0}, {20, 9}, {0, 0}, {-1, 5}, {60, -1}};
  p.causal = mask == 1;
  if (mask == 2)
    std::tie(p.left, p.right) = windows[number % std::size(windows)];
}

/// Packed: the lengths, with an empty sequence before them and others after.
void setLengths(Problem &p, const Lengths &lengths, const Lengths &more, bool packed) {
  std::tie(p.queries, p.keys) = lengths;
  if (!packed)
    return;
  p.lengthsQ = {0, lengths.first, 1, more.first};
  p.lengthsK = {5, lengths.second, 0, more.second};
}

enum Factor : std::uint8_t { OfType, OfDims, OfHeads, OfMask, OfBatch, OfSoftcap, OfAlign, OfSink, OfAlibi, OfLse };
const std::vector<Lengths> headDims = {{64, 64},   {96, 96}, {128, 128}, {192, 192}, {256, 256},
                                       {192, 128}, {40, 40}, {80, 80},   {8, 8}};
const std::vector<unsigned> levels = {2, static_cast<unsigned>(headDims.size()), 3, masks, 2, 3, 2, 2, 2, 2};
constexpr std::size_t core = OfSoftcap; // factors before this one: every combination

TEST_P(AttentionForward, EveryCombinationOfTheCore) {
  const auto rows = pairwiseOver(levels, core);
  ASSERT_EQ(rows.size(), 2u * 9 * 3 * 3 * 2);
  const std::vector<Lengths> lengths = lengthsUpTo(on->emulated() ? 260 : 1024);
  std::vector<Problem> problems;
  for (unsigned number = 0; number < rows.size(); ++number) {
    if (!shared(number, 160))
      continue;
    const auto &row = rows[number];
    Problem p;
    p.type = row[OfType] ? DType::F16 : DType::BF16;
    std::tie(p.dim, p.dimV) = headDims[row[OfDims]];
    p.heads = row[OfHeads] == 0 ? 2 : row[OfHeads] == 1 ? 4 : 3;
    p.keyHeads = row[OfHeads] == 2 ? 1 : 2;
    setMask(p, row[OfMask], number);
    p.softcap = std::array{0.0f, 15.0f, 50.0f}[row[OfSoftcap]]; // the data is so large that scores reach it
    p.alignment = row[OfAlign] ? Alignment::TopLeft : Alignment::BottomRight;
    p.sink = row[OfSink];
    p.alibi = row[OfAlibi];
    p.lse = !row[OfLse];
    const auto at = [&](unsigned i) { return lengths[(number * 5 + i) % lengths.size()]; };
    setLengths(p, at(0), at(9), row[OfBatch]);
    problems.push_back(p);
  }
  ASSERT_FALSE(problems.empty());
  bothOfAll(problems);
}

TEST_P(AttentionForward, EveryLengthOfTheList) {
  std::vector<Problem> problems;
  unsigned number = 0;
  for (const Lengths &l : lengthsUpTo(on->emulated() ? 300 : 20000))
    for (unsigned mask = 0; mask < masks; ++mask)
      for (const bool packed : {false, true}) {
        ++number;
        if (!shared(number + number / 6, 80)) // else an emulator would meet three of the six
          continue;
        Problem p;
        p.type = number & 2 ? DType::F16 : DType::BF16;
        setMask(p, mask, number);
        p.alignment = number % 5 ? Alignment::BottomRight : Alignment::TopLeft;
        p.heads = number % 3 ? 2 : 1;
        p.keyHeads = 1;
        setLengths(p, l, {l.second / 2, l.first}, packed);
        problems.push_back(p);
      }
  ASSERT_FALSE(problems.empty());
  bothOfAll(problems);
}

/// Long ones with wide heads; on emulators the shorter ones, dealt out to the targets: one each in the default tier.
TEST_P(AttentionForward, LongSequencesOfWideHeads) {
  std::vector<Problem> problems;
  unsigned number = 0;
  for (const Lengths &l : {Lengths{1023, 1024}, {64, 800}, {3, 1024}, {640, 128}, {4096, 4096}, {2048, 3577}})
    for (const auto &[dim, dimV] : {Lengths{128, 128}, {192, 128}, {256, 256}}) {
      const unsigned one = number++;
      if (on->emulated() && (one % 4 != GetParam() || one < pick(6u, 0u) || one >= pick(10u, 12u)))
        continue;
      Problem p = with(l.first, l.second, one % 2 ? DType::F16 : DType::BF16);
      p.dim = dim, p.dimV = dimV, p.causal = one % 3 != 0;
      p.heads = p.keyHeads = 1;
      problems.push_back(p);
    }
  ASSERT_FALSE(problems.empty());
  std::reverse(problems.begin(), problems.end()); // the longest first
  bothOfAll(problems);
}

/// Groups of g query heads for so many key heads.
TEST_P(AttentionForward, EveryNumberOfHeads) {
  std::vector<Problem> problems;
  unsigned number = 0;
  for (const std::int64_t g : {1, 2, 3, 4, 5, 8, 16})
    for (const std::int64_t keyHeads : {1, 2, 3, 5, 6, 7, 16}) {
      if (on->emulated() && g * keyHeads > 6)
        continue;
      const unsigned one = number++;
      if (!shared(one, 12))
        continue;
      Problem p = with(20, 70, one % 2 ? DType::F16 : DType::BF16);
      p.heads = g * keyHeads, p.keyHeads = keyHeads;
      p.batch = 1 + one % 3;
      p.causal = one % 2;
      p.sink = one % 3 == 0, p.alibi = one % 5 == 0;
      if (one % 4 == 3)
        p.lengthsQ = {9, 0, 30}, p.lengthsK = {70, 3, 20};
      problems.push_back(p);
    }
  ASSERT_FALSE(problems.empty());
  bothOfAll(problems);
}

/// Batches of 9 with random lengths, empty sequences first, last and every fifth; lengths that are used, with NaN
/// after them; outputs with poison between and around their rows.
TEST_P(AttentionForward, RandomBatchesOf9) {
  std::vector<Problem> problems;
  const unsigned rounds = on->emulated() ? 1 : 4;
  for (unsigned number = 0; number < 36 * rounds; ++number) {
    std::mt19937_64 engine(number);
    if (!shared(number, 36))
      continue;
    const std::int64_t longest = on->emulated() ? pick(40, 100) : std::array{70, 200, 700, 1500}[number / 36];
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n));
    };
    Problem p;
    p.type = number & 1 ? DType::F16 : DType::BF16;
    std::tie(p.dim, p.dimV) = headDims[number % 4 * 2 % headDims.size()];
    p.heads = 2, p.keyHeads = 1 + number % 2;
    setMask(p, number % masks, number);
    p.alignment = number % 7 ? Alignment::BottomRight : Alignment::TopLeft;
    p.pad = number % 5 * 4, p.around = 512;
    p.batch = 9, p.queries = 1 + below(longest), p.keys = 1 + below(longest);
    p.slack = below(200);
    const unsigned kind = number % 4; // dense or packed; used lengths or all of it
    std::vector<std::int64_t> lengthsQ, lengthsK;
    for (unsigned b = 0; b < 9; ++b) {
      lengthsQ.push_back(b % 5 == 0 || b == 8 ? 0 : 1 + below(longest));
      lengthsK.push_back(b % 5 == 0 || b == 8 ? 0 : 1 + below(longest));
    }
    if (kind & 1)
      p.lengthsQ = lengthsQ, p.lengthsK = lengthsK;
    if (kind & 2)
      for (unsigned b = 0; b < 9; ++b) {
        p.usedQ.push_back(below((p.packed() ? lengthsQ[b] : p.queries) + 1));
        p.usedK.push_back(b % 5 == 1 ? 0 : below((p.packed() ? lengthsK[b] : p.keys) + 1));
      }
    problems.push_back(p);
  }
  ASSERT_FALSE(problems.empty());
  bothOfAll(problems);
}

} // namespace
} // namespace kiln::test
