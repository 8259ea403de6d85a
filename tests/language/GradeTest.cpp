// KernelOptions::grade, withGrade and the grade of a loop: that of what names none; what names one keeps it, and what
// has none is not touched.
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
  EXPECT_EQ(graded(precise, Grade::OfScope).text(), graded(precise, precise).text());
  EXPECT_EQ(graded(approx, Grade::OfScope).text(), graded(precise, approx).text());
  const Kernel k = graded(approx, Grade::OfScope);
  ASSERT_TRUE(k.ok()) << k.status().toString();
  EXPECT_NE(k.text(), graded(precise, Grade::OfScope).text());
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

/// An exponential in each of these places: before, in, after an inner scope, in the outer one, outside.
Kernel nested(Grade ofKernel, Grade outer, Grade inner) {
  return kernel("nested", {.grade = ofKernel}, [&](Arg<Pointer<f32>, "x"> x) {
    auto y = load(x);
    y = withGrade(outer, [&] {
      const auto before = exp(y);
      const auto in = withGrade(inner, [&] { return exp2(before); });
      return log(in);
    });
    store(x, sqrt(y));
  });
}

/// "exp:0 exp2:1 .." : which functions of the text are approximate.
std::string gradesOf(const Kernel &k) {
  std::string out;
  for (const std::string &line : kiln::test::linesOf(k.text()))
    if (const std::size_t at = line.find("math."); at != std::string::npos)
      out += line.substr(at + 5, line.find(' ', at) - at - 5) +
             (line.find("fastmath<afn>") != std::string::npos ? ":1 " : ":0 ");
  return out;
}

TEST(Grade, TheInnermostScopeWinsAndEndsWithItsBody) {
  EXPECT_EQ(gradesOf(nested(precise, approx, precise)), "exp:1 exp2:0 log:1 sqrt:0 ");
  EXPECT_EQ(gradesOf(nested(approx, precise, approx)), "exp:0 exp2:1 log:0 sqrt:1 ");
  EXPECT_EQ(gradesOf(nested(precise, approx, Grade::OfScope)), "exp:1 exp2:1 log:1 sqrt:0 ");
  EXPECT_EQ(gradesOf(nested(Grade::OfScope, approx, precise)), "exp:1 exp2:0 log:1 sqrt:0 ");
  EXPECT_EQ(gradesOf(kernel(
                "k", {},
                [](Arg<Pointer<f32>, "x"> x) { withGrade(approx, [&] { store(x, exp(exp2(load(x), precise))); }); })),
            "exp2:0 exp:1 ")
      << "an operation's own grade wins";
}

TEST(Grade, OfALoopHoldsInItsBody) {
  const auto looped = [](Grade g) {
    return kernel("looped", {}, [&](Arg<Pointer<f32>, "x"> x, Arg<i32, "n"> n) {
      const auto y = loop(over(0, n).grade(g), exp(load(x)), [&](auto i, auto y) {
        return exp2(loop(over(0, i), y, [&](auto, auto z) { return log(z); }));
      });
      store(x, sqrt(y));
    });
  };
  EXPECT_EQ(gradesOf(looped(approx)), "exp:0 log:1 exp2:1 sqrt:0 ");
  EXPECT_EQ(gradesOf(looped(precise)), "exp:0 log:0 exp2:0 sqrt:0 ");
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
