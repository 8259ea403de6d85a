//===- DualTest.cpp - Derivatives that the front end makes, against differences in float64 ---===//
#include "kernels/support/KernelTable.h"
#include "tests/kernels/Bench.h"
#include "tests/kernels/Operand.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace language;

/// A number of the host under the same names.
struct Host {
  double v;
  Host(double v) : v(v) {}
  friend Host operator+(Host a, Host b) { return a.v + b.v; }
  friend Host operator-(Host a, Host b) { return a.v - b.v; }
  friend Host operator*(Host a, Host b) { return a.v * b.v; }
  friend Host operator/(Host a, Host b) { return a.v / b.v; }
  friend Host operator-(Host a) { return -a.v; }
  Host &operator+=(Host b) { return *this = *this + b; }
  Host &operator-=(Host b) { return *this = *this - b; }
  Host &operator*=(Host b) { return *this = *this * b; }
  Host &operator/=(Host b) { return *this = *this / b; }
  friend bool operator>(Host a, Host b) { return a.v > b.v; }
  friend bool operator<(Host a, Host b) { return a.v < b.v; }
#define KILN_HOST(name)                                                                                                \
  friend Host name(Host a) { return std::name(a.v); }
  KILN_HOST(exp)
  KILN_HOST(exp2)
  KILN_HOST(expm1)
  KILN_HOST(log)
  KILN_HOST(log2)
  KILN_HOST(log10)
  KILN_HOST(log1p)
  KILN_HOST(sin)
  KILN_HOST(cos)
  KILN_HOST(tanh)
  KILN_HOST(erf)
  KILN_HOST(sqrt)
  KILN_HOST(cbrt)
  KILN_HOST(abs)
  KILN_HOST(floor)
  KILN_HOST(ceil)
  KILN_HOST(trunc)
#undef KILN_HOST
  friend Host rsqrt(Host a) { return 1 / std::sqrt(a.v); }
  friend Host select(bool condition, Host a, Host b) { return condition ? a : b; }
  friend Host max(Host a, Host b) { return std::max(a.v, b.v); }
  friend Host min(Host a, Host b) { return std::min(a.v, b.v); }
  friend Host maximum(Host a, Host b) { return std::max(a.v, b.v); }
  friend Host minimum(Host a, Host b) { return std::min(a.v, b.v); }
  friend Host div(Host a, Host b) { return a.v / b.v; }
  friend Host pow(Host a, Host b) { return std::pow(a.v, b.v); }
  friend Host fma(Host a, Host b, Host c) { return a.v * b.v + c.v; }
};

/// Functions of one number, for the host and for duals; y = 1.75 comes as a tile of the device.
template <typename F> void eachFunction(F &&f) {
  f("sums", [](const auto &x, const auto &y) { return 2 - x + (y - x * 3) + x - 0.5f; });
  f("products", [](const auto &x, const auto &y) { return x * x * y * (x + 1) * 0.25f; });
  f("quotients", [](const auto &x, const auto &y) { return x / (x + 2) + 1 / x - y / x + x / y; });
  f("negation", [](const auto &x, const auto &y) { return -(x * x) + y; });
  f("assignment", [](const auto &x, const auto &y) {
    auto z = x;
    z += y, z *= x, z -= 1.5f, z /= x + 3;
    return z;
  });
  f("exp", [](const auto &x, const auto &) { return exp(x * 0.5f) + exp2(x) + expm1(x); });
  f("log", [](const auto &x, const auto &) { return log(x) + log2(x) * x + log10(x) - log1p(x); });
  f("circles", [](const auto &x, const auto &y) { return sin(x * y) - cos(x); });
  f("tanh", [](const auto &x, const auto &) { return 3 * tanh(x / 3) + erf(x - 1); });
  f("roots", [](const auto &x, const auto &) { return sqrt(x) + rsqrt(x) * x * x + cbrt(x + 1); });
  f("abs", [](const auto &x, const auto &y) { return abs(x - y) * x; });
  f("steps", [](const auto &x, const auto &) { return floor(x) * x + ceil(x) + trunc(x) * x; });
  f("choice", [](const auto &x, const auto &y) { return select(x > y, x * x, 2 * x) + select(x < 1, y, x); });
  f("extremes",
    [](const auto &x, const auto &y) { return max(x, y) * x + min(x * x, 3) + maximum(x, y) + minimum(x * 2, y); });
  f("pow", [](const auto &x, const auto &y) { return pow(x, y) + pow(1.5f, x) + pow(x, x) + pow(x, 3); });
  f("fma", [](const auto &x, const auto &y) { return fma(x, x, y) + fma(y, x, x) + div(x, y); });
}

