// Random numbers of kernels: Philox as its authors give it, the same bits as on the host whatever the tile, the layout
// and the target, and of the distributions that they are said to have.
#include "compiler/language/Language.h"
#include "support/Philox.h"
#include "tests/lowering/Text.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

namespace lang = kiln::language;
using lang::Arg, lang::Pointer, lang::f32, lang::i32, lang::i64, lang::u32, lang::u64;

constexpr const char *allTargets[] = {"sm_75",  "sm_80",   "sm_86",   "sm_87",   "sm_89",  "sm_90",  "sm_90a",
                                      "sm_100", "sm_100a", "sm_103a", "sm_110a", "sm_120", "sm_120a"};

/// Counter, key and words of the generator's own tests (kat_vectors of Random123).
struct Known {
  std::array<std::uint32_t, 4> counter;
  std::array<std::uint32_t, 2> key;
  std::array<std::uint32_t, 4> words;
};
constexpr Known known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(Random, KnownAnswersOnTheHost) {
  for (const Known &k : known)
    EXPECT_EQ(philox::rounds<philox::HostArithmetic>(k.counter, k.key), k.words);
  EXPECT_EQ(philox::words(0, 0), known[0].words);
  // What Triton's randint4x(42, 0) and (42, 1) give.
  EXPECT_EQ(philox::words(42, 0), (std::array{2632642643u, 2012563771u, 314527917u, 1463989207u}));
  EXPECT_EQ(philox::words(42, 1), (std::array{4242219303u, 1404726525u, 2207210094u, 1951270651u}));
}

TEST(Random, KnownAnswersInAKernel) {
  const lang::Kernel k = lang::kernel("k", {.warps = 1}, [](Arg<Pointer<u32>, "x"> x, Arg<Pointer<u32>, "out"> out) {
    std::array<lang::Scalar<u32>, 4> counter;
    for (int i = 0; i < 4; ++i)
      counter[static_cast<unsigned>(i)] = lang::load(x + i);
    const auto words =
        lang::philox4x32(counter, std::array<lang::Scalar<u32>, 2>{lang::load(x + 4), lang::load(x + 5)});
    for (int i = 0; i < 4; ++i)
      lang::store(out + i, words[static_cast<unsigned>(i)]);
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  for (const char *target : loweringTargets)
    for (const Known &row : known) {
      Emulator gpu(target);
      std::vector<std::uint32_t> in(row.counter.begin(), row.counter.end());
      in.insert(in.end(), row.key.begin(), row.key.end());
      Buffer &x = gpu.upload(in), &out = gpu.allocate(16);
      (void)out.poison(std::byte(0xCD));
      ASSERT_EQ(runKernel(gpu, target, k.text(), 1, {x, out}, {}, From::Tile).error, "");
      EXPECT_EQ(gpu.download<std::uint32_t>(out), std::vector(row.words.begin(), row.words.end())) << target;
    }
}

/// For `rows` x `columns` offsets from `first` on: rand4, randn4 and randint4 (as bits), each [4, rows, columns].
template <lang::Element Offset> lang::Kernel numbers(std::int64_t rows, std::int64_t columns, int warps) {
  return lang::kernel("k", {.warps = warps},
                      [&](Arg<Pointer<f32>, "out"> out, Arg<u64, "seed"> seed, Arg<Offset, "first"> first) {
                        const std::int64_t n = rows * columns;
                        const auto at = lang::expandDims(lang::range(0, rows), 1) * columns +
                                        lang::expandDims(lang::range(0, columns), 0);
                        const auto offsets = first + lang::cast<Offset>(at);
                        const auto uniform = lang::rand4(seed, offsets), normal = lang::randn4(seed, offsets);
                        const auto integer = lang::randint4(seed, offsets, -3, 1000);
                        for (unsigned i = 0; i < 4; ++i) {
                          lang::store(out + (at + i * n), uniform[i]);
                          lang::store(out + (at + (4 + i) * n), normal[i]);
                          lang::store(out + (at + (8 + i) * n), lang::bitcast<f32>(integer[i]));
                        }
                      });
}

/// The words of offset `first` + i one after the other, as `numbers` stores what becomes of them.
std::vector<std::uint32_t> onHost(std::size_t n, std::uint64_t seed, std::uint64_t first) {
  using A = philox::HostArithmetic;
  std::vector<std::uint32_t> out(12 * n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto w = philox::words(seed, first + i);
    const auto a = philox::normals<A>(w[0], w[1]), b = philox::normals<A>(w[2], w[3]);
    const float normal[] = {a[0], a[1], b[0], b[1]};
    for (std::size_t j = 0; j < 4; ++j) {
      out[j * n + i] = std::bit_cast<std::uint32_t>(philox::uniform<A>(w[j]));
      out[(4 + j) * n + i] = std::bit_cast<std::uint32_t>(normal[j]);
      out[(8 + j) * n + i] = static_cast<std::uint32_t>(philox::integer<A>(w[j], -3, 1003));
    }
    EXPECT_EQ(out[i], std::bit_cast<std::uint32_t>(philox::rand(seed, first + i)));
    EXPECT_EQ(out[4 * n + i], std::bit_cast<std::uint32_t>(philox::randn(seed, first + i)));
    EXPECT_EQ(out[8 * n + i], static_cast<std::uint32_t>(philox::randint(seed, first + i, -3, 1000)));
  }
  return out;
}

template <lang::Element Offset, typename Number>
void check(const char *target, std::int64_t rows, std::int64_t columns, int warps, std::uint64_t seed, Number first) {
  SCOPED_TRACE(std::string(target) + ", " + std::to_string(rows) + "x" + std::to_string(columns) + ", " +
               std::to_string(warps) + " warps, seed " + std::to_string(seed) + ", from " + std::to_string(first));
  const lang::Kernel k = numbers<Offset>(rows, columns, warps);
  ASSERT_TRUE(k.ok()) << k.status().toString();
  const auto n = static_cast<std::size_t>(rows * columns);
  Emulator gpu(target);
  Buffer &out = gpu.allocate(12 * n * sizeof(float));
  (void)out.poison(std::byte(0xCD));
  ASSERT_EQ(runKernel(gpu, target, k.text(), static_cast<unsigned>(warps), {out, seed, first}, {}, From::Tile).error,
            "");
  const auto got = gpu.download<std::uint32_t>(out), wanted = onHost(n, seed, static_cast<std::uint64_t>(first));
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], wanted[i]) << "element " << i % n << ", output " << i / n;
}

