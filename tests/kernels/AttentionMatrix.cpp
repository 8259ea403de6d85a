#include "tests/kernels/AttentionMatrix.h"

#include "tests/kernels/Pairwise.h"

#include <gtest/gtest.h>

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

enum Factor : std::uint8_t {
  OfType,
  OfDims,
  OfHeads,
  OfMask,
  OfBatch,
  OfSoftcap,
  OfAlign,
  OfSink,
  OfAlibi,
  OfLse,
  OfBias,
  OfDropout,
  OfLseGradient,
  OfDeterministic
};
constexpr std::size_t core = OfSoftcap; // factors before this one: every combination
const std::vector<Lengths> headDims = {{64, 64},   {96, 96}, {128, 128}, {192, 192}, {256, 256},
                                       {192, 128}, {40, 40}, {80, 80},   {8, 8}};
/// None; of its own for all, the same for sequences, for rows, for keys, for all but rows and keys.
constexpr std::array<std::optional<unsigned>, 6> biases = {std::nullopt, 15u, 14u, 11u, 7u, 12u};
const std::vector<unsigned> levels = {2, static_cast<unsigned>(headDims.size()), 3, masks, 2, 3, 2, 2, 2,
                                      2, static_cast<unsigned>(biases.size()),   2, 2,     2};

} // namespace

std::vector<MatrixCase> casesOfCore(std::int64_t longest, std::int64_t leastRows) {
  const auto rows = pairwiseOver(levels, core);
  EXPECT_EQ(rows.size(), 2u * 9 * 3 * 3 * 2);
  const std::vector<Lengths> all = lengthsUpTo(longest);
  std::vector<Lengths> longer;
  for (const Lengths &l : all)
    if (l.first >= leastRows)
      longer.push_back(l);
  std::vector<MatrixCase> out;
  for (unsigned number = 0; number < rows.size(); ++number) {
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
    p.biasOf = biases[row[OfBias]];
    p.biasType = std::array{DType::F32, DType::F16, DType::BF16}[number % 3];
    p.dropoutP = row[OfDropout] ? 0.17f : 0;
    p.deterministic = row[OfDeterministic];
    const std::vector<Lengths> &lengths = p.softcap > 0 || p.dropoutP > 0 ? longer : all;
    const auto at = [&](unsigned i) { return lengths[(number * 5 + i) % lengths.size()]; };
    setLengths(p, at(0), at(9), row[OfBatch]);
    out.push_back({p, row[OfLseGradient] != 0});
  }
  return out;
}

std::vector<MatrixCase> casesOfLengths(std::int64_t longest) {
  std::vector<MatrixCase> out;
  unsigned number = 0;
  for (const Lengths &l : lengthsUpTo(longest))
    for (unsigned mask = 0; mask < masks; ++mask)
      for (const bool packed : {false, true}) {
        ++number;
        Problem p;
        p.type = number & 2 ? DType::F16 : DType::BF16;
        setMask(p, mask, number);
        p.alignment = number % 5 ? Alignment::BottomRight : Alignment::TopLeft;
        p.heads = number % 3 ? 2 : 1;
        p.keyHeads = 1;
        p.deterministic = number % 4 == 0;
        setLengths(p, l, {l.second / 2, l.first}, packed);
        out.push_back({p, number % 7 == 0});
      }
  return out;
}

std::vector<MatrixCase> casesOfWideHeads() {
  std::vector<MatrixCase> out;
  unsigned number = 0;
  for (const Lengths &l : {Lengths{1023, 1024}, {64, 800}, {3, 1024}, {640, 128}, {4096, 4096}, {2048, 3577}})
    for (const auto &[dim, dimV] : {Lengths{128, 128}, {192, 128}, {256, 256}}) {
      Problem p = with(l.first, l.second, number % 2 ? DType::F16 : DType::BF16);
      p.dim = dim, p.dimV = dimV, p.causal = number % 3 != 0;
      p.heads = p.keyHeads = 1;
      p.deterministic = number % 5 == 0;
      out.push_back({p, number++ % 4 == 0});
    }
  return out;
}

std::vector<MatrixCase> casesOfHeads(std::int64_t most) {
  std::vector<MatrixCase> out;
  unsigned number = 0;
  for (const std::int64_t g : {1, 2, 3, 4, 5, 8, 16})
    for (const std::int64_t keyHeads : {1, 2, 3, 5, 6, 7, 16}) {
      if (g * keyHeads > most)
        continue;
      Problem p = with(20, 70, number % 2 ? DType::F16 : DType::BF16);
      p.heads = g * keyHeads, p.keyHeads = keyHeads;
      p.batch = 1 + number % 3;
      p.causal = number % 2;
      p.sink = number % 3 == 0, p.alibi = number % 5 == 0;
      p.deterministic = number % 7 > 3;
      if (number % 4 == 3)
        p.lengthsQ = {9, 0, 30}, p.lengthsK = {70, 3, 20};
      out.push_back({p, number++ % 3 == 1});
    }
  return out;
}

std::vector<MatrixCase> casesOfBatches(const std::vector<std::int64_t> &longest) {
  std::vector<MatrixCase> out;
  for (unsigned number = 0; number < 36 * longest.size(); ++number) {
    std::mt19937_64 engine(number);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n));
    };
    const std::int64_t most = longest[number / 36];
    Problem p;
    p.type = number & 1 ? DType::F16 : DType::BF16;
    std::tie(p.dim, p.dimV) = headDims[number % 4 * 2 % headDims.size()];
    p.heads = 2, p.keyHeads = 1 + number % 2;
    setMask(p, number % masks, number);
    p.alignment = number % 7 ? Alignment::BottomRight : Alignment::TopLeft;
    p.pad = number % 5 * 4, p.around = 512;
    p.batch = 9, p.queries = 1 + below(most), p.keys = 1 + below(most);
    p.slack = below(200);
    const unsigned kind = number % 4; // dense or packed; used lengths or all of it
    std::vector<std::int64_t> lengthsQ, lengthsK;
    for (unsigned b = 0; b < 9; ++b) {
      lengthsQ.push_back(b % 5 == 0 || b == 8 ? 0 : 1 + below(most));
      lengthsK.push_back(b % 5 == 0 || b == 8 ? 0 : 1 + below(most));
    }
    if (kind & 1)
      p.lengthsQ = lengthsQ, p.lengthsK = lengthsK;
    if (kind & 2)
      for (unsigned b = 0; b < 9; ++b) {
        p.usedQ.push_back(below((p.packed() ? lengthsQ[b] : p.queries) + 1));
        p.usedK.push_back(b % 5 == 1 ? 0 : below((p.packed() ? lengthsK[b] : p.keys) + 1));
      }
    p.deterministic = number % 3 == 1;
    out.push_back({p, number % 5 == 0});
  }
  return out;
}

} // namespace kiln::test