/// out[0] = f(x), out[1] = f'(x).
template <typename F> language::Kernel kernelOf(F f, std::int64_t n) {
  return kernel("dual", {}, [&](TensorArg<f32, 1, "x"> x, TensorArg<f32, 2, "out"> out) {
    const auto at = loadView(x.tiles({n}), {0});
    const auto y = full<f32>({n}, 1.75);
    const Dual<f32> result = f(variable(at), y);
    storeView(out.at(0, all).tiles({n}), {0}, result.value);
    storeView(out.at(1, all).tiles({n}), {0}, slopeOf(result));
    // The value is that of the function itself.
    storeView(out.at(2, all).tiles({n}), {0}, f(at, y));
  });
}

class Duals : public testing::TestWithParam<std::size_t> {};

TEST_P(Duals, AreDerivatives) {
  Opened *const on = openedDevice(deviceNames()[GetParam()]);
  ASSERT_TRUE(on);
  constexpr std::int64_t n = 64;
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < n; ++i)
    numbers.push_back(rounded(0.13 + 0.047 * static_cast<double>(i), DType::F32));
  const Operand x = upload(*on->device, DType::F32, {n}, numbers);
  eachFunction([&](const char *name, auto f) {
    SCOPED_TRACE(name);
    const auto source = sourceOf(kernelOf(f, n));
    ASSERT_TRUE(source.ok()) << source.status().toString();
    const auto kernel = on->jit->kernel(*source);
    ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
    const Operand out = allocateOutput(*on->device, DType::F32, {3, n});
    const Status s = (*kernel)->launch({1}, nullptr, named<"x">(x.tensor), named<"out">(out.tensor));
    ASSERT_TRUE(s.ok()) << s.toString();
    const std::vector<double> got = download(out);
    for (std::size_t i = 0; i < n; ++i) {
      const double at = numbers[i], y = 1.75, h = 1e-6;
      const auto of = [&](double x) { return f(Host(x), Host(y)).v; };
      const double value = of(at), slope = (of(at + h) - of(at - h)) / (2 * h);
      EXPECT_NEAR(got[i], value, 1e-5 * (1 + std::abs(value))) << "at " << at;
      EXPECT_NEAR(got[n + i], slope, 3e-5 * (1 + std::abs(slope))) << "slope at " << at;
      EXPECT_EQ(got[i], got[2 * n + i]) << "at " << at;
    }
  });
}

/// What does not depend on the variable has a slope of 0; a corner has that of the side which gives the value.
TEST_P(Duals, ConstantsAndCorners) {
  Opened *const on = openedDevice(deviceNames()[GetParam()]);
  ASSERT_TRUE(on);
  const auto slopes = [&](auto f) {
    const std::vector<double> numbers = {-1, 0, 1, 2};
    const Operand x = upload(*on->device, DType::F32, {4}, numbers),
                  out = allocateOutput(*on->device, DType::F32, {3, 4});
    const auto source = sourceOf(kernelOf(f, 4));
    EXPECT_TRUE(source.ok()) << source.status().toString();
    const auto kernel = on->jit->kernel(*source);
    EXPECT_TRUE(kernel.ok()) << kernel.status().toString();
    EXPECT_TRUE((*kernel)->launch({1}, nullptr, named<"x">(x.tensor), named<"out">(out.tensor)).ok());
    const std::vector<double> got = download(out);
    return std::vector<double>(got.begin() + 4, got.begin() + 8);
  };
  using List = std::vector<double>;
  EXPECT_EQ(slopes([](const auto &, const auto &y) { return y * 2; }), (List{0, 0, 0, 0}));
  EXPECT_EQ(slopes([](const auto &x, const auto &) { return round(x); }), (List{0, 0, 0, 0}));
  EXPECT_EQ(slopes([](const auto &x, const auto &) { return abs(x); }), (List{-1, 0, 1, 1}));
  EXPECT_EQ(slopes([](const auto &x, const auto &) { return max(x, 0); }), (List{0, 1, 1, 1}));
  EXPECT_EQ(slopes([](const auto &x, const auto &) { return max(0, x); }), (List{0, 0, 1, 1}));
  EXPECT_EQ(slopes([](const auto &x, const auto &) { return min(x * 3, x * x * x); }), (List{3, 3, 3, 3}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Duals, testing::Values<std::size_t>(0),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
