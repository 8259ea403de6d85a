// Constants against an oracle that searches all bit patterns of a format for the nearest number.
#include "compiler/language/Literals.h"
#include "tests/language/LanguageTesting.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <random>

using namespace kiln::language;

namespace {

struct Format {
  DType element;
  int exponentBits, mantissaBits;
  bool finite;
};

/// The number that the bits stand for, straight from the definition of the format.
double decode(const Format &f, std::uint32_t bits) {
  const int width = 1 + f.exponentBits + f.mantissaBits;
  const double sign = bits >> (width - 1) & 1 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> f.mantissaBits) & ((1 << f.exponentBits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << f.mantissaBits) - 1);
  const int bias = (1 << (f.exponentBits - 1)) - 1, top = (1 << f.exponentBits) - 1;
  if (exponent == top && (f.finite ? mantissa == (1 << f.mantissaBits) - 1 : true))
    return mantissa && true ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - bias - f.mantissaBits);
  return sign * std::ldexp((1 << f.mantissaBits) + mantissa, exponent - bias - f.mantissaBits);
}

/// What MLIR reads: a hexadecimal literal is bits, a decimal one a double, rounded (here: exact) to the type.
std::optional<double> readBack(const Format &f, const std::string &literal) {
  if (literal.starts_with("0x")) {
    if (literal.size() != 2 + bitsOf(f.element) / 4)
      return std::nullopt;
    return decode(f, static_cast<std::uint32_t>(std::stoul(literal.substr(2), nullptr, 16)));
  }
  if (literal.find('.') == std::string::npos)
    return std::nullopt;
  double v = 0;
  const auto [end, error] = std::from_chars(literal.data(), literal.data() + literal.size(), v);
  return error == std::errc() && end == literal.data() + literal.size() ? std::optional(v) : std::nullopt;
}

class SmallFloat : public testing::TestWithParam<Format> {};

TEST_P(SmallFloat, EveryNumberIsItself) {
  const Format &f = GetParam();
  for (std::uint32_t bits = 0; bits < (1u << bitsOf(f.element)); ++bits) {
    const double v = decode(f, bits);
    std::string literal;
    ASSERT_TRUE(appendLiteral(literal, f.element, v)) << v;
    const auto back = readBack(f, literal);
    ASSERT_TRUE(back) << literal;
    if (std::isnan(v))
      ASSERT_TRUE(std::isnan(*back)) << literal;
    else
      ASSERT_EQ(std::bit_cast<std::uint64_t>(*back), std::bit_cast<std::uint64_t>(v)) << literal << " for " << v;
  }
}

TEST_P(SmallFloat, OthersRoundToTheNearestEven) {
  const Format &f = GetParam();
  std::vector<std::pair<double, std::uint32_t>> numbers; // the non-negative finite ones, ascending by bits and value
  for (std::uint32_t bits = 0; bits < (1u << (bitsOf(f.element) - 1)); ++bits)
    if (std::isfinite(decode(f, bits)))
      numbers.emplace_back(decode(f, bits), bits);
  std::mt19937_64 random(7);
  const auto check = [&](double v) {
    const auto above = std::upper_bound(numbers.begin(), numbers.end(), std::pair(v, ~0u));
    const auto below = above - 1;
    std::string literal;
    const bool fits = appendLiteral(literal, f.element, v);
    if (above == numbers.end()) {
      // Above the largest number: rounds to it below the half way to where the next one would be.
      const double step = numbers.back().first - numbers[numbers.size() - 2].first;
      ASSERT_EQ(fits, v < numbers.back().first + step / 2) << v << " " << literal;
      if (fits)
        ASSERT_EQ(readBack(f, literal), numbers.back().first) << v;
      return;
    }
    ASSERT_TRUE(fits) << v;
    const double low = v - below->first, high = above->first - v;
    const double want = low < high || (low == high && below->second % 2 == 0) ? below->first : above->first;
    ASSERT_EQ(readBack(f, literal), want) << v << " " << literal;
  };
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) { // ties, and their neighbours
    const double half = (numbers[i].first + numbers[i + 1].first) / 2;
    check(half);
    check(std::nextafter(half, INFINITY));
    check(std::nextafter(half, 0.0));
  }
  for (int i = 0; i < kiln::test::pick(20000, 2000000); ++i) {
    const double scale = std::ldexp(1.0, static_cast<int>(random() % 60) - 30);
    check(static_cast<double>(random() >> 11) * 0x1p-53 * scale);
  }
  check(numbers.back().first * 1.5);
  check(1e300);
}

