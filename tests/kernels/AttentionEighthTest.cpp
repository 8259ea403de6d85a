//===- AttentionEighthTest.cpp - Attention forward of 8-bit floats -------------------===//
//
// q, k and v are e4m3, o is bf16; factors of each sequence and key head say what the numbers stand for.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionHarness.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

Problem eighth(std::int64_t queries, std::int64_t keys, std::int64_t dim = 64, std::int64_t dimV = 64) {
  Problem p = with(queries, keys, DType::F8E4M3);
  p.dim = dim, p.dimV = dimV, p.descale = true;
  return p;
}

TEST_P(AttentionForward, EighthLengthsAndMasks) {
  unsigned number = 0;
  for (const auto &[Q, K] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 128}, {3, 97}, {113, 203}, {128, 128}, {200, 70}})
    for (unsigned mask = 0; mask < 3; ++mask) {
      if (!chosen(number++, 9))
        continue;
      Problem p = eighth(Q, K);
      p.causal = mask == 1, p.descale = mask != 1, p.heads = mask ? 4 : 2;
      if (mask == 2)
        p.left = 17, p.right = 5;
      both(p);
    }
}

TEST_P(AttentionForward, EighthHeadDims) {
  unsigned number = 0;
  for (const auto &[dim, dimV] : {std::pair<std::int64_t, std::int64_t>{16, 16},
                                  {48, 48},
                                  {96, 96},
                                  {128, 128},
                                  {192, 128},
                                  {256, 256},
                                  {64, 144}}) {
    if (!chosen(number++, 7))
      continue;
    Problem p = eighth(150, 290, dim, dimV);
    p.causal = number % 2;
    both(p);
  }
}

/// Factors belong to a sequence, whether it is packed or a row of a batch, and rows that are not used are NaN.
TEST_P(AttentionForward, EighthSequences) {
  Problem packed = eighth(0, 0, 128, 128);
  packed.lengthsQ = {33, 0, 70}, packed.lengthsK = {90, 20, 64}, packed.usedK = {80, 20, 64};
  packed.heads = 4, packed.causal = true;
  both(packed);
  Problem dense = eighth(40, 150);
  dense.batch = 3, dense.heads = 3, dense.keyHeads = 1, dense.usedK = {150, 0, 77}, dense.sink = true;
  both(dense);
}

/// The factors stand before the cap, and slopes come after both.
TEST_P(AttentionForward, EighthLogits) {
  Problem p = eighth(70, 150);
  p.softcap = 15, p.alibi = GetParam() % 2;
  both(p);
}

/// Factors without a step between sequences and heads, as of one number for a tensor.
TEST_P(AttentionForward, EighthFactorsMayRepeat) {
  Problem p = eighth(50, 90);
  p.batch = 2;
  Data d = randomData(p, random);
  for (Numbers *of : {&d.descaleQ, &d.descaleK, &d.descaleV})
    std::fill(of->begin(), of->end(), of->front());
  const PreparedCall each = prepare(*on->device, p, d);
  compare(p, d, run(each));
  PreparedCall one = prepare(*on->device, p, d);
  for (std::optional<Tensor> *t : {&one.arguments.descaleQ, &one.arguments.descaleK, &one.arguments.descaleV})
    (*t)->strides[0] = (*t)->strides[1] = 0;
  EXPECT_EQ(run(each).o, run(one).o);
}

/// A head whose factors are 0 sees all keys alike; one whose product is below 0 is no number.
TEST_P(AttentionForward, EighthFactorsOfZeroAndBelow) {
  Problem p = eighth(30, 100);
  Data d = randomData(p, random);
  d.descaleQ[0] = 0;
  compare(p, d);
  d.descaleQ[0] = -1;
  const Results got = run(p, d);
  for (std::size_t i = 0; i < got.o.size(); ++i)
    ASSERT_EQ(std::isnan(got.o[i]), i / 64 % 2 == 0) << i;
}

/// Logits far above what a float's exponent holds at once, and the largest numbers of the type.
TEST_P(AttentionForward, EighthLargeNumbers) {
  Problem p = eighth(40, 130);
  Data d = randomData(p, random);
  for (Numbers *of : {&d.q, &d.k})
    for (double &v : *of)
      v = v < 0 ? -448 : 448;
  compare(p, d);
}

TEST_P(AttentionForward, EighthErrors) {
  const auto failure = [&](const AttentionArguments &a) { return AttentionOperation(*on->jit).run(a).toString(); };
  const auto has = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos ? testing::AssertionSuccess() : testing::AssertionFailure() << text;
  };
  const Problem p = eighth(8, 8);
  const PreparedCall good = prepare(*on->device, p, randomData(p, random));
  AttentionArguments a = good.arguments;
  a.o.dtype = DType::F16;
  EXPECT_TRUE(has(failure(a), "argument 'o' has dtype f16, allowed: bf16"));
  a = good.arguments;
  a.descaleK->shape[1] = 1;
  EXPECT_TRUE(has(failure(a), "'k_descale'"));
  a = good.arguments;
  a.q.shape[3] = a.k.shape[3] = 40;
  EXPECT_TRUE(has(failure(a), "'q' has the head dim 40: a multiple of 16 from 16 to 256"));
  Problem half = p;
  half.type = DType::F16;
  const PreparedCall other = prepare(*on->device, half, randomData(half, random));
  EXPECT_TRUE(has(failure(other.arguments), "q_descale is given, q is f16: it belongs to f8e4m3"));
}

} // namespace
} // namespace kiln::test
