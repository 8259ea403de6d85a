#include "support/ParseNumber.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

using namespace kiln;

namespace {

TEST(ParseNumber, TheWholeTextIsTheNumber) {
  EXPECT_EQ(parseNumber<std::int64_t>("-42"), -42);
  EXPECT_EQ(parseNumber<std::uint64_t>("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parseNumber<std::int64_t>("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parseNumber<std::uint32_t>("fF", 16), 255u);
  EXPECT_EQ(parseNumber<double>("-2.5e-3"), -2.5e-3);
  EXPECT_EQ(parseNumber<double>("inf"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parseNumber<double>("nan").value_or(0)));
}

TEST(ParseNumber, AnythingElseIsNone) {
  for (const char *text : {"", " 1", "1 ", "+1", "1x", "1.0", "0x10", "1e3", "-", "4294967296"})
    EXPECT_FALSE(parseNumber<std::uint32_t>(text)) << text;
  EXPECT_FALSE(parseNumber<std::uint32_t>("-1"));
  EXPECT_FALSE(parseNumber<std::int64_t>("9223372036854775808"));
  EXPECT_FALSE(parseNumber<std::uint32_t>("0x10", 16));
  for (const char *text : {"", "x", "1,5", "+1", "1e400", "1 "})
    EXPECT_FALSE(parseNumber<double>(text)) << text;
}

} // namespace