INSTANTIATE_TEST_SUITE_P(Each, SmallFloat,
                         testing::Values(Format{DType::F16, 5, 10, false}, Format{DType::BF16, 8, 7, false},
                                         Format{DType::F8E4M3, 4, 3, true}, Format{DType::F8E5M2, 5, 2, false}),
                         [](const auto &info) { return std::string(elementName(info.param.element)); });

TEST(Literal, F32IsTheCastOfC) {
  std::mt19937_64 random(11);
  for (int i = 0; i < kiln::test::pick(100000, 5000000); ++i) {
    const double v = std::bit_cast<double>((random() & ~(0x7FFull << 52)) | ((random() % 320 + 860) << 52));
    std::string literal;
    const float want = static_cast<float>(v);
    ASSERT_EQ(appendLiteral(literal, DType::F32, v), std::isfinite(want)) << v;
    if (!std::isfinite(want))
      continue;
    const float back =
        literal.starts_with("0x")
            ? std::bit_cast<float>(static_cast<std::uint32_t>(std::stoul(literal.substr(2), nullptr, 16)))
            : std::stof(literal);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back), std::bit_cast<std::uint32_t>(want)) << literal;
  }
}

std::string literal(DType e, detail::Constant c) {
  std::string out;
  return appendLiteral(out, e, c) ? out : "refused";
}

TEST(Literal, WhatTheyLookLike) {
  EXPECT_EQ(literal(DType::F32, 1), "1.0");
  EXPECT_EQ(literal(DType::F32, -0.5), "-0.5");
  EXPECT_EQ(literal(DType::F32, 0.1), "0x3DCCCCCD");
  EXPECT_EQ(literal(DType::F32, -0.0), "0x80000000");
  EXPECT_EQ(literal(DType::F32, INFINITY), "0x7F800000");
  EXPECT_EQ(literal(DType::F32, -INFINITY), "0xFF800000");
  EXPECT_EQ(literal(DType::F32, NAN), "0x7FC00000");
  EXPECT_EQ(literal(DType::F32, 3e38), "0x7F61B1E6");
  EXPECT_EQ(literal(DType::F32, 3.5e38), "refused");
  EXPECT_EQ(literal(DType::F64, 0.1), "0x3FB999999999999A");
  EXPECT_EQ(literal(DType::F64, 5e-324), "0x0000000000000001");
  EXPECT_EQ(literal(DType::BF16, INFINITY), "0x7F80");
  EXPECT_EQ(literal(DType::F16, 65520), "refused");
  EXPECT_EQ(literal(DType::F16, 65519), "0x7BFF");
  EXPECT_EQ(literal(DType::F8E4M3, INFINITY), "refused");
  EXPECT_EQ(literal(DType::F8E4M3, 448), "448.0");
  EXPECT_EQ(literal(DType::F8E4M3, 465), "refused");
  EXPECT_EQ(literal(DType::I8, -128), "-128");
  EXPECT_EQ(literal(DType::I8, 128), "refused");
  EXPECT_EQ(literal(DType::U8, 255), "-1");
  EXPECT_EQ(literal(DType::U8, 256), "refused");
  EXPECT_EQ(literal(DType::U64, ~0ull), "-1");
  EXPECT_EQ(literal(DType::I64, ~0ull), "refused");
  EXPECT_EQ(literal(DType::I64, INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(literal(DType::I32, INT32_MIN), "-2147483648");
  EXPECT_EQ(literal(DType::I1, true), "true");
}

TEST(Literal, QuotedTextIsEscaped) {
  std::string out;
  appendQuoted(out, std::string_view("a\"b\\c\n\x7F\0d", 9));
  EXPECT_EQ(out, R"("a\"b\\c\0A\7F\00d")");
}

} // namespace
