//===- AttentionBiasTest.cpp - What a bias adds to the logits, forward and backward ---===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/support/TestTier.h"

#include <cmath>
#include <limits>

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

/// Packed sequences, of which some have no queries or no keys, and rows that do not count, which hold NaN.
TEST_P(AttentionBias, PackedAndUsedLengths) {
  for (unsigned kind = 0; kind < 8; ++kind) {
    if (!chosen(kind, 8))
      continue;
    Problem p = with(50, 60, kind % 2 ? DType::F16 : DType::BF16);
    p.biasOf = kind == 0 ? 15 : kind == 1 ? 12 : kind == 2 ? 6 : kind == 3 ? 10 : kind == 4 ? 14 : kind == 5 ? 5 : 13;
    p.biasType = biasTypes[kind % 3];
    p.heads = 4, p.causal = kind % 3 == 0;
    if (kind < 6) {
      p.lengthsQ = {0, 33, 70, 0, 5, 20}, p.lengthsK = {9, 90, 64, 0, 0, 31};
      if (kind & 1)
        p.usedQ = {0, 20, 70, 0, 3, 0}, p.usedK = {4, 90, 11, 0, 0, 30};
    } else {
      p.batch = 3, p.usedQ = {50, 0, 13}, p.usedK = {60, 20, 0};
    }
    Data d = randomData(p, random);
    poisonUnused(p, d);
    // Entries that no pair reads.
    Numbers read(d.bias.size(), NAN);
    for (std::int64_t b = 0; b < p.sequences(); ++b) {
      const auto of = [&](const std::vector<std::int64_t> &used, const std::vector<std::int64_t> &lengths,
                          std::int64_t dense) {
        const auto at = static_cast<std::size_t>(b);
        return !used.empty() ? used[at] : !lengths.empty() ? lengths[at] : dense;
      };
      for (std::int64_t h = 0; h < p.heads; ++h)
        for (std::int64_t i = 0; i < of(p.usedQ, p.lengthsQ, p.queries); ++i)
          for (std::int64_t j = 0; j < of(p.usedK, p.lengthsK, p.keys); ++j)
            read[atBias(p, b, h, i, j)] = d.bias[atBias(p, b, h, i, j)];
    }
    d.bias = read;
    compare(p, d);
    compareGradientsOf(p, d, kind % 2);
  }
}

/// Adding a number to a whole row of a bias moves its lse by that, and nothing else.
TEST_P(AttentionBias, AConstantOfARowMovesLseOnly) {
  Problem p = with(70, 90);
  p.biasOf = 14, p.causal = true;
  Data d = randomData(p, random);
  const Results before = run(p, d);
  compare(p, d, before);
  for (std::int64_t h = 0; h < p.heads; ++h)
    for (std::int64_t i = 0; i < p.queries; ++i)
      for (std::int64_t j = 0; j < p.keys; ++j)
        d.bias[atBias(p, 0, h, i, j)] += static_cast<double>(i - 30);
  const Results after = run(p, d);
  for (std::int64_t h = 0; h < p.heads; ++h)
    for (std::int64_t i = 0; i < p.queries; ++i) {
      const auto at = static_cast<std::size_t>(h * p.queries + i);
      if (before.lse[at] == -INFINITY)
        EXPECT_EQ(after.lse[at], -INFINITY);
      else
        EXPECT_NEAR(after.lse[at], before.lse[at] + static_cast<double>(i - 30), 2e-5) << h << " " << i;
    }
  for (std::size_t i = 0; i < before.o.size(); ++i)
    ASSERT_NEAR(after.o[i], before.o[i], 0x1p-8 * std::abs(before.o[i]) + 1e-3) << i;
}

/// A bias of 0 and minus infinity is a mask: the probe of masks, whose keys are hidden by it alone.
TEST_P(AttentionBias, MinusInfinityIsAMask) {
  Problem masked = with(70, 90, DType::F16), biased = masked;
  masked.left = 20, masked.right = 3;
  biased.biasOf = 12, biased.biasType = DType::F16;
  for (const std::int64_t by : {std::int64_t(0), masked.dimV / 2}) {
    const Data d = probeData(masked, by, random);
    Data other = d;
    for (std::int64_t i = 0; i < 70; ++i)
      for (std::int64_t j = 0; j < 90; ++j)
        other.bias.push_back(j < i + 20 - 20 || j > i + 20 + 3 ? -INFINITY : 0); // p = i + 20
    compareProbe(masked, d, run(biased, other));
  }
}

