//===- AttentionLogitsTest.cpp - Attention forward with large logits ---------===//
//
// Logits that float32 holds exactly, so large that their rounding to base 2 would be seen: each product of a query and
// a key has at most two terms.  The result is that of the definition in float64.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionHarness.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

constexpr double largestFloat = 3.4028234663852886e38;

/// Queries and keys whose products are `common` + `own(key)`, both of which are products of two 16-bit numbers with
/// `commonQ` and `ownQ`.
template <typename Own>
Data twoTerms(const Problem &p, std::mt19937_64 &random, double commonQ, double commonK, double ownQ, Own own) {
  Data d = randomData(p, random);
  std::fill(d.q.begin(), d.q.end(), 0.0);
  std::fill(d.k.begin(), d.k.end(), 0.0);
  for (std::size_t i = 0; i < d.q.size(); i += static_cast<std::size_t>(p.dim))
    d.q[i + 3] = rounded(commonQ, p.type), d.q[i + 20] = rounded(ownQ, p.type);
  for (std::size_t i = 0; i < d.k.size(); i += static_cast<std::size_t>(p.dim)) {
    const auto key = static_cast<std::int64_t>(i) / p.dim / p.keyHeads;
    d.k[i + 3] = rounded(commonK, p.type), d.k[i + 20] = rounded(own(key), p.type);
  }
  return d;
}

class LargeLogits : public AttentionForward {
protected:
  /// Against float64 with no more than the rounding of the weights and of o allowed.
  void exact(const Problem &p, const Data &d) {
    SCOPED_TRACE(deviceName() + ": " + p.text());
    const Results got = run(p, d), want = define(p, d);
    double most = 0;
    for (const double v : d.v)
      most = std::max(most, std::abs(v));
    for (std::size_t i = 0; i < want.o.size(); ++i)
      ASSERT_NEAR(got.o[i], want.o[i], most * (p.type == DType::BF16 ? 0x1p-7 : 0x1p-10)) << i;
    for (std::size_t i = 0; p.lse && i < want.lse.size(); ++i)
      if (std::abs(want.lse[i]) > largestFloat)
        ASSERT_EQ(got.lse[i], std::copysign(INFINITY, want.lse[i])) << i;
      else
        ASSERT_NEAR(got.lse[i], want.lse[i], 1e-4 + 1e-6 * std::abs(want.lse[i])) << i;
  }
};

/// A large part that all keys share, and small ones that decide: weights are neither 0 nor 1 up to 2^24.  The keys come
/// in any order, or each better than the one before.
TEST_P(LargeLogits, DifferencesDecide) {
  unsigned number = 0;
  for (const int power : {8, 13, 14, 16, 20, 22, 24})
    for (const bool negative : {false, true})
      for (const bool growing : {false, true}) {
        if (!chosen(number++, 7))
          continue;
        Problem p = with(20, 200, number % 2 ? DType::BF16 : DType::F16);
        p.scale = 1;
        // 2^power + own is exact in 24 bits.
        const double unit = std::ldexp(1, std::max(-4, power - 22));
        std::uniform_int_distribution<int> some(-static_cast<int>(6 / std::min(unit, 6.0)), 0);
        const Data d = twoTerms(p, random, std::ldexp(negative ? -1 : 1, power / 2), std::ldexp(1, power - power / 2),
                                unit, [&](std::int64_t key) {
                                  return growing ? static_cast<double>(key / 4) : static_cast<double>(some(random));
                                });
        exact(p, d);
      }
}

/// Keys that are equal share their weight, whatever its size, and in whatever block they lie; a larger one takes all.
TEST_P(LargeLogits, EqualOnesShare) {
  unsigned number = 0;
  for (const int power : {12, 20, 28, 31, 33, 40, 80, 120})
    for (const int distinct : {1, 3}) {
      if (!chosen(number++, 4))
        continue;
      Problem p = with(20, 300, DType::BF16);
      p.causal = number % 2, p.scale = std::ldexp(1.0f, power / 2);
      std::uniform_int_distribution<int> some(1, distinct);
      exact(p, twoTerms(p, random, 0, 0, std::ldexp(1, power - power / 2 - 2),
                        [&](std::int64_t) { return some(random); }));
    }
}

