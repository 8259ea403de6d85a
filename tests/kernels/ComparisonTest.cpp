//===- ComparisonTest.cpp - Outputs against references, in pieces --------------===//
#include "kernels/support/Comparison.h"
#include "tests/kernels/Bench.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

/// Elements of each allowed to be off by a fourth.
class AnyReference final : public Reference {
public:
  Result<HostTensors> compute(const HostTensors &, const OptionValues &) const override { return HostTensors(); }
  std::vector<double> allowed(std::string_view, DType, const HostTensors &, const HostTensors &reference,
                              const OptionValues &) const override {
    return std::vector<double>(reference.at("out").values.size(), 0.25);
  }
  std::optional<double> allowedRatio(std::string_view) const override { return ratio; }
  std::optional<double> ratio;
};

/// Larger than three of the pieces that threads compare.
constexpr std::uint64_t count = 1000003;

struct Compared {
  HostTensors wanted;
  std::vector<float> values;
  AnyReference reference;

  explicit Compared(std::vector<std::uint64_t> sample = {}) : values(count) {
    for (std::uint64_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(i % 1000);
    HostTensor &out = wanted["out"];
    out.shape = {count};
    out.sample = std::move(sample);
    for (std::uint64_t i = 0; i < (out.sample.empty() ? count : out.sample.size()); ++i)
      out.values.push_back(static_cast<double>(values[out.sample.empty() ? i : out.sample[i]]));
  }
  Comparison operator()() const {
    const auto got = compareWith(wanted, reference, {}, {}, {{"out", kernels::arrayOf({DType::F32, {count}}, values)}});
    EXPECT_TRUE(got.ok());
    return got ? *got : Comparison();
  }
};

TEST(Comparison, FindsWrongElementsOfEveryPiece) {
  Compared all;
  EXPECT_TRUE(all().good());
  EXPECT_EQ(all().elements, count);
  const std::uint64_t wrong[] = {5, 262143, 262144, 700000, count - 1};
  for (const std::uint64_t i : wrong)
    all.values[i] += 1;
  all.values[700000] += 2;
  all.values[77] += 0.125f; // allowed
  const Comparison got = all();
  EXPECT_EQ(got.wrong, std::size(wrong));
  EXPECT_EQ(got.worstIndex, 700000u);
  EXPECT_EQ(got.worstExcess, 12);
  EXPECT_EQ(got.got, 3);
  EXPECT_EQ(got.wanted, 0);
  EXPECT_EQ(got.worstDifference, 3);
}

TEST(Comparison, TheFirstOfEquallyWrongOnes) {
  Compared all;
  all.values[900000] = all.values[300000] = all.values[600000] = NAN;
  const Comparison got = all();
  EXPECT_EQ(got.wrong, 3u);
  EXPECT_EQ(got.worstIndex, 300000u);
  EXPECT_TRUE(std::isinf(got.worstExcess));
}

TEST(Comparison, OfASampleItsElements) {
  std::vector<std::uint64_t> sample;
  for (std::uint64_t i = 1; i < count; i += 3)
    sample.push_back(i);
  Compared some(sample);
  some.values[0] += 1; // not looked at
  some.values[999999] += 1;
  EXPECT_TRUE(some().good());
  EXPECT_EQ(some().elements, sample.size());
  EXPECT_EQ(some().all, count);
  some.values[1 + 3 * 300000] += 1;
  EXPECT_EQ(some().wrong, 1u);
  EXPECT_EQ(some().worstIndex, 900001u);
}

TEST(Comparison, RootMeanSquareOverAllPieces) {
  Compared all;
  for (std::uint64_t i = 0; i < count; ++i)
    all.values[i] += 0.125f;
  all.reference.ratio = 1e-3; // of a root mean square of 577
  EXPECT_TRUE(all().good());
  EXPECT_NEAR(all().ratioExcess, 0.125 / 577.06 / 1e-3, 1e-3);
  all.reference.ratio = 1e-4;
  EXPECT_FALSE(all().good());
}

TEST(RandomArray, LargeOnesAreNoRepetition) {
  const std::uint64_t piece = 1 << 20;
  const Array large = randomArray({DType::F32, {2 * piece + 7}}, 3), small = randomArray({DType::F32, {piece}}, 3);
  EXPECT_TRUE(std::equal(small.data.begin(), small.data.end(), large.data.begin()));
  EXPECT_FALSE(std::equal(small.data.begin(), small.data.end(), large.data.begin() + std::ptrdiff_t(4 * piece)));
  EXPECT_EQ(large.data, randomArray({DType::F32, {2 * piece + 7}}, 3).data);
  EXPECT_NE(large.data, randomArray({DType::F32, {2 * piece + 7}}, 4).data);
}

} // namespace
} // namespace kiln::test
