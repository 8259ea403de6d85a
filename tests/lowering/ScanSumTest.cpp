// A running sum and a sum of one tile: two operations that want different layouts of the same values, and results that
// meet again.  Integers are exact; f32 against float64.
#include "compiler/language/Language.h"
#include "tests/lowering/Text.h"
#include "tests/support/TestTier.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

namespace lang = kiln::language;

struct ScanSum {
  std::int64_t rows, columns;
  int scanned, summed; ///< dimensions
  lang::Direction direction;
  int warps;
};

/// y = cumsum(x) + sum(x), z = sum(cumsum(x)), all of one tile.
template <lang::Element T> lang::Kernel recorded(const ScanSum &c) {
  return lang::kernel(
      "k", {.warps = c.warps},
      [&](lang::Arg<lang::Pointer<T>, "x"> x, lang::Arg<lang::Pointer<T>, "y"> y, lang::Arg<lang::Pointer<T>, "z"> z) {
        const auto at =
            lang::expandDims(lang::range(0, c.rows), 1) * c.columns + lang::expandDims(lang::range(0, c.columns), 0);
        const auto tile = lang::load(x + at);
        const auto running = lang::cumsum(tile, lang::along(c.scanned), c.direction);
        lang::store(y + at, running + lang::expandDims(lang::sum(tile, lang::along(c.summed)), c.summed));
        lang::store(z + lang::range(0, c.summed ? c.rows : c.columns), lang::sum(running, lang::along(c.summed)));
      });
}

template <typename Number, lang::Element T> void check(std::mt19937_64 &random, const ScanSum &c, const char *target) {
  SCOPED_TRACE(std::string(target) + ", " + std::to_string(c.rows) + " x " + std::to_string(c.columns) + ", scan of " +
               std::to_string(c.scanned) + ", sum of " + std::to_string(c.summed) + ", " + std::to_string(c.warps) +
               " warps");
  const lang::Kernel kernel = recorded<T>(c);
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  const auto n = static_cast<std::size_t>(c.rows * c.columns);
  std::vector<Number> x(n);
  std::normal_distribution<float> normal;
  for (Number &v : x)
    v = std::integral<Number> ? static_cast<Number>(random() % 2001) - 1000 : static_cast<Number>(normal(random));
  Emulator gpu(target);
  const std::size_t sums = static_cast<std::size_t>(c.summed ? c.rows : c.columns);
  Buffer &in = gpu.upload(x), &y = gpu.allocate(n * sizeof(Number)), &z = gpu.allocate(sums * sizeof(Number));
  (void)y.poison(std::byte(0xCD));
  (void)z.poison(std::byte(0xCD));
  const KernelRun run =
      runKernel(gpu, target, kernel.text(), static_cast<unsigned>(c.warps), {in, y, z}, {}, From::Tile);
  ASSERT_EQ(run.error, "");

  const auto of = [&](std::int64_t r, std::int64_t k) { return static_cast<std::size_t>(r * c.columns + k); };
  std::vector<double> running(n), sum(sums), sumOfRunning(sums);
  double most = 0; // of |running sums|, for the bound
  for (std::int64_t outer = 0, across = c.scanned ? c.rows : c.columns; outer < across; ++outer) {
    const std::int64_t along = c.scanned ? c.columns : c.rows;
    double total = 0, size = 0;
    for (std::int64_t i = 0; i < along; ++i) {
      const std::int64_t at = c.direction == lang::Direction::Forward ? i : along - 1 - i;
      const std::size_t e = c.scanned ? of(outer, at) : of(at, outer);
      running[e] = total += static_cast<double>(x[e]);
      size += std::abs(static_cast<double>(x[e]));
    }
    most = std::max(most, size);
  }
  for (std::int64_t r = 0; r < c.rows; ++r)
    for (std::int64_t k = 0; k < c.columns; ++k) {
      sum[static_cast<std::size_t>(c.summed ? r : k)] += static_cast<double>(x[of(r, k)]);
      sumOfRunning[static_cast<std::size_t>(c.summed ? r : k)] += running[of(r, k)];
    }
  const auto longest = static_cast<double>(std::max(c.rows, c.columns));
  const double bound = std::integral<Number> ? 0 : 2 * longest * most * std::ldexp(1, -24);
  const auto gotY = gpu.download<Number>(y), gotZ = gpu.download<Number>(z);
  for (std::int64_t r = 0; r < c.rows; ++r)
    for (std::int64_t k = 0; k < c.columns; ++k)
      ASSERT_NEAR(static_cast<double>(gotY[of(r, k)]),
                  running[of(r, k)] + sum[static_cast<std::size_t>(c.summed ? r : k)], bound)
          << r << ", " << k;
  for (std::size_t i = 0; i < sums; ++i)
    ASSERT_NEAR(static_cast<double>(gotZ[i]), sumOfRunning[i], longest * bound) << i;
}

TEST(ScanSum, CumsumAndSumOfOneTile) {
  std::mt19937_64 random(31);
  unsigned number = 0;
  for (const char *target : loweringTargets)
    for (const int warps : {1, 4, 8})
      for (const int scanned : {0, 1})
        for (const int summed : {0, 1}) {
          if (number++ % pick(3u, 1u)) // a sample: every third of target x warps x dimensions
            continue;
          const auto direction = scanned == summed ? lang::Direction::Forward : lang::Direction::Reverse;
          const ScanSum c{warps == 8 ? 64 : 32, warps == 1 ? 16 : 64, scanned, summed, direction, warps};
          check<std::int32_t, lang::i32>(random, c, target);
          check<float, lang::f32>(random, c, target);
        }
}

} // namespace
} // namespace kiln::test
