// L X = B by substitution, row by row, with X in registers: in each round one row of L meets all of X, a sum over the
// rows, and a select that puts the new row in its place.  Against float64, with a bound that is carried along.
#include "compiler/language/Language.h"
#include "tests/lowering/Text.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

namespace lang = kiln::language;

constexpr std::int64_t size = 64;

/// x[i] = (b[i] - sum over j < i of l[i][j] x[j]) / l[i][i]; `columns` right-hand sides.
lang::Kernel solve(std::int64_t columns, int warps) {
  return lang::kernel("k", {.warps = warps},
                      [&](lang::Arg<lang::Pointer<lang::f32>, "l"> l, lang::Arg<lang::Pointer<lang::f32>, "b"> b,
                          lang::Arg<lang::Pointer<lang::f32>, "x"> x) {
                        const auto row = lang::range(0, size), column = lang::range(0, columns);
                        const auto solved = lang::loop(
                            lang::over(0, size), lang::zeros<lang::f32>({size, columns}), [&](auto i, auto known) {
                              const auto weights = lang::load(l + i * size + row, row < i);
                              const auto done = lang::sum(lang::expandDims(weights, 1) * known, lang::along(0));
                              const auto next =
                                  (lang::load(b + i * columns + column) - done) / lang::load(l + i * (size + 1));
                              return lang::select(lang::expandDims(row, 1) == i, lang::expandDims(next, 0), known);
                            });
                        lang::store(x + lang::expandDims(row * columns, 1) + lang::expandDims(column, 0), solved);
                      });
}

void check(std::mt19937_64 &random, std::int64_t columns, int warps, const char *target) {
  SCOPED_TRACE(std::string(target) + ", " + std::to_string(columns) + " right-hand sides, " + std::to_string(warps) +
               " warps");
  const lang::Kernel kernel = solve(columns, warps);
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  std::normal_distribution<float> normal;
  std::vector<float> l(size * size, NAN),
      b(static_cast<std::size_t>(size * columns)); // above the diagonal: not to be read
  for (std::int64_t i = 0; i < size; ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      l[static_cast<std::size_t>(i * size + j)] = i == j ? 1 + std::abs(normal(random)) : normal(random) / 4;
  for (float &v : b)
    v = normal(random);
  Emulator gpu(target);
  Buffer &bl = gpu.upload(l), &bb = gpu.upload(b), &bx = gpu.allocate(b.size() * sizeof(float));
  (void)bx.poison(std::byte(0xCD));
  const KernelRun run =
      runKernel(gpu, target, kernel.text(), static_cast<unsigned>(warps), {bl, bb, bx}, {}, From::Tile);
  ASSERT_EQ(run.error, "");
  const auto got = gpu.download<float>(bx);
  const double u = std::ldexp(1, -24);
  for (std::int64_t c = 0; c < columns; ++c) {
    std::vector<double> x, error;
    for (std::int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i * columns + c);
      double rest = b[at], magnitude = std::abs(rest), carried = 0;
      for (std::int64_t j = 0; j < i; ++j) {
        const double w = l[static_cast<std::size_t>(i * size + j)];
        rest -= w * x[static_cast<std::size_t>(j)];
        magnitude += std::abs(w * x[static_cast<std::size_t>(j)]);
        carried += std::abs(w) * error[static_cast<std::size_t>(j)];
      }
      const double diagonal = l[static_cast<std::size_t>(i * (size + 1))];
      x.push_back(rest / diagonal);
      // A sum of 64 terms in any order, a product, a difference and a division, each rounded.
      error.push_back((carried + (magnitude + carried) * static_cast<double>(size + 3) * u) / diagonal);
      ASSERT_NEAR(got[at], x.back(), error.back()) << "row " << i << ", column " << c;
    }
  }
}

TEST(TriangularSolve, Of64With2And4And8Warps) {
  std::mt19937_64 random(41);
  for (const char *target : loweringTargets)
    for (const int warps : {2, 4, 8})
      for (const std::int64_t columns : {std::int64_t(1), std::int64_t(16), size})
        check(random, columns, warps, target);
}

} // namespace
} // namespace kiln::test
