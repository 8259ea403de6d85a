//===- AttentionBackwardRelationsTest.cpp - Attention's gradients: what they have to do with each other ---===//
//
// Without the definition of the gradients: they are the derivatives of the forward definition, by differences in
// float64; and a call's follow from those of another.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/kernels/AttentionHookCases.h"

#include <cmath>
#include <numeric>

namespace kiln::test {
namespace {

using namespace kernels;

//===----------------------------------------------------------------------===//
// The definition
//===----------------------------------------------------------------------===//

/// sum(do * o) + sum(dlse * lse), of rows that count.
double lossOf(const Problem &p, const Data &d, const LossGradients &g) {
  const Results r = define(p, d);
  double out = 0;
  for (std::size_t i = 0; i < r.o.size(); ++i)
    out += std::isnan(r.o[i]) ? 0 : g.dO[i] * r.o[i];
  for (std::size_t i = 0; i < g.dlse.size(); ++i)
    out += std::isfinite(r.lse[i]) ? g.dlse[i] * r.lse[i] : 0;
  return out;
}

/// Some elements of each gradient against (loss(x + h) - loss(x - h)) / 2h, whose own error is of the order of h^2.
void expectDerivatives(const Problem &p, Data d, std::mt19937_64 &random) {
  SCOPED_TRACE(p.text());
  LossGradients g = randomGradients(p, true, random);
  const Results forward = define(p, d);
  Gradients want = defineGradients(p, d, g);
  if (p.sink)
    want.dsink = defineSinks(p, d, g, forward.o, forward.lse).value;
  if (p.biasOf)
    want.dbias = defineBias(p, d, g, forward.o, forward.lse).value;
  constexpr double h = 1e-4;
  for (const auto &[name, input, gradient] :
       {std::tuple("dq", &Data::q, &Gradients::dq), std::tuple("dk", &Data::k, &Gradients::dk),
        std::tuple("dv", &Data::v, &Gradients::dv), std::tuple("dsink", &Data::sink, &Gradients::dsink),
        std::tuple("dbias", &Data::bias, &Gradients::dbias)}) {
    const Numbers &of = want.*gradient;
    unsigned compared = 0;
    for (unsigned n = 0; n < 40 && !of.empty(); ++n) {
      const std::size_t i = random() % of.size();
      double &x = (d.*input)[i];
      if (std::isnan(of[i]) || !std::isfinite(x))
        continue;
      const double at = x;
      x = at + h;
      const double above = lossOf(p, d, g);
      x = at - h;
      const double below = lossOf(p, d, g);
      x = at;
      ASSERT_NEAR(of[i], (above - below) / (2 * h), 1e-5 * std::abs(of[i]) + 1e-6) << name << " " << i;
      ++compared;
    }
    EXPECT_TRUE(of.empty() || compared > 10) << name;
  }
}

TEST(AttentionGradientsDefinition, IsTheDerivativeOfTheForwardDefinition) {
  std::mt19937_64 random(3);
  for (unsigned number = 0; number < 12; ++number) {
    Problem p = with(7, 9);
    p.dim = 8, p.dimV = 16, p.batch = 2, p.heads = 4, p.keyHeads = number % 3 ? 2 : 4;
    p.causal = number % 3 == 1;
    if (number % 3 == 2)
      p.left = 4, p.right = 1;
    p.sink = number % 2, p.alibi = number % 4 == 1;
    p.softcap = number % 5 == 2 ? 2 : 0;
    p.scale = number % 5 == 2 ? 0.1f : 0;
    if (number >= 4)
      p.biasOf = std::array{15u, 12u, 8u, 0u, 6u, 14u, 2u, 9u}[number - 4];
    p.dropoutP = number % 4 == 2 ? 0.3f : 0;
    if (number % 4 == 3)
      p.lengthsQ = {3, 0, 5}, p.lengthsK = {4, 2, 6}, p.usedK = {4, 2, 5}, p.usedQ = {3, 0, 4};
    if (number == 3 || number == 8) {
      p.softcap = 0;
      p.hooks = std::make_shared<const Hooks>(number == 3 ? cubic() : documents(p, random));
    }
    Data d = randomData(p, random);
    if (p.softcap > 0) // within the cap, where differences see a slope
      for (double &q : d.q)
        q /= 2;
    expectDerivatives(p, d, random);
  }
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

class AttentionGradientRelations : public AttentionBackward {
protected:
  Gradients run(const Problem &p, const Data &d, const LossGradients &g) {
    PreparedGradients call = prepared(p, d, g);
    fixTiles(call.arguments);
    return runGradients(call);
  }
};

using Order = std::vector<std::size_t>; // what stands at each place now

/// [batch, rows, heads, width] with the batches and heads in other orders.
Numbers reordered(const Numbers &from, std::int64_t rows, std::int64_t width, const Order &batches,
                  const Order &heads) {
  Numbers out;
  for (const std::size_t b : batches)
    for (std::int64_t i = 0; i < rows; ++i)
      for (const std::size_t h : heads) {
        const std::int64_t row = (static_cast<std::int64_t>(b) * rows + i) * std::ssize(heads);
        const auto first = from.begin() + (row + static_cast<std::int64_t>(h)) * width;
        out.insert(out.end(), first, first + width);
      }
  return out;
}

TEST_P(AttentionGradientRelations, ReorderedBatchesAndGroupsReorderThem) {
  if (!isOneOf({1, 2}))
    return;
  Problem p = with(50, 70, GetParam() % 2 ? DType::F16 : DType::BF16);
  p.batch = 3, p.heads = 6, p.keyHeads = 3, p.left = 40, p.right = 3, p.sink = p.alibi = true, p.biasOf = 14;
  p.deterministic = true;
  const Order batches = {2, 0, 1}, groups = {1, 2, 0}, heads = {2, 3, 4, 5, 0, 1}, one = {0};
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, true, random);
  Data moved = d;
  moved.q = reordered(d.q, p.queries, p.dim, batches, heads);
  moved.k = reordered(d.k, p.keys, p.dim, batches, groups), moved.v = reordered(d.v, p.keys, p.dimV, batches, groups);
  moved.sink = reordered(d.sink, 1, 1, one, heads), moved.alibi = reordered(d.alibi, 1, 1, one, heads);
  const std::int64_t biasOfHead = p.queries * p.keys;
  moved.bias = reordered(d.bias, 1, biasOfHead, one, heads);
  const Gradients usual = run(p, d, g), other = run(p, moved,
                                                    {reordered(g.dO, p.queries, p.dimV, batches, heads),
                                                     reordered(g.dlse, 1, p.queries, batches, heads)});
  EXPECT_EQ(other.dq, reordered(usual.dq, p.queries, p.dim, batches, heads));
  EXPECT_EQ(other.dk, reordered(usual.dk, p.keys, p.dim, batches, groups));
  EXPECT_EQ(other.dv, reordered(usual.dv, p.keys, p.dimV, batches, groups));
  EXPECT_NE(other.dq, usual.dq);
  // Sums over the sequences, whose order is another one now.
  const Numbers sinks = reordered(usual.dsink, 1, 1, one, heads),
                biases = reordered(usual.dbias, 1, biasOfHead, one, heads);
  for (std::size_t h = 0; h < sinks.size(); ++h)
    EXPECT_NEAR(other.dsink[h], sinks[h], 1e-5 * std::abs(sinks[h]) + 1e-5);
  for (std::size_t i = 0; i < biases.size(); ++i)
    ASSERT_NEAR(other.dbias[i], biases[i], 1e-5 * std::abs(biases[i]) + 1e-5) << i;
}

/// Twice the loss: every number of the calculation doubles, and no bit of its fraction changes.
TEST_P(AttentionGradientRelations, TwiceTheLossGivesTwiceTheGradients) {
  if (!isOneOf({0, 2}))
    return;
  Problem p = with(60, 75);
  p.heads = 4, p.causal = true, p.softcap = 15, p.scale = 0.125f, p.sink = true;
  p.deterministic = true;
  const Data d = randomData(p, random);
  LossGradients g = randomGradients(p, true, random);
  const Gradients once = run(p, d, g);
  for (Numbers *x : {&g.dO, &g.dlse})
    for (double &e : *x)
      e *= 2;
  const Gradients twice = run(p, d, g);
  for (const auto member : {&Gradients::dq, &Gradients::dk, &Gradients::dv, &Gradients::dsink}) {
    Numbers want = once.*member;
    for (double &e : want)
      e *= 2;
    EXPECT_EQ(twice.*member, want);
  }
}

/// A number added to a row of the bias changes lse, and no gradient: what the kernels compute is the same but for the
/// rounding of larger logits.
TEST_P(AttentionGradientRelations, AConstantOfARowOfTheBiasChangesNone) {
  if (!isOneOf({3, 2}))
    return;
  Problem p = with(50, 60, DType::F16);
  p.biasOf = 14, p.causal = true, p.deterministic = true;
  Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, false, random);
  const Gradients before = run(p, d, g);
  for (std::int64_t h = 0; h < p.heads; ++h)
    for (std::int64_t i = 0; i < p.queries; ++i)
      for (std::int64_t j = 0; j < p.keys; ++j)
        d.bias[atBias(p, 0, h, i, j)] += static_cast<double>(i - 30);
  const Gradients after = run(p, d, g);
  for (const auto member : {&Gradients::dq, &Gradients::dk, &Gradients::dv, &Gradients::dbias})
    for (std::size_t i = 0; i < (before.*member).size(); ++i)
      ASSERT_NEAR((after.*member)[i], (before.*member)[i], 0x1p-9 * std::abs((before.*member)[i]) + 1e-3) << i;
}

/// Sequences of one length: a packed batch and a dense one are the same rows in memory.
TEST_P(AttentionGradientRelations, PackedIsDense) {
  if (!isOneOf({0, 2}))
    return;
  Problem dense = with(65, 80, GetParam() % 2 ? DType::BF16 : DType::F16);
  dense.batch = 3, dense.left = 30, dense.right = 0, dense.heads = 4, dense.sink = true, dense.deterministic = true;
  Problem packed = dense;
  packed.lengthsQ = {65, 65, 65}, packed.lengthsK = {80, 80, 80};
  const Data d = randomData(dense, random);
  const LossGradients g = randomGradients(dense, true, random);
  LossGradients ofRows = g;
  ofRows.dlse.clear(); // [H, T] of [B, H, Sq]
  for (std::int64_t h = 0; h < dense.heads; ++h)
    for (std::int64_t b = 0; b < dense.batch; ++b) {
      const auto first = g.dlse.begin() + (b * dense.heads + h) * dense.queries;
      ofRows.dlse.insert(ofRows.dlse.end(), first, first + dense.queries);
    }
  expectSame(run(packed, d, ofRows), run(dense, d, g), /*deterministic=*/true);
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionGradientRelations, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