/// Rows that a bias hides wholly are empty; of the lowest float, which other programs hide keys by, they are not:
/// every key has the same weight.
TEST_P(AttentionBias, HiddenRows) {
  Problem p = with(40, 70);
  p.biasOf = 14, p.heads = p.keyHeads = 1;
  Data d = randomData(p, random);
  constexpr double lowest = -std::numeric_limits<float>::max();
  const auto row = [&](std::int64_t i) { return d.bias.begin() + i * p.keys; };
  std::fill_n(row(3), p.keys, -INFINITY);
  std::fill_n(row(5), p.keys, lowest);
  std::fill_n(row(7), p.keys - 1, lowest); // one key is left
  d.bias[static_cast<std::size_t>(8 * p.keys - 1)] = 0;
  const Results got = run(p, d);
  compare(p, d, got);
  EXPECT_EQ(got.lse[3], -INFINITY);
  EXPECT_EQ(got.lse[5], lowest);
  const LossGradients g = randomGradients(p, true, random);
  const Gradients gradients = runGradients(prepare(*on->device, p, d, g, got.o, got.lse));
  for (const Numbers *x : {&gradients.dq, &gradients.dk, &gradients.dv, &gradients.dbias})
    for (const double e : *x)
      ASSERT_TRUE(std::isfinite(e));
  for (const std::int64_t i : {3, 5})
    for (std::int64_t c = 0; c < p.dim; ++c)
      EXPECT_EQ(gradients.dq[static_cast<std::size_t>(i * p.dim + c)], 0);
}

/// A NaN in a bias reaches the rows whose pairs have it, and no others.
TEST_P(AttentionBias, NoNumbersReachTheirRows) {
  Problem p = with(40, 70);
  p.biasOf = 14, p.causal = true;
  Data d = randomData(p, random);
  d.bias[atBias(p, 0, 1, 7, 37)] = NAN; // p = 37: the last that the row sees
  d.bias[atBias(p, 0, 1, 9, 40)] = NAN; // hidden
  const Results got = run(p, d);
  for (std::int64_t h = 0; h < p.heads; ++h)
    for (std::int64_t i = 0; i < p.queries; ++i) {
      const bool isHit = h == 1 && i == 7;
      EXPECT_EQ(std::isnan(got.lse[static_cast<std::size_t>(h * p.queries + i)]), isHit) << h << " " << i;
      EXPECT_EQ(std::isnan(got.o[static_cast<std::size_t>((i * p.heads + h) * p.dimV)]), isHit) << h << " " << i;
    }
}

/// Tiles of calls with many heads, whose keys and values fill the shared memory.
TEST_P(AttentionBias, WideHeads) {
  unsigned number = 0;
  for (const std::int64_t dim : {256, 128, 64})
    for (const DType type : {DType::F32, DType::BF16}) {
      if (!isFullTier() && (number++ % 6 != 0 || GetParam() % 2))
        continue;
      Problem p = with(130, 200);
      p.dim = p.dimV = dim, p.biasOf = 12, p.biasType = type, p.heads = p.keyHeads = 1, p.causal = true;
      p.dropoutP = 0.17f;
      const Data d = randomData(p, random);
      PreparedCall call = prepare(*on->device, p, d);
      call.arguments.tiling = tilingOf(*on->device, call.arguments, Heads::Many);
      compare(p, d, run(call));
      const LossGradients g = randomGradients(p, false, random);
      const PreparedGradients backward = prepared(p, d, g);
      compareGradients(p, d, g, backward, runGradients(backward));
    }
}

