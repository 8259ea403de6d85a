// Recordings are independent of threads, locale and each other; misuse is an error or nothing, never a crash.
#include "tests/language/LanguageTesting.h"

#include "kernels/layer_norm/LayerNorm.h"
#include "kernels/softmax/Softmax.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <iostream>
#include <locale>
#include <stdexcept>
#include <thread>

using namespace kiln::language;

namespace {

Kernel sample() {
  return kernel("sample", {.config = {{"scale", 1234567.5}, {"size", 1234567}}},
                [&](Arg<Pointer<f32>, "x"> x, Arg<i64, "n"> n) {
                  auto i = cast<i64>(range(0, 2048)) + cast<i64>(programId()) * 2048;
                  auto y = load(x + i, i < n) * 1234567.5 + 0.1f;
                  store(x + i, y / sum(y), i < n);
                });
}

TEST(Recording, IsTheSameOnEightThreads) {
  const std::string text = sample().text();
  const std::string softmax = kiln::kernels::softmax(DType::BF16, {.looping = true}).text();
  ASSERT_FALSE(text.empty());
  ASSERT_FALSE(softmax.empty());
  std::vector<int> different(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < kiln::test::pick(50, 2000); ++round) {
        different[t] += sample().text() != text;
        different[t] += kiln::kernels::softmax(DType::BF16, {.looping = true}).text() != softmax;
      }
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(different, std::vector<int>(8));
}

struct Commas : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Recording, IsTheSameInEveryLocale) {
  const std::string text = sample().text();
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Commas));
  const std::string withCommas = sample().text();
  unsigned installed = 0;
  for (const char *name : {"de_DE.UTF-8", "fr_FR.UTF-8", "ar_SA.UTF-8"})
    if (std::setlocale(LC_ALL, name)) {
      ++installed;
      EXPECT_EQ(sample().text(), text) << name;
    }
  std::setlocale(LC_ALL, "C");
  std::locale::global(before);
  EXPECT_EQ(withCommas, text);
  std::cout << "locales of the C library tried: " << installed << "\n";
}

TEST(Recording, InsideAnotherIsAnErrorOfTheInnerOne) {
  Kernel inner;
  bool innerRan = false;
  const Kernel outer = kernel("outer", {}, [&](Arg<Pointer<f32>, "x"> x) {
    store(x, 1);
    inner = kernel("inner", {}, [&](Arg<Pointer<f32>, "x"> y) { innerRan = true; });
    store(x + 1, 2);
  });
  EXPECT_FALSE(innerRan);
  ASSERT_FALSE(inner.ok());
  EXPECT_NE(inner.status().message().find("inside the body of another"), std::string::npos) << inner.status().message();
  EXPECT_FALSE(inner.status().remedy().empty());
  ASSERT_TRUE(outer.ok()) << outer.status().toString();
  EXPECT_NE(outer.text().find("arith.constant 2.0"), std::string::npos);
}

TEST(Recording, ValuesOfAnotherKernelAreRefused) {
  Scalar<f32> kept;
  Tile<f32> tile;
  const Kernel first = kernel("first", {}, [&](Arg<f32, "a"> a) {
    kept = a + 1;
    tile = splat(kept, {8});
  });
  ASSERT_TRUE(first.ok());
  const Kernel second = kernel("second", {}, [&](Arg<Pointer<f32>, "x"> x, Arg<f32, "b"> b) { store(x, kept); });
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("belongs to another kernel"), std::string::npos)
      << second.status().message();
  EXPECT_EQ(tile.shape(), Shape{1});

  // From another thread, where the other recording may have had the same number.
  Kernel third;
  std::thread([&] {
    (void)kernel("warm", {}, [&](Arg<f32, "a"> a) {});
    third = kernel("third", {}, [&](Arg<Pointer<f32>, "x"> x) { store(x, kept); });
  }).join();
  EXPECT_FALSE(third.ok());
}

TEST(Recording, OutsideOfAKernelNothingHappens) {
  auto x = range(0, 32) + 1;
  auto y = loop(over(0, 3), x, [](auto i, auto x) { return x + i; });
  auto [a, b] = split(join(y, y));
  store(Pointer<i32>() + a, sum(b) + 1);
  devicePrint("x", y);
  EXPECT_EQ(y.shape(), Shape{1});
  const Kernel k = kernel("uses", {}, [&](Arg<Pointer<i32>, "p"> p) { store(p + y, y); });
  EXPECT_FALSE(k.ok());
}

TEST(Recording, AnExceptionOfTheBodyPassesAndLeavesNothingBehind) {
  const auto thrower = [] {
    (void)kernel("throws", {},
                 [&](Arg<i32, "n"> n) { loop(over(0, n), [&](auto i) { throw std::runtime_error("mine"); }); });
  };
  EXPECT_THROW(thrower(), std::runtime_error);
  EXPECT_TRUE(sample().ok());
}

TEST(Recording, ArgumentsMayBeAssignedAndScopesEnd) {
  const Kernel k = kernel("k", {}, [&](Arg<Pointer<f32>, "x"> x, Arg<i32, "n"> n) {
    n = n + 1;
    n *= 2;
    x = x + n;
    store(x, 1);
  });
  EXPECT_TRUE(k.ok()) << k.status().toString();
}

TEST(Recording, TakesMicroseconds) {
  // About fifty operations.
  const auto record = [] {
    return kernel("fifty", {}, [&](Arg<Pointer<f32>, "x"> x, Arg<i32, "n"> n) {
      auto i = range(0, 1024);
      auto y = load(x + i, i < n);
      for (int k = 0; k < 20; ++k)
        y = y * 1.5f + cast<f32>(n);
      store(x + i, y, i < n);
    });
  };
  const Kernel k = record();
  ASSERT_TRUE(k.ok());
  const auto operations = kiln::test::linesOf(k.text()).size();
  std::vector<double> microseconds;
  for (int round = 0; round < 200; ++round) {
    const auto start = std::chrono::steady_clock::now();
    (void)record().ok();
    microseconds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(microseconds.begin(), microseconds.end());
  std::cout << "recording " << operations << " lines: median " << microseconds[100] << " us, fastest "
            << microseconds[0] << " us, per line " << microseconds[100] / static_cast<double>(operations) << " us\n";
  EXPECT_LT(microseconds[0], 20.0 * static_cast<double>(operations)); // far off on any machine
}

} // namespace
