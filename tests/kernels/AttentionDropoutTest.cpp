//===- AttentionDropoutTest.cpp - Which probabilities dropout keeps, forward and backward ---===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/support/TestTier.h"

#include "kernels/attention/Dropout.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

//===----------------------------------------------------------------------===//
// The bits
//===----------------------------------------------------------------------===//

/// Whether pairs of a call are kept, [sequences, heads, rows, keys].
std::vector<bool> keptPairs(const Dropout &dropout, std::uint32_t sequences, std::uint32_t heads, std::uint32_t rows,
                            std::uint32_t keys) {
  std::vector<bool> out;
  for (std::uint32_t b = 0; b < sequences; ++b)
    for (std::uint32_t h = 0; h < heads; ++h)
      for (std::uint32_t i = 0; i < rows; ++i)
        for (std::uint32_t j = 0; j < keys; ++j)
          out.push_back(dropout.keeps(b, h, i, j));
  return out;
}

/// The bits of a call of today are those of any later one.
TEST(AttentionDropoutBits, AreTheSameForEver) {
  std::uint64_t hash = 0;
  for (const bool kept : keptPairs(Dropout(0.5f, 1, 2), 2, 3, 40, 50))
    hash = hash * 6364136223846793005u + kept + 1;
  EXPECT_EQ(hash, 2549342150774428529u); // from a program of its own, by the definition
}

/// Shares of what is dropped, and how often neighbours (in keys, rows, heads and sequences, and those whose bits one
/// counter makes) are dropped together: within 4.5 standard deviations of independent ones.
TEST(AttentionDropoutBits, SharesAndNeighbours) {
  constexpr std::uint32_t B = 3, H = 4, R = 160, K = 200;
  for (const float p : {0.03125f, 0.17f, 0.5f, 0.9f}) {
    const std::vector<bool> kept = keptPairs(Dropout(p, 41, 0), B, H, R, K);
    const auto at = [&](std::uint32_t b, std::uint32_t h, std::uint32_t i, std::uint32_t j) {
      return kept[((b * H + h) * R + i) * K + j] ? 0.0 : 1.0;
    };
    const double q = std::round(p * 0x1p16) * 0x1p-16;
    const auto within = [&](double mean, double expected, double n, const std::string &what) {
      EXPECT_NEAR(mean, expected, 4.5 * std::sqrt(expected * (1 - expected) / n)) << p << " " << what;
    };
    double all = 0;
    for (const bool k : kept)
      all += !k;
    within(all / static_cast<double>(kept.size()), q, static_cast<double>(kept.size()), "all");
    for (std::uint32_t h = 0; h < H; ++h) {
      double ofHead = 0;
      for (std::uint32_t i = 0; i < R; ++i)
        for (std::uint32_t j = 0; j < K; ++j)
          ofHead += at(1, h, i, j);
      within(ofHead / (R * K), q, R * K, "head " + std::to_string(h));
    }
    using Step = std::array<std::uint32_t, 4>;
    for (const Step &s : {Step{0, 0, 0, 1}, Step{0, 0, 0, 2}, Step{0, 0, 0, 8}, Step{0, 0, 0, 9}, Step{0, 0, 0, 16},
                          Step{0, 0, 1, 0}, Step{0, 0, 8, 0}, Step{0, 0, 16, 0}, Step{0, 0, 8, 1}, Step{0, 0, 8, 8},
                          Step{0, 0, 8, 9}, Step{0, 0, 1, 1}, Step{0, 1, 0, 0}, Step{1, 0, 0, 0}, Step{1, 1, 0, 0}}) {
      double both = 0, n = 0;
      for (std::uint32_t b = 0; b + s[0] < B; ++b)
        for (std::uint32_t h = 0; h + s[1] < H; ++h)
          for (std::uint32_t i = 0; i + s[2] < R; ++i)
            for (std::uint32_t j = 0; j + s[3] < K; ++j, ++n)
              both += at(b, h, i, j) * at(b + s[0], h + s[1], i + s[2], j + s[3]);
      // Pairs of neighbours overlap: their sum varies up to three times as much as of independent ones.
      EXPECT_NEAR(both / n, q * q, 4.5 * std::sqrt(3 * q * q * (1 - q * q) / n))
          << p << " step " << s[0] << " " << s[1] << " " << s[2] << " " << s[3];
    }
  }
}

