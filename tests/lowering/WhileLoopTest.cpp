// Loops whose number of rounds the data decide, from the front end to the emulator: none to many rounds, exchanges
// through shared memory in the condition and in the body, loops inside, values of several types carried.
#include "compiler/language/Language.h"
#include "runtime/io/Numbers.h"
#include "tests/lowering/Text.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

namespace lang = kiln::language;
using lang::Arg, lang::Pointer, lang::f16, lang::f32, lang::i32, lang::i64;

constexpr const char *allTargets[] = {"sm_75",  "sm_80",   "sm_86",   "sm_87",   "sm_89",  "sm_90",  "sm_90a",
                                      "sm_100", "sm_100a", "sm_103a", "sm_110a", "sm_120", "sm_120a"};

/// Rounds of Collatz' rule from x[program] down to 1.
TEST(WhileLoop, ScalarsAlone) {
  const lang::Kernel k = lang::kernel("k", {.warps = 2}, [](Arg<Pointer<i64>, "x"> x, Arg<Pointer<i32>, "out"> out) {
    const auto [n, rounds] = lang::whileLoop(
        lang::load(x + lang::programId()), lang::constant<i32>(0), [](auto n, auto) { return n > 1; },
        [](auto n, auto rounds) { return std::tuple{lang::select(n % 2 == 0, n / 2, n * 3 + 1), rounds + 1}; });
    lang::store(out + lang::programId(), rounds + lang::cast<i32>(n));
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  const std::vector<std::int64_t> starts{1, 27, 0, 2, 97, 871, -5, 1'000'000'007};
  for (const char *target : allTargets) {
    Emulator gpu(target);
    Buffer &x = gpu.upload(starts), &out = gpu.allocate(starts.size() * 4);
    (void)out.poison(std::byte(0xCD));
    const Dim3 grid{static_cast<unsigned>(starts.size()), 1, 1};
    ASSERT_EQ(runKernel(gpu, target, k.text(), 2, {x, out}, grid, From::Tile).error, "") << target;
    const auto got = gpu.download<std::int32_t>(out);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      std::int64_t n = starts[i];
      std::int32_t rounds = 0;
      for (; n > 1; ++rounds)
        n = n % 2 == 0 ? n / 2 : n * 3 + 1;
      EXPECT_EQ(got[i], rounds + static_cast<std::int32_t>(n)) << target << ", from " << starts[i];
    }
  }
}

constexpr int size = 32;

/// x is halved and mixed with its transpose until its largest element is at most `limit`: a reduction in the condition,
/// a conversion and a reduction in the body.
lang::Kernel shrink(int warps) {
  return lang::kernel("k", {.warps = warps},
                      [&](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "out"> out, Arg<Pointer<i32>, "rounds"> rounds,
                          Arg<f32, "limit"> limit) {
                        const auto at = lang::expandDims(lang::range(0, size) * size, 1) +
                                        lang::expandDims(lang::range(0, size), 0);
                        const auto [count, last, sums] = lang::whileLoop(
                            lang::constant<i32>(0), lang::load(x + at), lang::zeros<f32>({size}),
                            [&](auto, auto x, auto) { return lang::max(lang::abs(x)) > limit; },
                            [&](auto count, auto x, auto sums) {
                              const auto next = x * 0.25f + lang::transpose(x) * 0.5f;
                              return std::tuple{count + 1, next, sums * 0.5f + lang::sum(next, lang::along(0))};
                            });
                        lang::store(out + at, last);
                        lang::store(out + size * size + lang::range(0, size), sums);
                        lang::store(rounds, count);
                      });
}

TEST(WhileLoop, SharedMemoryInConditionAndBody) {
  std::mt19937_64 random(17);
  for (const char *target : allTargets)
    for (const int warps : {1, 4, 8}) {
      const bool all = std::string_view(target) == "sm_75" || std::string_view(target) == "sm_90a";
      if (warps != 4 && !all)
        continue;
      const lang::Kernel k = shrink(warps);
      ASSERT_TRUE(k.ok()) << k.status().toString();
      for (const float limit : {1000.0f, 0.5f, 0.001f}) {
        SCOPED_TRACE(std::string(target) + ", " + std::to_string(warps) + " warps, limit " + std::to_string(limit));
        std::vector<float> x(size * size);
        for (float &v : x) // multiples of 2^-4 below 16: sums and quotients stay exact for the rounds that there are
          v = static_cast<float>(static_cast<int>(random() % 511) - 255) / 16;
        Emulator gpu(target);
        Buffer &in = gpu.upload(x), &out = gpu.allocate((size + 1) * size * 4), &rounds = gpu.allocate(4);
        (void)out.poison(std::byte(0xCD));
        (void)rounds.poison(std::byte(0xCD));
        ASSERT_EQ(
            runKernel(gpu, target, k.text(), static_cast<unsigned>(warps), {in, out, rounds, limit}, {}, From::Tile)
                .error,
            "");
        std::vector<double> now(x.begin(), x.end()), sums(size), largest(size);
        const auto above = [&] {
          return std::any_of(now.begin(), now.end(), [&](double v) { return std::abs(v) > limit; });
        };
        std::int32_t count = 0;
        for (; above(); ++count) {
          std::vector<double> next(now.size());
          for (int i = 0; i < size; ++i)
            for (int j = 0; j < size; ++j) // rounded as an f32 is: the first product is exact
              next[static_cast<std::size_t>(i * size + j)] =
                  static_cast<float>(now[static_cast<std::size_t>(i * size + j)] * 0.25 +
                                     now[static_cast<std::size_t>(j * size + i)] * 0.5);
          now = next;
          for (int j = 0; j < size; ++j) {
            double sum = 0, magnitude = 0;
            for (int i = 0; i < size; ++i) {
              sum += now[static_cast<std::size_t>(i * size + j)];
              magnitude += std::abs(now[static_cast<std::size_t>(i * size + j)]);
            }
            sums[static_cast<std::size_t>(j)] = sums[static_cast<std::size_t>(j)] * 0.5 + sum;
            largest[static_cast<std::size_t>(j)] = largest[static_cast<std::size_t>(j)] * 0.5 + magnitude;
          }
        }
        EXPECT_EQ(count == 0, limit == 1000.0f);
        EXPECT_EQ(gpu.download<std::int32_t>(rounds)[0], count);
        const auto got = gpu.download<float>(out);
        for (std::size_t i = 0; i < now.size(); ++i)
          ASSERT_EQ(got[i], static_cast<float>(now[i])) << "element " << i;
        for (std::size_t j = 0; j < size; ++j) // each addition rounds once
          ASSERT_NEAR(got[now.size() + j], sums[j], largest[j] * (size + 1) * std::ldexp(1, -24)) << "column " << j;
      }
    }
}

/// y = a^rounds x for f16 matrices, each product a loop with loads in flight; rounds are counted in memory.
lang::Kernel powers(int stages) {
  return lang::kernel(
      "k", {.warps = 4, .stages = stages},
      [&](Arg<Pointer<f16>, "a", lang::ArgTraits{.divisibility = 16}> a, Arg<Pointer<f32>, "out"> out,
          Arg<Pointer<i32>, "left"> left) {
        constexpr int n = 64, part = 16;
        const auto view = lang::makeView(a, {n, n}, {n, 1}, {n, part});
        const auto rows = lang::makeView(a, {n, n}, {n, 1}, {part, n});
        const auto start =
            lang::cast<f32>(lang::expandDims(lang::range(0, n), 1) == lang::expandDims(lang::range(0, n), 0));
        const auto result = lang::whileLoop(
            start, [&](auto) { return lang::load(left) > 0; },
            [&](auto sum) {
              lang::store(left, lang::load(left) - 1);
              return lang::loop(lang::over(0, n, part), sum, [&](auto k, auto sum) {
                return lang::dot(lang::loadView(view, {0, k}), lang::loadView(rows, {k, 0}), sum);
              });
            });
        lang::store(out + (lang::expandDims(lang::range(0, n) * n, 1) + lang::expandDims(lang::range(0, n), 0)),
                    result);
      });
}

TEST(WhileLoop, PipelinedLoopInsideAndMemoryThatIsCountedDown) {
  std::mt19937_64 random(23);
  constexpr int n = 64;
  for (const char *target : loweringTargets)
    for (const int stages : {1, 3}) {
      const lang::Kernel k = powers(stages);
      ASSERT_TRUE(k.ok()) << k.status().toString();
      for (const int rounds : {0, 1, 3}) {
        SCOPED_TRACE(std::string(target) + ", " + std::to_string(stages) + " stages, " + std::to_string(rounds) +
                     " rounds");
        std::vector<double> a(n * n);
        std::vector<std::uint16_t> bits(n * n);
        for (std::size_t i = 0; i < a.size(); ++i) { // small whole numbers: sums are exact
          a[i] = static_cast<double>(random() % 9) - 4;
          bits[i] = static_cast<std::uint16_t>(encodeFloat(static_cast<float>(a[i]), formatF16));
        }
        Emulator gpu(target);
        Buffer &in = gpu.upload(bits), &out = gpu.allocate(n * n * 4),
               &left = gpu.upload(std::vector<std::int32_t>{rounds});
        (void)out.poison(std::byte(0xCD));
        const KernelRun run = runKernel(gpu, target, k.text(), 4, {in, out, left}, {}, From::Tile);
        ASSERT_EQ(run.error, "");
        EXPECT_EQ(run.ptx.find("cp.async") != std::string::npos, stages > 1 && std::string_view(target) != "sm_75");
        EXPECT_EQ(gpu.download<std::int32_t>(left)[0], 0);
        const auto got = gpu.download<float>(out);
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < n; ++j) {
            double sum = i == j;
            for (int l = 0; l < n; ++l)
              sum += rounds * a[static_cast<std::size_t>(i * n + l)] * a[static_cast<std::size_t>(l * n + j)];
            ASSERT_EQ(got[static_cast<std::size_t>(i * n + j)], sum) << i << ", " << j;
          }
      }
    }
}

/// Programs that count under a lock: the loop around the atomic operation carries nothing.
TEST(WhileLoop, WaitsForALock) {
  const lang::Kernel k =
      lang::kernel("k", {.warps = 2}, [](Arg<Pointer<i32>, "lock"> lock, Arg<Pointer<i32>, "counters"> counters) {
        const auto i = lang::range(0, 64);
        lang::whileLoop([&] { return lang::atomicCas(lock, 0, 1, lang::Order::Acquire) != 0; }, [] {});
        lang::store(counters + i, lang::load(counters + i) + i);
        (void)lang::atomicExchange(lock, 0, {}, lang::Order::Release);
      });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  for (const char *target : loweringTargets) {
    Emulator gpu(target);
    Buffer &lock = gpu.upload(std::vector<std::int32_t>{0}), &counters = gpu.upload(std::vector<std::int32_t>(64, 5));
    ASSERT_EQ(runKernel(gpu, target, k.text(), 2, {lock, counters}, {20, 1, 1}, From::Tile).error, "") << target;
    const auto got = gpu.download<std::int32_t>(counters);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i], 5 + 20 * static_cast<int>(i));
    EXPECT_EQ(gpu.download<std::int32_t>(lock)[0], 0);
  }
}

} // namespace
} // namespace kiln::test