TEST(Random, SameBitsAsOnTheHost) {
  std::mt19937_64 random(3);
  for (const char *target : allTargets) {
    check<i32>(target, 1, 64, 2, random(), std::int32_t(random() >> 34));
    check<i64>(target, 8, 16, 1, random(), std::int64_t(random()));
  }
  // Tiles of other shapes and warps; offsets of each type, across what 32 bits hold.
  check<i32>("sm_90a", 16, 12, 4, 1, std::int32_t(-100));
  check<i64>("sm_90a", 16, 12, 8, 1, std::int64_t(-100));
  check<u32>("sm_80", 32, 8, 4, ~0ull, std::uint32_t(0) - 256);
  check<i64>("sm_80", 8, 32, 1, 1ull << 32, (std::int64_t(1) << 32) - 100);
  check<u64>("sm_75", 2, 32, 1, 0, ~std::uint64_t(0) - 63);
}

TEST(Random, ScalarsAndSeedsFromCxxNumbers) {
  const lang::Kernel k =
      lang::kernel("k", {.warps = 1}, [](Arg<Pointer<f32>, "out"> out, Arg<i32, "n"> n, Arg<i64, "seed"> seed) {
        lang::store(out, lang::rand(5, n));
        lang::store(out + 1, lang::randn(seed, n));
        lang::store(out + 2, lang::bitcast<f32>(lang::randint(-1, n, INT32_MIN, std::int64_t(INT32_MAX))));
        const auto bits = lang::randbits4(5, n);
        lang::store(out + 3, lang::bitcast<f32>(bits[3]));
      });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  Emulator gpu("sm_80");
  Buffer &out = gpu.allocate(16);
  (void)out.poison(std::byte(0xCD));
  ASSERT_EQ(runKernel(gpu, "sm_80", k.text(), 1, {out, std::int32_t(77), std::int64_t(-9)}, {}, From::Tile).error, "");
  const auto got = gpu.download<std::uint32_t>(out);
  EXPECT_EQ(got[0], std::bit_cast<std::uint32_t>(philox::rand(5, 77)));
  EXPECT_EQ(got[1], std::bit_cast<std::uint32_t>(philox::randn(static_cast<std::uint64_t>(-9), 77)));
  EXPECT_EQ(got[2], static_cast<std::uint32_t>(philox::randint(~0ull, 77, INT32_MIN, INT32_MAX)));
  EXPECT_EQ(got[3], philox::words(5, 77)[3]);
}

