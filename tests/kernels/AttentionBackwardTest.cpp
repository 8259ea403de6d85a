//===- AttentionBackwardTest.cpp - Attention's gradients: head dims, options, lengths, special values ---===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

/// The last row that sees a block of keys is the first of a block of rows.
TEST_P(AttentionBackward, ABlockOfWhichOneRowSeesTheKeys) {
  Problem p = with(128, 128);
  p.heads = p.keyHeads = 1, p.left = 1; // row 64 sees key 63
  all(p);
}

/// Slopes below 0: rows after the last one, which are read as 0, would have infinite powers.
TEST_P(AttentionBackward, SlopesBelowZero) {
  Problem p = with(40, 70);
  p.alibi = true;
  Data d = randomData(p, random);
  d.alibi = {-4, -2};
  const LossGradients g = randomGradients(p, false, random);
  const PreparedGradients call = prepared(p, d, g);
  compareGradients(p, d, g, call, runGradients(call));
}

/// Rows of a chunk of a prompt; the last offset: every row stands after all keys.
TEST_P(AttentionBackward, PositionOffsets) {
  unsigned number = 0;
  for (const std::int64_t offset : {0, 45, 64, 130, 400})
    for (unsigned mask = 0; mask < 3; ++mask) {
      if (!chosen(number++, 15))
        continue;
      Problem p = with(70, 150, mask % 2 ? DType::F16 : DType::BF16);
      p.offset = offset, p.batch = 2, p.causal = mask != 1;
      if (mask == 1)
        p.left = 30, p.right = 4;
      p.alibi = mask == 2;
      all(p);
    }
}

TEST_P(AttentionBackward, HeadDims) {
  unsigned number = 0;
  for (const auto &[dim, dimV] : {std::pair<std::int64_t, std::int64_t>{8, 8},
                                  {256, 256},
                                  {80, 80},
                                  {192, 128},
                                  {40, 40},
                                  {64, 24},
                                  {128, 128},
                                  {24, 200}}) {
    if (!chosen(number++, 4))
      continue;
    Problem p = with(70, 90, dim % 16 ? DType::F16 : DType::BF16);
    p.dim = dim, p.dimV = dimV, p.causal = true;
    all(p);
  }
}

TEST_P(AttentionBackward, SoftcapSinkAlibiScaleDlse) {
  for (unsigned options = 1; options < 32; ++options) {
    if (!chosen(options, 16))
      continue;
    compareRandom(withOptions(options), options & 16);
  }
}

/// Packed sequences, of which some have no queries or no keys, and rows that do not count, which hold NaN.
TEST_P(AttentionBackward, PackedAndUsedLengths) {
  for (unsigned kind = 0; kind < 4; ++kind) {
    if (!chosen(kind, 4))
      continue;
    Problem p = with(0, 0, kind % 2 ? DType::F16 : DType::BF16);
    p.heads = 4, p.causal = kind != 2, p.sink = kind == 3;
    p.lengthsQ = {0, 33, 70, 0, 5, 20}, p.lengthsK = {9, 90, 64, 0, 0, 31};
    if (kind & 1)
      p.usedQ = {0, 20, 70, 0, 3, 0}, p.usedK = {4, 90, 11, 0, 0, 30};
    p.slack = kind * 100;
    p.around = 256;
    all(p, kind == 1);
  }
  Problem dense = with(50, 60);
  dense.batch = 3, dense.usedQ = {50, 0, 13}, dense.usedK = {60, 20, 0}, dense.pad = 8, dense.around = 64;
  if (isFullTier() || GetParam() == 1)
    all(dense, true);
}

/// Rows without a key have no gradient, and give none, whatever do, o and dlse hold there.
TEST_P(AttentionBackward, EmptyRows) {
  Problem p = with(60, 20);
  p.causal = true; // the first 40 rows see nothing
  const Data d = randomData(p, random);
  LossGradients g = randomGradients(p, true, random);
  const PreparedGradients call = prepared(p, d, g);
  const Gradients wanted = runGradients(call);
  compareGradients(p, d, g, call, wanted);
  for (std::int64_t i = 0; i < 40; ++i)
    for (std::int64_t h = 0; h < p.heads; ++h)
      g.dlse[static_cast<std::size_t>(h * p.queries + i)] = NAN;
  const Gradients got = runGradients(prepared(p, d, g));
  EXPECT_EQ(got.dq, wanted.dq);
  EXPECT_EQ(got.dk, wanted.dk);
  EXPECT_EQ(got.dv, wanted.dv);
  for (std::size_t i = 0; i < static_cast<std::size_t>(40 * p.heads * p.dim); ++i)
    ASSERT_EQ(got.dq[i], 0) << i;
}