/// Another seed, or another offset, in either half: other bits, as independent as any.
TEST(AttentionDropoutBits, SeedsAndOffsetsGiveOthers) {
  using Numbers64 = std::pair<std::uint64_t, std::uint64_t>;
  const std::vector<bool> usual = keptPairs(Dropout(0.5f, 1, 2), 1, 2, 64, 64);
  EXPECT_EQ(keptPairs(Dropout(0.5f, 1, 2), 1, 2, 64, 64), usual);
  const auto n = static_cast<double>(usual.size());
  for (const auto &[seed, offset] : {Numbers64{2, 2}, Numbers64{1, 3}, Numbers64{2, 1}, Numbers64{1 | 1ull << 32, 2},
                                     Numbers64{1, 2 | 1ull << 32}, Numbers64{1 | 1ull << 63, 2}}) {
    const std::vector<bool> other = keptPairs(Dropout(0.5f, seed, offset), 1, 2, 64, 64);
    double same = 0;
    for (std::size_t i = 0; i < usual.size(); ++i)
      same += usual[i] == other[i];
    EXPECT_NEAR(same / n, 0.5, 4.5 * std::sqrt(0.25 / n)) << seed << " " << offset;
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

class AttentionDropout : public AttentionBackward {
protected:
  /// Which pairs the forward kernels keep: q is 0, and v one-hot, so that o shows every key of a row by itself.
  std::vector<bool> keptBy(const Problem &p, const Tiling &tiling) {
    EXPECT_GE(p.dimV, p.keys);
    const Data d = probeData(p, 0, random);
    PreparedCall call = prepare(*on->device, p, d);
    call.arguments.tiling = tiling;
    std::vector<bool> out;
    const Results got = run(call);
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t h = 0; h < p.heads; ++h)
        for (std::int64_t i = 0; i < p.queries; ++i)
          for (std::int64_t j = 0; j < p.keys; ++j)
            out.push_back(got.o[static_cast<std::size_t>(((b * p.queries + i) * p.heads + h) * p.dimV + j)] != 0);
    return out;
  }
};

/// The bits of the host's definition, whatever the tiles.
TEST_P(AttentionDropout, EveryTileKeepsTheSamePairs) {
  Problem p = with(150, 120);
  p.dimV = 128, p.batch = 2, p.heads = 4, p.dropoutP = 0.3f;
  const std::vector<bool> want = keptPairs(Dropout(p.dropoutP, p.seed, p.dropoutOffset), 2, 4, 150, 120);
  std::vector<Tiling> tilings(1);
  for (const auto &[m, n, warps] : {std::tuple(16, 16, 1), std::tuple(64, 32, 4), std::tuple(128, 64, 4),
                                    std::tuple(32, 128, 2), std::tuple(128, 128, 8), std::tuple(64, 16, 8)}) {
    Tiling &t = tilings.emplace_back();
    t.blockM = m, t.blockN = n, t.warps = warps;
  }
  for (unsigned i = 0; i < tilings.size(); ++i)
    if (chosen(i, 4))
      EXPECT_EQ(keptBy(p, tilings[i]), want) << deviceName() << " " << i;
}

/// The backward kernels keep the pairs that the forward ones did: k is 0 and do one-hot, so that dv shows every row of
/// a key by itself; tiles of all kinds.
TEST_P(AttentionDropout, TheBackwardKeepsTheSamePairs) {
  Problem p = with(120, 150);
  p.dimV = 128, p.dropoutP = 0.3f, p.heads = p.keyHeads = 2;
  ProbeOfGradients made = probeOf(p, GradientProbe::A, 0, random);
  const Dropout dropout(p.dropoutP, p.seed, p.dropoutOffset);
  unsigned number = 0;
  for (const auto &[m, n, warps] :
       {std::tuple(0, 0, 0), std::tuple(16, 16, 1), std::tuple(64, 64, 4), std::tuple(32, 128, 8)}) {
    if (!chosen(number++, 4))
      continue;
    PreparedGradients call = prepare(*on->device, p, made.d, made.g, made.o, made.lse);
    call.arguments.ofKeys.blockM = m, call.arguments.ofKeys.blockN = n, call.arguments.ofKeys.warps = warps;
    const Gradients got = runGradients(call);
    for (std::uint32_t h = 0; h < 2; ++h)
      for (std::uint32_t i = 0; i < 120; ++i)
        for (std::uint32_t j = 0; j < 150; ++j)
          ASSERT_EQ(got.dv[(j * 2 + h) * 128 + i] != 0, dropout.keeps(0, h, i, j)) << h << " " << i << " " << j;
  }
}

/// Masks, groups of heads, types, options and packed sequences, with dropout; forward and backward.
TEST_P(AttentionDropout, AgreesWithFloat64) {
  for (unsigned number = 0; number < 8; ++number) {
    if (!chosen(number, 8))
      continue;
    Problem p = with(70, 90, number % 2 ? DType::F16 : DType::BF16);
    p.dropoutP = number == 3 ? 0.6f : 0.17f;
    p.seed += number, p.dropoutOffset = number == 5 ? 1ull << 40 : number;
    p.heads = 4, p.keyHeads = number % 3 ? 2 : 4, p.batch = number < 5 ? 2 : 1;
    p.causal = number % 4 == 1;
    if (number % 4 == 2)
      p.left = 20, p.right = 9;
    if (number == 4)
      p.dim = p.dimV = 128, p.heads = p.keyHeads = 2;
    if (number >= 5)
      p.biasOf = 2 * number, p.biasType = DType::F16;
    if (number == 6)
      p.softcap = 15, p.scale = 0.125f;
    p.sink = number % 3 == 1, p.alibi |= number == 7;
    if (number < 5) // without a bias, so that logits stand in their other units
      p.softcap = number == 1 ? 15 : 0, p.scale = number == 1 ? 0.125f : 0, p.alibi = number == 2 || number == 3;
    if (number == 5)
      p.lengthsQ = {0, 33, 70, 5}, p.lengthsK = {9, 90, 64, 0}, p.usedK = {4, 90, 11, 0};
    Data d = randomData(p, random);
    poisonUnused(p, d);
    compare(p, d);
    compareGradientsOf(p, d, number % 2);
  }
}

/// lse is that of the call without dropout; a share of 0 is that call, bit for bit, and compiles nothing.
TEST_P(AttentionDropout, AShareOf0IsNone) {
  Problem p = with(70, 90);
  p.causal = true;
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, false, random);
  p.seed = p.dropoutOffset = 0;
  const Results none = run(p, d);
  const PreparedGradients call = prepared(p, d, g);
  const Gradients gradients = runGradients(call);
  const auto before = on->jit->counters().compiles;
  p.seed = 99, p.dropoutOffset = 3;
  const Results zero = run(p, d);
  EXPECT_EQ(zero.o, none.o);
  EXPECT_EQ(zero.lse, none.lse);
  const Gradients same = runGradients(prepare(*on->device, p, d, g, call.o.values, call.lse.values));
  EXPECT_EQ(same.dq, gradients.dq);
  EXPECT_EQ(same.dk, gradients.dk);
  EXPECT_EQ(same.dv, gradients.dv);
  EXPECT_EQ(on->jit->counters().compiles, before);
  p.dropoutP = 0.5f;
  const Results half = run(p, d);
  EXPECT_EQ(half.lse, none.lse);
  EXPECT_NE(half.o, none.o);
}

TEST_P(AttentionDropout, SharesOutsideOf0To1AreRefused) {
  Problem p = with(40, 40);
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, false, random);
  PreparedGradients call = prepared(p, d, g);
  const auto before = on->jit->counters().compiles;
  for (const auto &[share, text] : {std::pair(1.0f, "1"), std::pair(-0.1f, "-0.1"), std::pair(std::nanf(""), "nan"),
                                    std::pair(std::numeric_limits<float>::infinity(), "inf")}) {
    call.forward.arguments.dropoutP = call.arguments.of.dropoutP = share;
    expectRefused(AttentionOperation(*on->jit).run(call.forward.arguments),
                  {"attention: dropout_p = " + std::string(text), "below 1"}, "forward");
    expectRefused(AttentionBackwardOperation(*on->jit).run(call.arguments), {"attention_backward: dropout_p = "},
                  "backward");
  }
  EXPECT_EQ(on->jit->counters().compiles, before);
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionDropout, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
