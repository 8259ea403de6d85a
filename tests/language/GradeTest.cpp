// KernelOptions::grade: the grade of what names none; what names one keeps it, and what has none is not touched.
#include "tests/language/LanguageTesting.h"

#include <gtest/gtest.h>
#include <string_view>

using namespace kiln::language;

namespace {

/// Every operation that has grades, with that one.  One line of source for all grades: the texts are comparable whole.
Kernel graded(Grade ofKernel, Grade g) {
  return kernel("graded", {.grade = ofKernel}, [&](Arg<Pointer<f32>, "x"> p) {
    auto i = range(0, 64);
    auto x = load(p + i);
    auto y = exp(x, g) + exp2(x, g) + expm1(x, g) + log(x, g) + log2(x, g) + log10(x, g) + log1p(x, g) + sin(x, g);
    y = y + cos(x, g) + tanh(x, g) + erf(x, g) + sqrt(x, g) + rsqrt(x, g) + cbrt(x, g) + div(x, y, g) + pow(x, y, g);
    store(p + i, y);
  });
}

/// What has no grade, or no argument for one.
Kernel plain(Grade ofKernel) {
  return kernel("plain", {.grade = ofKernel}, [&](Arg<Pointer<f32>, "x"> p, Arg<i32, "n"> n) {
    auto i = range(0, 64);
    auto x = load(p + i / (n / 3 % 5));
    x = max(floor(x) + ceil(x), abs(x) * x) - fma(x, trunc(x), round(x)) + sum(x) + copysign(x, -x);
    store(p + i, x);
  });
}

std::size_t approximate(const Kernel &k) {
  std::size_t n = 0;
  const std::string_view flag = "fastmath<afn>";
  for (std::size_t at = k.text().find(flag); at != std::string::npos; at = k.text().find(flag, at + 1))
    ++n;
  return n;
}

TEST(Grade, KernelsGradeIsThatOfOperationsWithoutOne) {
  EXPECT_EQ(graded(precise, Grade::OfKernel).text(), graded(precise, precise).text());
  EXPECT_EQ(graded(approx, Grade::OfKernel).text(), graded(precise, approx).text());
  const Kernel k = graded(approx, Grade::OfKernel);
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_NE(k.text(), graded(precise, Grade::OfKernel).text());
  EXPECT_EQ(kiln::test::complaintsOfKilnOpt({k.text()}), "");
}

TEST(Grade, AnOperationsOwnGradeWins) {
  EXPECT_EQ(graded(approx, precise).text(), graded(precise, precise).text());
  EXPECT_EQ(graded(approx, approx).text(), graded(precise, approx).text());
}

TEST(Grade, OtherOperationsHaveNone) {
  ASSERT_TRUE(plain(approx).ok()) << plain(approx).status().toString();
  EXPECT_EQ(plain(approx).text(), plain(precise).text());
}

TEST(Grade, OperatorDivideTakesTheKernels) {
  const auto divided = [](Grade g) {
    return kernel("divided", {.grade = g}, [&](Arg<Pointer<f32>, "x"> p, Arg<f32, "by"> by, Arg<i32, "n"> n) {
      auto x = load(p + range(0, 64));
      x /= by;
      store(p + range(0, 64) / n, 1.0f / x);
    });
  };
  EXPECT_EQ(approximate(divided(approx)), 2u) << divided(approx).text();
  EXPECT_EQ(approximate(divided(precise)), 0u);
  EXPECT_EQ(approximate(kernel("k", {}, [](Arg<Pointer<f32>, "x"> p) { store(p, 1.0f / exp(load(p))); })), 0u)
      << "precise unless the options say otherwise";
}

} // namespace