/// A row whose logits are all minus infinity is empty too.
TEST_P(AttentionBackward, RowsOfInfiniteLogits) {
  Problem p = with(40, 20);
  p.heads = p.keyHeads = 1;
  Data d = randomData(p, random);
  const auto D = static_cast<std::size_t>(p.dim);
  std::fill_n(d.q.begin() + 7 * p.dim, p.dim, 0.0);
  d.q[7 * D] = 0x1p127;
  for (std::size_t j = 0; j < 20; ++j)
    d.k[j * D] = -8;
  LossGradients g = randomGradients(p, true, random);
  Results forward = define(p, d);
  forward.lse[7] = -INFINITY;
  std::fill_n(forward.o.begin() + 7 * p.dimV, p.dimV, 0.0);
  g.dlse[7] = NAN;
  const Gradients got = runGradients(prepare(*on->device, p, d, g, forward.o, forward.lse));
  for (std::size_t c = 0; c < D; ++c)
    EXPECT_EQ(got.dq[7 * D + c], 0) << c;
  for (const Numbers *x : {&got.dq, &got.dk, &got.dv})
    for (const double e : *x)
      ASSERT_TRUE(std::isfinite(e));
}

/// A NaN in what a pair reads is in the gradients of the pair.
TEST_P(AttentionBackward, NoNumbersReachTheGradients) {
  const Problem p = with(40, 40);
  const auto at = [&](std::int64_t row, std::int64_t width) { return static_cast<std::size_t>(row * 2 * width); };
  for (unsigned which = 0; which < 4; ++which) {
    if (!chosen(which, 4))
      continue;
    Data d = randomData(p, random);
    LossGradients g = randomGradients(p, false, random);
    const PreparedGradients clean = prepared(p, d, g);
    (which == 0 ? d.q : which == 1 ? d.k : which == 2 ? d.v : g.dO)[at(7, p.dim)] = NAN; // head 0
    PreparedGradients call = prepare(*on->device, p, d, g, download(clean.o), download(clean.lse));
    const Gradients got = runGradients(call);
    const bool isRow = which == 0 || which == 3;
    for (std::int64_t r = 0; r < 40; ++r) {
      EXPECT_EQ(std::isnan(got.dq[at(r, p.dim)]), !isRow || r == 7) << which << " " << r;
      EXPECT_EQ(std::isnan(got.dk[at(r, p.dim)]), isRow || r == 7) << which << " " << r;
      EXPECT_FALSE(std::isnan(got.dq[at(r, p.dim) + static_cast<std::size_t>(p.dim)])) << "the other head";
    }
  }
}

/// Nothing to launch, or nothing to add up: outputs are zeros.
TEST_P(AttentionBackward, NoQueriesAndNoKeys) {
  Device &device = *on->device;
  const auto given = [&](const std::vector<std::int64_t> &shape, DType type = DType::BF16) {
    std::int64_t n = 1;
    for (const std::int64_t e : shape)
      n *= e;
    return upload(device, type, shape, Numbers(static_cast<std::size_t>(n), 0.5));
  };
  const auto made = [&](const std::vector<std::int64_t> &shape) { return allocateOutput(device, DType::BF16, shape); };
  const auto expectZeros = [&](const AttentionBackwardArguments &a, std::initializer_list<const Operand *> outputs) {
    const Status s = AttentionBackwardOperation(*on->jit).run(a);
    ASSERT_TRUE(s.ok()) << s.toString();
    for (const Finding &f : device.takeFindings())
      ADD_FAILURE() << f.message;
    for (const Operand *out : outputs)
      for (const double e : download(*out))
        ASSERT_EQ(e, 0);
  };
  for (const auto &[batch, queries, keys] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{2, 0, 70}, {2, 70, 0}, {0, 70, 70}, {2, 0, 0}}) {
    SCOPED_TRACE(std::to_string(batch) + " " + std::to_string(queries) + " " + std::to_string(keys));
    const std::vector<std::int64_t> ofQ = {batch, queries, 2, 64}, ofK = {batch, keys, 2, 64};
    // Rows that see no key: o is 0, lse the sink.
    const Operand q = given(ofQ), k = given(ofK), v = given(ofK), dO = given(ofQ),
                  o = upload(device, DType::BF16, ofQ, Numbers(static_cast<std::size_t>(batch * queries * 128))),
                  lse = given({batch, 2, queries}, DType::F32), sink = given({2}, DType::F32), dq = made(ofQ),
                  dk = made(ofK), dv = made(ofK), dsink = allocateOutput(device, DType::F32, {2});
    AttentionBackwardArguments a;
    a.of.q = q.tensor, a.of.k = k.tensor, a.of.v = v.tensor, a.of.o = o.tensor, a.of.lse = lse.tensor;
    a.of.sink = sink.tensor, a.dO = dO.tensor;
    a.dq = dq.tensor, a.dk = dk.tensor, a.dv = dv.tensor, a.dsink = dsink.tensor;
    expectZeros(a, {&dq, &dk, &dv, &dsink});
  }
  // A packed batch without a query.
  const Operand q = given({0, 2, 64}), k = given({9, 2, 64}), lse = given({2, 0}, DType::F32), dk = made({9, 2, 64}),
                dv = made({9, 2, 64}), cuQ = upload(device, DType::I32, {3}, {0, 0, 0}),
                cuK = upload(device, DType::I32, {3}, {0, 4, 9});
  AttentionBackwardArguments a;
  a.of.q = a.of.o = a.dO = a.dq = q.tensor, a.of.k = a.of.v = k.tensor, a.of.lse = lse.tensor;
  a.of.cuQ = cuQ.tensor, a.of.cuK = cuK.tensor, a.maxKeys = 5, a.dk = dk.tensor, a.dv = dv.tensor;
  expectZeros(a, {&dk, &dv});
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionBackward, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
