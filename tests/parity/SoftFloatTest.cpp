//===- SoftFloatTest.cpp - The oracle against this machine's arithmetic ----===//
#include "tests/parity/SoftFloat.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <random>

namespace kiln::softfloat {

namespace {

struct HostRounding {
  explicit HostRounding(int mode) { std::fesetround(mode); }
  ~HostRounding() { std::fesetround(FE_TONEAREST); }
};

template <typename T, typename Bits> void checkAgainstHost(const Format &f, int hostMode, Rounding mode) {
  std::mt19937_64 rng(7);
  auto same = [&](const char *what, T host, const Value &v, Bits a, Bits b, Bits c) {
    Bits got = Bits(pack(f, v, mode));
    if (std::isnan(host) ? !isNan(f, got) : got != std::bit_cast<Bits>(host))
      ADD_FAILURE() << what << " " << std::hex << a << " " << b << " " << c << " gives " << got << ", host "
                    << std::bit_cast<Bits>(host);
  };
  for (int i = 0; i < 40000; ++i) {
    Bits a = Bits(rng()), b = Bits(rng()), c = Bits(rng());
    if (i % 2) { // exponents near each other: cancellation
      Bits exponent = Bits(f.infinity());
      b = Bits((b & ~exponent) | (a & exponent));
    }
    if (i % 7 == 0)
      a = Bits(a & (f.fractionMask() | f.signBit())); // subnormal
    volatile T x = std::bit_cast<T>(a), y = std::bit_cast<T>(b), z = std::bit_cast<T>(c);
    volatile T sum, product, fused, quotient, root;
    {
      HostRounding rounding(hostMode);
      sum = x + y;
      product = x * y;
      fused = std::fma(x, y, z);
      quotient = x / y;
      root = std::sqrt(x);
    }
    Value u = unpack(f, a), v = unpack(f, b), w = unpack(f, c);
    same("add", sum, add(u, v, mode), a, b, c);
    same("multiply", product, multiply(u, v), a, b, c);
    same("fma", fused, fma(u, v, w, mode), a, b, c);
    same("divide", quotient, divide(u, v), a, b, c);
    same("squareRoot", root, squareRoot(u), a, b, c);
  }
}

constexpr std::pair<int, Rounding> modes[] = {{FE_TONEAREST, Rounding::NearestEven},
                                              {FE_TOWARDZERO, Rounding::TowardZero},
                                              {FE_DOWNWARD, Rounding::Down},
                                              {FE_UPWARD, Rounding::Up}};

TEST(SoftFloat, SingleEqualsHost) {
  for (auto [host, mode] : modes)
    checkAgainstHost<float, std::uint32_t>(single, host, mode);
}

TEST(SoftFloat, DoubleEqualsHost) {
  for (auto [host, mode] : modes)
    checkAgainstHost<double, std::uint64_t>(real, host, mode);
}

TEST(SoftFloat, HalfConversionEqualsCompiler) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    auto h = std::bit_cast<_Float16>(std::uint16_t(bits));
    if (isNan(half, bits))
      continue;
    EXPECT_EQ(toDouble(half, bits), double(h));
    EXPECT_EQ(pack(half, unpack(half, bits), Rounding::NearestEven), bits);
  }
  std::mt19937_64 rng(11);
  for (int i = 0; i < 200000; ++i) {
    std::uint32_t bits = std::uint32_t(rng());
    if (i % 2)
      bits = (bits & 0x87ffffff) | 0x38000000; // the range of half
    float v = std::bit_cast<float>(bits);
    if (std::isnan(v))
      continue;
    EXPECT_EQ(pack(half, unpack(single, bits), Rounding::NearestEven), std::bit_cast<std::uint16_t>(_Float16(v))) << v;
  }
}

TEST(SoftFloat, SmallFormats) {
  auto to = [](const Format &f, double v) {
    return pack(f, unpack(real, std::bit_cast<std::uint64_t>(v)), Rounding::NearestEven, true);
  };
  EXPECT_EQ(toDouble(e4m3, 0x7e), 448.0);
  EXPECT_EQ(toDouble(e5m2, 0x7b), 57344.0);
  EXPECT_EQ(toDouble(e4m3, 0x01), 0x1p-9);
  EXPECT_EQ(to(e4m3, 1e9), 0x7eu);
  EXPECT_EQ(to(e4m3, -1e9), 0xfeu);
  EXPECT_EQ(to(e4m3, 464.0), 0x7eu);
  EXPECT_EQ(to(e4m3, 0x1p-10), 0u); // a tie goes to even: zero
  EXPECT_EQ(to(e4m3, 0x1.1p-10), 1u);
  EXPECT_EQ(to(e5m2, std::numeric_limits<double>::infinity()), 0x7bu);
  EXPECT_EQ(to(e5m2, std::nan("")), 0x7fu);
}

TEST(SoftFloat, Integers) {
  auto value = [](double v) { return unpack(real, std::bit_cast<std::uint64_t>(v)); };
  auto whole = [&](double v, Rounding r) { return toDouble(real, pack(real, roundToInteger(value(v), r), r)); };
  EXPECT_EQ(whole(2.5, Rounding::NearestEven), 2.0);
  EXPECT_EQ(whole(3.5, Rounding::NearestEven), 4.0);
  EXPECT_EQ(whole(-2.1, Rounding::Down), -3.0);
  EXPECT_EQ(whole(2.1, Rounding::Up), 3.0);
  EXPECT_TRUE(std::signbit(whole(-0.3, Rounding::NearestEven)));
  EXPECT_EQ(toInteger(value(1e30), INT64_MIN, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(std::int64_t(toInteger(value(-1e30), INT64_MIN, INT64_MAX)), INT64_MIN);
  EXPECT_EQ(std::int64_t(toInteger(value(-5.0), -4, 4)), -4);
  EXPECT_EQ(compare(value(1.0), value(2.0)), -1);
  EXPECT_EQ(compare(value(-1.0), value(-2.0)), 1);
  EXPECT_EQ(compare(value(0.0), value(-0.0)), 0);
}

} // namespace

} // namespace kiln::softfloat
