//===- AttentionRelationsTest.cpp - Attention forward: what calls have to do with each other ===//
//
// No reference: a call's results follow from those of another.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionHarness.h"

#include <cmath>
#include <numeric>

namespace kiln::test {
namespace {

using namespace kernels;
using Order = std::vector<std::size_t>; // what stands at each place now

/// [batch, rows, heads, width] with the batches and heads in other orders.
Numbers reordered(const Numbers &from, std::size_t rows, std::size_t width, const Order &batches, const Order &heads) {
  Numbers out;
  for (const std::size_t b : batches)
    for (std::size_t i = 0; i < rows; ++i)
      for (const std::size_t h : heads) {
        const auto first = from.begin() + static_cast<std::ptrdiff_t>(((b * rows + i) * heads.size() + h) * width);
        out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(width));
      }
  return out;
}

TEST_P(AttentionForward, ReorderedBatchesAndGroupsReorderTheResults) {
  Problem p = with(70, 90, GetParam() % 2 ? DType::F16 : DType::BF16);
  p.batch = 3, p.heads = 6, p.keyHeads = 3, p.left = 50, p.right = 3, p.sink = p.alibi = true;
  const Order batches = {2, 0, 1}, groups = {1, 2, 0}, heads = {2, 3, 4, 5, 0, 1};
  const Data d = randomData(p, random);
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const Data moved{reordered(d.q, size(p.queries), size(p.dim), batches, heads),
                   reordered(d.k, size(p.keys), size(p.dim), batches, groups),
                   reordered(d.v, size(p.keys), size(p.dimV), batches, groups), reordered(d.sink, 1, 1, {0}, heads),
                   reordered(d.alibi, 1, 1, {0}, heads)};
  const Results one = run(p, d), other = run(p, moved);
  EXPECT_EQ(other.o, reordered(one.o, size(p.queries), size(p.dimV), batches, heads));
  EXPECT_EQ(other.lse, reordered(one.lse, 1, size(p.queries), batches, heads));
  EXPECT_NE(other.o, one.o);
}

TEST_P(AttentionForward, ReorderedSequencesReorderTheResults) {
  Problem p;
  p.lengthsQ = {70, 1, 0, 130}, p.lengthsK = {90, 33, 7, 100}, p.causal = true;
  const Order order = {3, 1, 0, 2};
  Problem moved = p;
  for (std::size_t i = 0; i < order.size(); ++i)
    moved.lengthsQ[i] = p.lengthsQ[order[i]], moved.lengthsK[i] = p.lengthsK[order[i]];
  const auto rows = [&](const Numbers &from, const std::vector<std::int64_t> &lengths, std::int64_t width) {
    Numbers out;
    for (const std::size_t b : order) {
      const auto first =
          from.begin() + width * std::accumulate(lengths.begin(), lengths.begin() + std::ptrdiff_t(b), std::int64_t(0));
      out.insert(out.end(), first, first + width * lengths[b]);
    }
    return out;
  };
  const Data d = randomData(p, random);
  const Data e{rows(d.q, p.lengthsQ, p.heads * p.dim), rows(d.k, p.lengthsK, p.keyHeads * p.dim),
               rows(d.v, p.lengthsK, p.keyHeads * p.dimV), d.sink, d.alibi};
  const Results one = run(p, d), other = run(moved, e);
  EXPECT_EQ(other.o, rows(one.o, p.lengthsQ, p.heads * p.dimV));
  Numbers lse; // [H, T]
  for (std::int64_t h = 0; h < p.heads; ++h) {
    const Numbers head(one.lse.begin() + h * p.rowsQ(), one.lse.begin() + (h + 1) * p.rowsQ());
    const Numbers now = rows(head, p.lengthsQ, 1);
    lse.insert(lse.end(), now.begin(), now.end());
  }
  EXPECT_EQ(other.lse, lse);
}

/// v = 1: o is the sum of a row's weights.  Those are rounded to the type, their sum is not.
TEST_P(AttentionForward, ValuesOfOneGiveOne) {
  Problem p = with(90, 70, GetParam() % 2 ? DType::F16 : DType::BF16);
  p.causal = true; // the first 20 rows see nothing
  p.softcap = 15;
  Data d = randomData(p, random);
  std::fill(d.v.begin(), d.v.end(), 1.0);
  const auto check = [&](double allowed) {
    const Results got = run(p, d);
    for (std::size_t i = 0; i < got.o.size(); ++i) {
      const bool empty = static_cast<std::int64_t>(i) / (p.heads * p.dimV) < p.queries - p.keys;
      ASSERT_NEAR(got.o[i], empty ? 0 : 1, empty ? 0 : allowed) << i;
    }
  };
  check(p.type == DType::BF16 ? 0x1p-7 : 0x1p-10); // one unit in the last place
  std::fill(d.q.begin(), d.q.end(), 0.0);          // weights of 1
  check(0);
}

/// Logits that grow from block to block of the keys, by less and by more than what the base of the powers may lag, up
/// to where neighbouring floats are 16 apart: v = 1 gives 1, and the last keys' values where those win.
TEST_P(AttentionForward, LogitsThatGrow) {
  for (const double step : {0.25, 3.0, 40.0, 0x1p20}) {
    Problem p = with(3, 300, GetParam() % 2 ? DType::BF16 : DType::F16);
    p.scale = static_cast<float>(0x1p7 * 0.6931471805599453); // the powers' factor is 2^7
    Data d = randomData(p, random);
    std::fill(d.q.begin(), d.q.end(), 0.0);
    std::fill(d.k.begin(), d.k.end(), 0.0);
    const bool huge = step > 100;
    for (std::size_t i = 0; i < d.q.size(); i += static_cast<std::size_t>(p.dim)) {
      d.q[i] = huge ? 1024 : 1;
      d.q[i + 1] = 1;
    }
    for (std::int64_t row = 0; row < p.rowsK(); ++row)
      for (std::int64_t head = 0; head < p.keyHeads; ++head) {
        const auto at = static_cast<std::size_t>((row * p.keyHeads + head) * p.dim);
        // To base 2 a block of 32 keys is `step` above the one before.
        d.k[at] = huge ? 1024 : 0;
        d.k[at + 1] = huge ? (row < 150 ? 0.125 : 0.25) : static_cast<double>(row / 32) * step / 128;
      }
    std::fill(d.v.begin(), d.v.end(), 1.0);
    const Results got = run(p, d);
    for (std::size_t i = 0; i < got.o.size(); ++i)
      ASSERT_NEAR(got.o[i], 1, p.type == DType::BF16 ? 0x1p-7 : 0x1p-10) << step << " " << i;
    if (!huge)
      compare(p, d);
  }
}

/// Sequences of one length: a packed batch and a dense one are the same rows in memory.
TEST_P(AttentionForward, PackedIsDense) {
  Problem dense = with(75, 90, GetParam() % 2 ? DType::BF16 : DType::F16);
  dense.batch = 3, dense.left = 30, dense.right = 0, dense.heads = 4;
  Problem packed = dense;
  packed.lengthsQ = {75, 75, 75}, packed.lengthsK = {90, 90, 90};
  const Data d = randomData(dense, random);
  const Results one = run(dense, d), other = run(packed, d);
  EXPECT_EQ(other.o, one.o);
  Numbers lse; // [H, T] of [B, H, Sq]
  for (std::int64_t h = 0; h < dense.heads; ++h)
    for (std::int64_t b = 0; b < dense.batch; ++b) {
      const auto first = one.lse.begin() + (b * dense.heads + h) * dense.queries;
      lse.insert(lse.end(), first, first + dense.queries);
    }
  EXPECT_EQ(other.lse, lse);
}

} // namespace
} // namespace kiln::test