TEST(Random, NormalNumbersAreThoseOfFloat64) {
  std::mt19937_64 random(5);
  double worst = 0;
  const auto check = [&](std::uint32_t x, std::uint32_t y) {
    const auto got = philox::normals<philox::HostArithmetic>(x, y);
    // The radius' argument as an f32 has it, which is part of the definition.
    const double u = std::fma(static_cast<float>(x), 0x1p-32f, 0x1p-33f), turn = y * 0x1p-32 * 2 * M_PI;
    const double radius = std::sqrt(-2 * std::log(u));
    worst = std::max({worst, std::abs(got[0] - radius * std::cos(turn)), std::abs(got[1] - radius * std::sin(turn))});
  };
  for (int i = 0; i < 1'000'000; ++i)
    check(static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random()));
  for (const std::uint32_t x : {0u, 1u, 255u, 0x7fffffffu, 0x80000000u, 0xffffff00u, 0xffffffffu})
    for (std::uint32_t y = 0;; y += 0x10000000u) {
      for (const std::uint32_t near : {y - 1, y, y + 1})
        check(x, near);
      if (y == 0xf0000000u)
        break;
    }
  EXPECT_LT(worst, 1.5e-6); // radii up to 6.76, half an ulp of which is 2.4e-7
  EXPECT_GT(worst, 1e-9);
  EXPECT_EQ(philox::normals<philox::HostArithmetic>(0xffffffffu, 0u)[0], 0.0f);
  EXPECT_NEAR(philox::normals<philox::HostArithmetic>(0u, 0u)[0], std::sqrt(66 * std::log(2.0)), 1e-6);
}

TEST(Random, Distributions) {
  constexpr int n = 1'000'000;
  double sum = 0, squares = 0, normal = 0, normalSquares = 0, fourth = 0;
  std::vector<int> dice(6);
  float low = 1, high = 0;
  for (int i = 0; i < n; ++i) {
    const float u = philox::rand(42, static_cast<std::uint64_t>(i)),
                g = philox::randn(43, static_cast<std::uint64_t>(i));
    low = std::min(low, u), high = std::max(high, u);
    sum += u, squares += u * u, normal += g, normalSquares += g * g, fourth += std::pow(g, 4);
    ++dice[static_cast<std::size_t>(philox::randint(44, static_cast<std::uint64_t>(i), 1, 7) - 1)];
  }
  EXPECT_GE(low, 0);
  EXPECT_LT(high, 1);
  // Five standard deviations of each estimate.
  const double root = 5 / std::sqrt(double(n));
  EXPECT_NEAR(sum / n, 0.5, root * std::sqrt(1. / 12));
  EXPECT_NEAR(squares / n, 1. / 3, root * std::sqrt(4. / 45));
  EXPECT_NEAR(normal / n, 0, root);
  EXPECT_NEAR(normalSquares / n, 1, root * std::sqrt(2.));
  EXPECT_NEAR(fourth / n, 3, root * std::sqrt(96.));
  for (const int count : dice)
    EXPECT_NEAR(count / double(n), 1. / 6, root * std::sqrt(5. / 36));
  EXPECT_LT(philox::uniform<philox::HostArithmetic>(~0u), 1);
}

} // namespace
} // namespace kiln::test
