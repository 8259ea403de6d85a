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

/// x = (I - strict lower part of a)^-1; above the diagonal a is not to be read.
void checkInverse(std::mt19937_64 &random, std::int64_t n, lang::Precision precision, const char *target) {
  SCOPED_TRACE(std::string(target) + ", " + std::to_string(n) + " rows, precision " +
               std::to_string(static_cast<int>(precision)));
  const lang::Kernel kernel =
      lang::kernel("k", {.warps = 4}, [&](lang::TensorArg<lang::f32, 2, "a"> a, lang::TensorArg<lang::f32, 2, "x"> x) {
        lang::storeView(x.tiles({n, n}), {0, 0},
                        lang::inverseUnitLower(lang::loadView(a.tiles({n, n}), {0, 0}), precision));
      });
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  const auto at = [&](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * n + j); };
  std::normal_distribution<float> normal;
  std::vector<float> a(static_cast<std::size_t>(n * n), NAN);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < i; ++j)
      a[at(i, j)] = normal(random) / 2;
  Emulator gpu(target);
  Buffer &ba = gpu.upload(a), &bx = gpu.allocate(a.size() * sizeof(float));
  (void)bx.poison(std::byte(0xCD));
  const std::int64_t one = 1;
  const KernelRun run = runKernel(gpu, target, kernel.text(), 4, {ba, n, n, n, one, bx, n, n, n, one}, {}, From::Tile);
  ASSERT_EQ(run.error, "");
  const auto got = gpu.download<float>(bx);
  // The inverse by columns, and what each element of |X| (I + |L|) |X| is: errors of the products are shares of it.
  std::vector<double> x(a.size(), 0), inner(a.size(), 0);
  for (std::int64_t c = 0; c < n; ++c)
    for (std::int64_t i = c; i < n; ++i) {
      x[at(i, c)] = i == c;
      for (std::int64_t j = c; j < i; ++j)
        x[at(i, c)] += static_cast<double>(a[at(i, j)]) * x[at(j, c)];
    }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t c = 0; c <= i; ++c) {
      inner[at(i, c)] = std::abs(x[at(i, c)]);
      for (std::int64_t j = c; j < i; ++j)
        inner[at(i, c)] += std::abs(static_cast<double>(a[at(i, j)]) * x[at(j, c)]);
    }
  const double unit = precision == lang::Precision::Tf32 ? 0x1p-11 : 0x1p-21;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t c = 0; c < n; ++c) {
      double magnitude = 0;
      for (std::int64_t j = c; j <= i; ++j)
        magnitude += std::abs(x[at(i, j)]) * inner[at(j, c)];
      ASSERT_NEAR(got[at(i, c)], x[at(i, c)], 2 * unit * magnitude) << "row " << i << ", column " << c;
    }
}

TEST(TriangularSolve, InverseByDoubling) {
  std::mt19937_64 random(43);
  for (const char *target : loweringTargets)
    for (const lang::Precision precision : {lang::Precision::Ieee, lang::Precision::Tf32, lang::Precision::Tf32x3})
      for (const std::int64_t n : {16, 32, 48})
        checkInverse(random, n, precision, target);
}

TEST(TriangularSolve, TrianglesHalvesAndConcatenation) {
  using namespace lang;
  constexpr std::int64_t rows = 32, columns = 16;
  const lang::Kernel kernel =
      lang::kernel("k", {.warps = 2}, [&](TensorArg<lang::i32, 2, "x"> x, TensorArg<lang::i32, 3, "out"> out) {
        const auto tile = loadView(x.tiles({rows, columns}), {0, 0});
        const auto put = [&](int i, const auto &value) {
          storeView(out.at(i, all, all).tiles({rows, columns}), {0, 0}, value);
        };
        const auto [upper, lower] = halves(tile, along(0));
        const auto [left, right] = halves(tile, along(1));
        put(0, concat(lower, upper, along(0)));
        put(1, concat(right, left, along(1)));
        put(2, tril(tile, -2));
        put(3, triu(tile));
      });
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  std::mt19937_64 random(47);
  std::vector<std::int32_t> x(rows * columns);
  for (std::int32_t &v : x)
    v = static_cast<std::int32_t>(random());
  for (const char *target : loweringTargets) {
    Emulator gpu(target);
    Buffer &bx = gpu.upload(x), &bo = gpu.allocate(4 * x.size() * sizeof(std::int32_t));
    (void)bo.poison(std::byte(0xCD));
    const std::int64_t one = 1, r = rows, c = columns, four = 4, size = rows * columns;
    const KernelRun run =
        runKernel(gpu, target, kernel.text(), 2, {bx, r, c, c, one, bo, four, r, c, size, c, one}, {}, From::Tile);
    ASSERT_EQ(run.error, "");
    const auto got = gpu.download<std::int32_t>(bo);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        const auto of = [&](std::int64_t row, std::int64_t column) {
          return x[static_cast<std::size_t>(row * columns + column)];
        };
        const auto is = [&](int which) { return got[static_cast<std::size_t>(which * size + i * columns + j)]; };
        ASSERT_EQ(is(0), of((i + rows / 2) % rows, j)) << target;
        ASSERT_EQ(is(1), of(i, (j + columns / 2) % columns)) << target;
        ASSERT_EQ(is(2), j - i <= -2 ? of(i, j) : 0) << target;
        ASSERT_EQ(is(3), j >= i ? of(i, j) : 0) << target;
      }
  }
}

} // namespace
} // namespace kiln::test