/// Any strides of the bias and of its gradient, of 0 in the bias too: the same bits.
TEST_P(AttentionBias, StridesOfTheirOwn) {
  Problem p = with(70, 90);
  p.biasOf = 15, p.batch = 2, p.biasType = biasTypes[GetParam() % 3];
  Data d = randomData(p, random);
  // The same for all heads and rows, so that strides may be 0.
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t i = 0; i < p.queries; ++i)
        for (std::int64_t j = 0; j < p.keys; ++j)
          d.bias[atBias(p, b, h, i, j)] = d.bias[atBias(p, b, 0, 0, j)];
  const LossGradients g = randomGradients(p, false, random);
  PreparedGradients usual = prepared(p, d, g);
  const Results o = run(usual.forward);
  const Gradients want = runGradients(usual);
  compare(p, d, o);
  compareGradients(p, d, g, usual, want);
  const std::vector<MemoryOrder> orders = {{{0, 1, 3, 2}}, {{1, 2, 0, 3}, 3}, {{3, 2, 1, 0}, 0, 1}, {{0, 2, 1, 3}, 8}};
  for (std::size_t i = 0; i <= orders.size(); ++i) {
    if (!chosen(static_cast<unsigned>(i), 5))
      continue;
    SCOPED_TRACE(deviceName() + " " + std::to_string(i));
    PreparedGradients call = prepare(*on->device, p, d, g, usual.o.values, usual.lse.values);
    Operand bias;
    if (i < orders.size()) {
      bias = upload(*on->device, p.biasType, p.biasShape(), d.bias, orders[i]);
    } else {
      Numbers few;
      for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t j = 0; j < p.keys; ++j)
          few.push_back(d.bias[atBias(p, b, 0, 0, j)]);
      bias = upload(*on->device, p.biasType, {p.batch, 1, 1, p.keys}, few);
      bias.tensor.shape = usual.arguments.of.bias->shape;
      bias.tensor.strides[1] = bias.tensor.strides[2] = 0;
    }
    call.dbias = allocateOutput(*on->device, p.biasType, p.biasShape(), orders[(i + 1) % orders.size()]);
    call.arguments.of.bias = call.forward.arguments.bias = bias.tensor;
    call.arguments.dbias = call.dbias.tensor;
    const Results again = run(call.forward);
    EXPECT_EQ(again.o, o.o);
    EXPECT_EQ(again.lse, o.lse);
    const Gradients got = runGradients(call);
    EXPECT_EQ(got.dq, want.dq);
    EXPECT_EQ(got.dk, want.dk);
    EXPECT_EQ(got.dv, want.dv);
    EXPECT_EQ(got.dbias, want.dbias);
  }
}

/// dbias is written where nothing is added up, too.
TEST_P(AttentionBias, NoQueriesAndNoKeys) {
  unsigned number = 0;
  for (const auto &[batch, queries, keys] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{2, 0, 70}, {2, 70, 0}, {0, 70, 70}})
    for (const unsigned of : {4u, 8u, 0u, 12u, 15u}) {
      if (!chosen(number++, 7))
        continue;
      Problem p = with(queries, keys);
      p.batch = batch, p.biasOf = of;
      SCOPED_TRACE(p.text());
      const auto zeros = [](std::int64_t n) { return Numbers(static_cast<std::size_t>(n)); };
      Data d = randomData(p, random);
      PreparedGradients call;
      AttentionBackwardArguments &a = call.arguments;
      const auto given = [&](DType type, const std::vector<std::int64_t> &shape) {
        std::int64_t n = 1;
        for (const std::int64_t e : shape)
          n *= e;
        call.forward.tables.push_back(upload(*on->device, type, shape, zeros(n)));
        return call.forward.tables.back().tensor;
      };
      const std::vector<std::int64_t> ofQ = {batch, queries, 2, 64}, ofK = {batch, keys, 2, 64};
      a.of.q = given(p.type, ofQ), a.of.k = given(p.type, ofK), a.of.v = given(p.type, ofK);
      a.of.o = given(p.type, ofQ), a.of.lse = given(DType::F32, {batch, 2, queries}), a.dO = given(p.type, ofQ);
      a.dq = given(p.type, ofQ), a.dk = given(p.type, ofK), a.dv = given(p.type, ofK);
      a.of.bias = given(DType::F32, p.biasShape());
      const Operand dbias = allocateOutput(*on->device, DType::F32, p.biasShape());
      a.dbias = dbias.tensor;
      const Status s = AttentionBackwardOperation(*on->jit).run(a);
      ASSERT_TRUE(s.ok()) << s.toString();
      for (const Finding &f : on->device->takeFindings())
        ADD_FAILURE() << f.message;
      for (const double e : download(dbias))
        ASSERT_EQ(e, 0);
    }
}

