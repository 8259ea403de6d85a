// Every code of every format decodes to the value that its fields say.  Encoding is compared at every point where the
// nearest code changes, at both neighbours of it, and at every 509th fp32 (every 23rd in the full tier) between.  The
// reference knows only the sorted list of values: it walks the floats upwards and moves to the next code when the
// midpoint between two codes is passed, the even code owning the midpoint.
#include "runtime/io/Numbers.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

using namespace kiln;

namespace {

struct Case {
  const char *name;
  FloatFormat format;
};
const Case cases[] = {{"f16", formatF16}, {"bf16", formatBf16}, {"e4m3", formatE4m3}, {"e5m2", formatE5m2}};

class NumbersTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Formats, NumbersTest, testing::ValuesIn(cases),
                         [](const auto &i) { return std::string(i.param.name); });

TEST_P(NumbersTest, DecodesEveryCode) {
  const FloatFormat &f = GetParam().format;
  for (std::uint32_t code = 0; code < 1u << f.bits(); ++code) {
    const std::uint32_t exponent = code >> f.mantissaBits & ((1u << f.exponentBits) - 1);
    const std::uint32_t mantissa = code & ((1u << f.mantissaBits) - 1);
    const bool top = exponent == (1u << f.exponentBits) - 1;
    const double value = decodeFloat(code, f);
    const bool isE4m3 = f.mantissaBits == 3;
    EXPECT_EQ(std::signbit(value), bool(code >> (f.bits() - 1)));
    if (isE4m3 ? top && mantissa == 7 : top && mantissa)
      EXPECT_TRUE(std::isnan(value)) << code;
    else if (!isE4m3 && top)
      EXPECT_TRUE(std::isinf(value)) << code;
    else {
      const double expected =
          (exponent ? 1.0 + mantissa / double(1u << f.mantissaBits) : mantissa / double(1u << f.mantissaBits)) *
          std::pow(2.0, double(exponent ? exponent : 1) - f.bias());
      EXPECT_EQ(std::fabs(value), expected) << code;
    }
    if (!std::isnan(value) && !(std::isinf(value) && f.saturates))
      EXPECT_EQ(encodeFloat(value, f), code);
  }
}

TEST_P(NumbersTest, EncodesEveryFloat) {
  const FloatFormat &f = GetParam().format;
  const std::uint32_t signBit = 1u << (f.bits() - 1);
  // The fp32 values above which the next code is nearest.  All midpoints are exact in fp32 (24 bits hold them).
  const std::uint32_t step = test::pick(509u, 23u);
  std::uint32_t code = 0;
  const auto midpoint = [&](std::uint32_t c) {
    if (c == f.largestFinite) // beyond the last value: half a step further
      return decodeFloat(c, f) + (decodeFloat(c, f) - decodeFloat(c - 1, f)) / 2;
    return (decodeFloat(c, f) + decodeFloat(c + 1, f)) / 2;
  };
  double edge = midpoint(0);
  const std::uint32_t beyond = f.saturates ? f.largestFinite : f.largestFinite + 1;
  std::uint64_t checked = 0;
  const auto check = [&](std::uint32_t bits) {
    const double x = std::bit_cast<float>(bits);
    while (code <= f.largestFinite && (x > edge || (x == edge && (code & 1)))) {
      ++code;
      edge = code <= f.largestFinite ? midpoint(code) : std::numeric_limits<double>::infinity();
    }
    const std::uint32_t expected = code > f.largestFinite ? beyond : code;
    if (encodeFloat(x, f) != expected || encodeFloat(-x, f) != (expected | signBit))
      FAIL() << "bits " << bits << ": " << encodeFloat(x, f) << ", expected " << expected;
    ++checked;
  };
  // Every edge and its two neighbours, in ascending order, and the steps between.
  std::uint32_t at = 0;
  for (std::uint32_t c = 0; c <= f.largestFinite; ++c) {
    const std::uint32_t middle = std::bit_cast<std::uint32_t>(static_cast<float>(midpoint(c)));
    ASSERT_EQ(static_cast<double>(std::bit_cast<float>(middle)), midpoint(c)) << "not exact in fp32: " << c;
    for (; at + 1 < middle; at += std::min(step, middle - 1 - at))
      ASSERT_NO_FATAL_FAILURE(check(at));
    for (std::uint32_t bits = middle ? middle - 1 : 0; bits <= middle + 1; ++bits)
      ASSERT_NO_FATAL_FAILURE(check(bits));
    at = middle + 2;
  }
  for (; at <= 0x7f800000; at += std::min(step, std::max(1u, 0x7f800000 - at))) // infinity included
    ASSERT_NO_FATAL_FAILURE(check(at));
  EXPECT_GT(checked, test::pick<std::uint64_t>(4000000, 90000000));
}

TEST_P(NumbersTest, NanStaysNan) {
  const FloatFormat &f = GetParam().format;
  for (std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffc00000u}) {
    const std::uint32_t code = encodeFloat(std::bit_cast<float>(bits), f);
    EXPECT_TRUE(std::isnan(decodeFloat(code, f)));
    EXPECT_EQ(code >> (f.bits() - 1), f.saturates ? 0 : bits >> 31);
  }
}

TEST_P(NumbersTest, RoundsDoublesOnce) {
  // 1 + half a step + a little: through fp32 the little would be lost and the tie would round down.
  const FloatFormat &f = GetParam().format;
  const double half = std::ldexp(1.0, -static_cast<int>(f.mantissaBits) - 1);
  const std::uint32_t one = encodeFloat(1.0, f);
  EXPECT_EQ(encodeFloat(1.0 + half, f), one);
  EXPECT_EQ(encodeFloat(1.0 + half + std::ldexp(1.0, -40), f), one + 1);
  EXPECT_EQ(encodeFloat(std::numeric_limits<double>::denorm_min(), f), 0u);
  EXPECT_EQ(encodeFloat(-std::numeric_limits<double>::max(), f) & ~(1u << (f.bits() - 1)),
            f.saturates ? f.largestFinite : f.largestFinite + 1);
}

#if defined(__FLT16_MAX__)
TEST(NumbersTest, F16AgreesWithTheCompiler) {
  for (std::uint32_t bits = 0; bits < 0x7f800000; bits += test::pick(4099u, 61u)) {
    const float x = std::bit_cast<float>(bits);
    ASSERT_EQ(encodeFloat(x, formatF16), std::bit_cast<std::uint16_t>(static_cast<_Float16>(x))) << bits;
  }
}
#endif

} // namespace
