// Loops that do several rounds at once: the copies that were asked for, and the rounds of a plain loop, for bounds that
// the compiler knows and that it does not.
#include "compiler/language/Language.h"
#include "runtime/io/Numbers.h"
#include "tests/lowering/Text.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

namespace lang = kiln::language;
using lang::Arg, lang::Pointer, lang::f16, lang::f32, lang::i32, lang::i64, lang::u32;

std::size_t occurrences(const std::string &text, const std::string &word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

/// A round of a hash of the counter, which depends on the order; LLVM merges and repeats none of them: clock.
template <lang::Element T> auto round(lang::Scalar<T> i, lang::Scalar<u32> hash) {
  (void)lang::inlinePtxWithEffects<u32()>("mov.u32 $0, %clock;");
  return hash * 1664525u + lang::cast<u32>(i) + 1013904223u;
}
template <typename T> std::uint32_t onHost(T begin, T end, T step, std::uint32_t hash = 1) {
  for (T i = begin; i < end; i += step)
    hash = hash * 1664525u + static_cast<std::uint32_t>(i) + 1013904223u;
  return hash;
}

template <lang::Element T> lang::Kernel unknown(int copies) {
  return lang::kernel(
      "k", {.warps = 1},
      [&](Arg<Pointer<u32>, "out"> out, Arg<T, "begin"> begin, Arg<T, "end"> end, Arg<T, "step"> step) {
        lang::store(out, lang::loop(lang::over(begin, end, step).unroll(copies), lang::constant<u32>(1), round<T>));
      });
}

template <lang::Element T, typename N> void check(const char *target) {
  constexpr N least = std::numeric_limits<N>::min(), most = std::numeric_limits<N>::max();
  for (const int copies : {1, 2, 3, 4, 7}) {
    const lang::Kernel k = unknown<T>(copies);
    ASSERT_TRUE(k.ok()) << k.status().toString();
    const LoweredKernel code = lowered(k.text(), target, false, From::Tile);
    ASSERT_TRUE(code.ok) << code.errors;
    EXPECT_EQ(occurrences(code.ptx, "%clock"), copies == 1 ? 1u : static_cast<unsigned>(copies) + 1) << code.ptx;
    // A counter that wraps round makes any loop endless: after the last round it still is a number.
    std::vector<std::array<N, 3>> bounds{{5, 5, 1},
                                         {5, -5, 1},
                                         {most, least, 1},
                                         {most, least, most},
                                         {least, least + 10, 3},
                                         {most - 9, most - 2, 3},
                                         {0, 1, most},
                                         {least, 0, most / 3},
                                         {least, most - most / 2, most / 2},
                                         {0, most - most / 5, most / 5}};
    for (N rounds = 0; rounds <= 2 * copies + 1; ++rounds)
      for (const N step : {N(1), N(3)})
        bounds.push_back({-2, static_cast<N>(-2 + rounds * step), step});
    for (const auto &[begin, end, step] : bounds) {
      Emulator gpu(target);
      Buffer &out = gpu.allocate(4);
      (void)out.poison(std::byte(0xCD));
      ASSERT_EQ(runKernel(gpu, target, k.text(), 1, {out, begin, end, step}, {}, From::Tile).error, "");
      ASSERT_EQ(gpu.download<std::uint32_t>(out)[0], onHost<N>(begin, end, step))
          << target << ", " << copies << " copies of " << begin << " to " << end << " by " << step;
    }
  }
}

TEST(Unroll, BoundsThatTheLaunchDecides) {
  check<i32, std::int32_t>("sm_90a");
  check<i64, std::int64_t>("sm_80");
}

TEST(Unroll, KnownBounds) {
  for (const int rounds : {0, 1, 3, 4, 5, 8, 11})
    for (const int copies : {1, 2, 4, 64}) {
      const lang::Kernel k = lang::kernel("k", {.warps = 1}, [&](Arg<Pointer<u32>, "out"> out) {
        lang::store(out,
                    lang::loop(lang::over(-3, -3 + 2 * rounds, 2).unroll(copies), lang::constant<u32>(1), round<i32>));
      });
      ASSERT_TRUE(k.ok()) << k.status().toString();
      SCOPED_TRACE(std::to_string(rounds) + " rounds, " + std::to_string(copies) + " copies");
      Emulator gpu("sm_90a");
      Buffer &out = gpu.allocate(4);
      (void)out.poison(std::byte(0xCD));
      const KernelRun run = runKernel(gpu, "sm_90a", k.text(), 1, {out}, {}, From::Tile);
      ASSERT_EQ(run.error, "");
      EXPECT_EQ(gpu.download<std::uint32_t>(out)[0], onHost<int>(-3, -3 + 2 * rounds, 2));
      // LLVM makes straight code of short loops too: at least the copies, and no branch where they are all.
      if (copies > 1 && rounds / copies < 2 && rounds % copies < 2)
        EXPECT_EQ(occurrences(run.ptx, "\tbra"), 0u) << run.ptx;
      EXPECT_GE(occurrences(run.ptx, "%clock"), static_cast<unsigned>(std::min(copies, rounds)));
      EXPECT_LE(occurrences(run.ptx, "%clock"), static_cast<unsigned>(rounds));
    }
}

/// out = a x b over K = n, several parts of K a round, with loads in flight; the sums of all rows of a in a nested
/// loop.
lang::Kernel product(int stages, int copies) {
  constexpr int rows = 32, depth = 16;
  return lang::kernel(
      "k", {.warps = 2},
      [&](Arg<Pointer<f16>, "a", lang::ArgTraits{.divisibility = 16}> a,
          Arg<Pointer<f16>, "b", lang::ArgTraits{.divisibility = 16}> b, Arg<Pointer<f32>, "out"> out,
          Arg<i32, "n"> n) {
        lang::assume(n % 16 == 0);
        const auto left = lang::makeView(a, {rows, n}, {n, 1}, {rows, depth}),
                   right = lang::makeView(b, {n, rows}, {rows, 1}, {depth, rows});
        const auto sum =
            lang::loop(lang::over(0, n, depth).stages(stages).unroll(copies), lang::zeros<f32>({rows, rows}),
                       [&](auto k, auto sum) {
                         return lang::dot(lang::loadView(left, {0, k}), lang::loadView(right, {k, 0}), sum);
                       });
        lang::store(
            out + (lang::expandDims(lang::range(0, rows) * rows, 1) + lang::expandDims(lang::range(0, rows), 0)), sum);
      });
}

TEST(Unroll, PipelinedLoop) {
  std::mt19937_64 random(37);
  constexpr int rows = 32;
  for (const char *target : {"sm_75", "sm_80", "sm_90a"})
    for (const auto &[stages, copies] : {std::pair{1, 2}, {2, 2}, {3, 2}, {3, 3}}) {
      const lang::Kernel k = product(stages, copies);
      ASSERT_TRUE(k.ok()) << k.status().toString();
      for (const int n : {0, 16, 32, 48, 112, 192}) {
        SCOPED_TRACE(std::string(target) + ", " + std::to_string(stages) + " stages, " + std::to_string(copies) +
                     " copies, K = " + std::to_string(n));
        std::vector<double> a(static_cast<std::size_t>(rows * n)), b(a.size());
        std::vector<std::uint16_t> bitsOfA(a.size() + 8), bitsOfB(a.size() + 8);
        for (std::size_t i = 0; i < a.size(); ++i) { // small whole numbers: sums are exact
          a[i] = static_cast<double>(random() % 17) - 8, b[i] = static_cast<double>(random() % 17) - 8;
          bitsOfA[i] = static_cast<std::uint16_t>(encodeFloat(static_cast<float>(a[i]), formatF16));
          bitsOfB[i] = static_cast<std::uint16_t>(encodeFloat(static_cast<float>(b[i]), formatF16));
        }
        Emulator gpu(target);
        Buffer &in = gpu.upload(bitsOfA), &other = gpu.upload(bitsOfB), &out = gpu.allocate(rows * rows * 4);
        (void)out.poison(std::byte(0xCD));
        const KernelRun run = runKernel(gpu, target, k.text(), 2, {in, other, out, std::int32_t(n)}, {}, From::Tile);
        ASSERT_EQ(run.error, "");
        EXPECT_EQ(run.ptx.find("cp.async") != std::string::npos, stages > 1 && std::string_view(target) != "sm_75");
        const auto got = gpu.download<float>(out);
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < rows; ++j) {
            double sum = 0;
            for (int l = 0; l < n; ++l)
              sum += a[static_cast<std::size_t>(i * n + l)] * b[static_cast<std::size_t>(l * rows + j)];
            ASSERT_EQ(got[static_cast<std::size_t>(i * rows + j)], sum) << i << ", " << j;
          }
      }
    }
}

} // namespace
} // namespace kiln::test