/// Wrong ones are named, with a remedy, before anything is compiled.
TEST_P(AttentionBias, WrongArgumentsAreRefused) {
  Problem p = with(40, 70);
  p.batch = 2, p.biasOf = 15;
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, false, random);
  const Results o = define(p, d);
  const PreparedGradients good = prepare(*on->device, p, d, g, o.o, o.lse);
  const AttentionBackwardOperation backward(*on->jit);
  const AttentionOperation forward(*on->jit);
  ASSERT_TRUE(backward.check(good.arguments).ok()) << backward.check(good.arguments).toString();
  const auto before = on->jit->counters().compiles;
  using A = AttentionBackwardArguments;
  const auto refused = [&](auto change, std::initializer_list<std::string> parts) {
    A a = good.arguments;
    change(a);
    expectRefused(backward.run(a), parts, *parts.begin());
  };
  const auto refusedForward = [&](auto change, std::initializer_list<std::string> parts) {
    AttentionArguments a = good.forward.arguments;
    change(a);
    expectRefused(forward.run(a), parts, *parts.begin());
  };
  using F = AttentionArguments;
  refusedForward([](F &a) { a.bias->dtype = DType::I32; }, {"'bias'", "i32", "f32, f16, bf16"});
  refusedForward([](F &a) { a.bias->rank = 3; }, {"'bias'", "rank"});
  refusedForward([](F &a) { a.bias->device = nullptr; }, {"'bias'"});
  for (const auto &[dim, text] : {std::pair(0u, "2, the batch"), std::pair(1u, "2, the heads of q"),
                                  std::pair(2u, "40, the rows of q"), std::pair(3u, "70, the rows of k")})
    refusedForward([dim = dim](F &a) { a.bias->shape[dim] = 3; },
                   {"attention: argument 'bias' has the extent 3 in dimension " + std::to_string(dim), text});
  refusedForward([](F &a) { a.o.address = a.bias->address; }, {"'o'", "'bias'"});
  refusedForward([](F &a) { a.lse->address = a.bias->address; }, {"'lse'", "'bias'"});
  refused([](A &a) { a.of.bias->shape[2] = 39; }, {"attention_backward: argument 'bias'", "39", "40"});
  refused([](A &a) { a.of.bias.reset(); }, {"attention_backward: argument 'dbias' is given, but no bias is"});
  refused([](A &a) { a.dbias->dtype = DType::F16; }, {"'dbias'", "f16"});
  refused([](A &a) { a.dbias->shape[0] = 1; }, {"'dbias'", "'bias'"});
  refused([](A &a) { a.dbias->strides[1] = 0; }, {"'dbias'", "stride"});
  refused([](A &a) { a.dbias->device = nullptr; }, {"'dbias'"});
  refused([](A &a) { a.dbias->address = a.of.bias->address; }, {"'dbias'", "'bias'"});
  refused([](A &a) { a.dbias->address = a.dq.address; }, {"'dbias'", "'dq'"});
  refused([](A &a) { a.dq.address = a.of.bias->address; }, {"'dq'", "'bias'"});
  Problem packed = p;
  packed.lengthsQ = {40, 30}, packed.lengthsK = {70, 30};
  const Data ofPacked = randomData(packed, random);
  const Results results = define(packed, ofPacked);
  PreparedGradients call =
      prepare(*on->device, packed, ofPacked, randomGradients(packed, false, random), results.o, results.lse);
  call.arguments.maxKeys = 71;
  expectRefused(backward.run(call.arguments), {"'bias'", "at least 71, max_keys"}, "max_keys");
  call.forward.arguments.maxQueries = 41;
  expectRefused(forward.run(call.forward.arguments), {"'bias'", "at least 41, max_queries"}, "max_queries");
  EXPECT_EQ(on->jit->counters().compiles, before);
}

/// Targets that the others leave out: the oldest, and one with instructions of its own for tensors.
TEST(AttentionBiasTargets, OldestAndNewest) {
  if (!openedDevice(deviceNames()[0])->emulated())
    GTEST_SKIP() << "every target's code runs on the emulator of that target";
  struct OnTarget : AttentionBackward {
    void TestBody() override {}
    using AttentionBackward::on, AttentionBackward::compareRandom, AttentionBackward::compare,
        AttentionBackward::random;
  };
  for (const char *target : {"sm_75", "sm_100a"}) {
    const std::unique_ptr<Opened> opened = openWith(std::string("emulator:") + target, {});
    ASSERT_TRUE(opened);
    for (const unsigned of : {14u, 9u}) {
      OnTarget test;
      test.on = opened.get();
      Problem p = with(40, 70, DType::F16);
      p.batch = 2, p.keyHeads = 1, p.biasOf = of, p.biasType = of == 14 ? DType::F16 : DType::F32, p.causal = true;
      p.dropoutP = 0.17f;
      test.compare(p, randomData(p, test.random));
      test.compareRandom(p, true);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionBias, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