/// Scales up to the largest that is taken: the largest product has all the weight, and lse is infinite where it is no
/// float.
TEST_P(LargeLogits, Scales) {
  for (const float scale : {1e20f, 1e37f, 2e38f})
    for (const DType type : {DType::F16, DType::BF16}) {
      Problem p = with(17, 130, type);
      p.scale = scale;
      exact(p,
            twoTerms(p, random, 0, 0, 1.5, [&](std::int64_t key) { return static_cast<double>(key * 37 % 128) - 64; }));
    }
}

/// Random data of any amplitude: the weights' sum is 1, and lse about the largest logit.
TEST_P(LargeLogits, Amplitudes) {
  for (const double amplitude : {2e4, 5e4, 1e5, 1e6, 1e12, 1e18}) {
    Problem p = with(40, 130, DType::BF16);
    Data d = randomData(p, random);
    for (Numbers *const x : {&d.q, &d.k})
      for (double &e : *x)
        e = rounded(e * amplitude, p.type);
    std::fill(d.v.begin(), d.v.end(), 1.0);
    const Results got = run(p, d), want = define(p, d);
    for (const double o : got.o)
      ASSERT_NEAR(o, 1, 0x1p-7) << amplitude;
    // Sums of 64 products are rounded here, and there not.
    for (std::size_t i = 0; i < want.lse.size(); ++i)
      ASSERT_NEAR(got.lse[i], want.lse[i], 1e-5 * std::abs(want.lse[i])) << amplitude << " " << i;
  }
}

TEST_P(LargeLogits, Options) {
  const auto keys = [&](std::int64_t key) { return static_cast<double>(key * 37 % 64) - 32; };
  unsigned number = 0;
  for (const float cap : {1e5f, 1e10f, 1e30f, 2e38f}) {
    Problem p = with(17, 130, number++ % 2 ? DType::F16 : DType::BF16);
    p.softcap = cap, p.scale = cap / 16; // tanh is near the ends of its range, its values 2^-11 exact
    Data d = twoTerms(p, random, 0, 0, 1, keys);
    std::fill(d.v.begin(), d.v.end(), 1.0);
    const Results got = run(p, d), want = define(p, d);
    for (const double o : got.o)
      ASSERT_NEAR(o, 1, 0x1p-7) << cap;
    for (std::size_t i = 0; i < want.lse.size(); ++i)
      ASSERT_NEAR(got.lse[i], want.lse[i], 1e-3 * cap) << cap;
  }
  for (const double sink : {-3e38, -1e30, 1e5, 1e10, 1e30, 3e38}) {
    Problem p = with(17, 130, number++ % 2 ? DType::F16 : DType::BF16);
    p.sink = true, p.scale = sink == 1e5 ? 3125 : 0; // the largest of the logits is the sink
    Data d = twoTerms(p, random, 0, 0, 1, keys);
    if (sink == 1e5)
      for (double &k : d.k)
        k += k == 31 ? 1 : 0;
    std::fill(d.sink.begin(), d.sink.end(), static_cast<float>(sink));
    exact(p, d);
  }
  for (const double slope : {1e5, 1e30, 3e38, -1e5}) {
    Problem p = with(65, 65, number++ % 2 ? DType::F16 : DType::BF16);
    p.alibi = true;
    Data d = twoTerms(p, random, 0, 0, 1, keys);
    std::fill(d.alibi.begin(), d.alibi.end(), static_cast<float>(slope));
    exact(p, d);
  }
}

/// A quotient of scale and cap that float32 does not hold.
TEST_P(LargeLogits, CapsOutOfRangeAreRefused) {
  const Problem p = with(16, 16, DType::F16);
  PreparedCall call = prepare(*on->device, p, randomData(p, random));
  AttentionOperation operation(*on->jit);
  for (const auto &[cap, scale] : {std::pair(3.4e38f, 1.0f), {1e38f, 1e-3f}, {1e-3f, 1e38f}, {1e-40f, 1e-40f}}) {
    call.arguments.softcap = cap, call.arguments.scale = scale;
    const Status s = operation.run(call.arguments);
    ASSERT_FALSE(s.ok()) << cap << " " << scale;
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument) << s.toString();
    EXPECT_NE(s.message().find("softcap = "), std::string::npos) << s.toString();
    EXPECT_NE(s.message().find("scale = "), std::string::npos) << s.toString();
    EXPECT_FALSE(s.remedy().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LargeLogits, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
