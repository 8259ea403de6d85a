// Stages and grade of a loop, from the front end to the emulator: each loop has the buffers that it asked for, and
// results are those of float64 within the operations' bounds.
#include "compiler/language/Language.h"
#include "runtime/io/Numbers.h"
#include "tests/lowering/Text.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace kiln::language;

constexpr int rows = 32, depth = 16;

/// out = a x b, of K = n, computed by two loops: the first has `first` stages, the second the kernel's, `others`.  Then
/// exp of it divided by 8 n: approximate in a loop, precise after it.
language::Kernel products(int first, int others) {
  return kernel(
      "k", {.warps = 1, .stages = others},
      [&](Arg<Pointer<f16>, "a", ArgTraits{.divisibility = 16}> a,
          Arg<Pointer<f16>, "b", ArgTraits{.divisibility = 16}> b, Arg<Pointer<f32>, "out"> out, Arg<i32, "n"> n) {
        assume(n % 16 == 0);
        const auto left = makeView(a, {rows, n}, {n, 1}, {rows, depth}),
                   right = makeView(b, {n, rows}, {rows, 1}, {depth, rows});
        const auto product = [&](const auto &rounds) {
          return loop(rounds, zeros<f32>({rows, rows}),
                      [&](auto k, auto sum) { return dot(loadView(left, {0, k}), loadView(right, {k, 0}), sum); });
        };
        const auto half = n / (2 * depth) * depth;
        const auto x = product(over(0, half, depth).stages(first)) + product(over(half, n, depth));
        const auto at = expandDims(range(0, rows) * rows, 1) + expandDims(range(0, rows), 0);
        store(out + at, x);
        const auto y = x / cast<f32>(8 * n);
        store(out + rows * rows + at, loop(over(0, 1).grade(approx), y, [](auto, auto y) { return exp(y); }));
        store(out + 2 * rows * rows + at, exp(y));
      });
}

TEST(LoopOptions, EachLoopHasItsOwnBuffersAndGrade) {
  std::mt19937_64 random(7);
  for (const char *target : {"sm_80", "sm_90a"})
    for (const auto &[first, others] : {std::pair{3, 2}, {1, 4}, {4, 1}, {2, 2}}) {
      SCOPED_TRACE(std::string(target) + ", " + std::to_string(first) + " and " + std::to_string(others) + " stages");
      const language::Kernel k = products(first, others);
      ASSERT_TRUE(k.ok()) << k.status().toString();
      const LoweredKernel code = lowered(k.text(), target, /*keepStages=*/false, From::Tile);
      ASSERT_TRUE(code.ok) << code.errors;
      // A round of a loop of s stages leaves s - 2 groups of copies in flight; after the loop none is left.
      for (const int stages : {3, 4})
        EXPECT_EQ(code.ptx.find("cp.async.wait_group \t" + std::to_string(stages - 2) + ";") != std::string::npos,
                  stages == first || stages == others)
            << stages << " stages\n"
            << code.ptx;

      for (const int n : {16, 32, 48, 160}) {
        std::uniform_real_distribution<float> uniform(-1, 1);
        const auto size = static_cast<std::size_t>(n) * rows;
        std::vector<double> a(size), b(size);
        std::vector<std::uint16_t> bitsOfA(size), bitsOfB(size);
        for (auto *side : {&a, &b})
          for (std::size_t i = 0; i < size; ++i) {
            const int whole = static_cast<int>(std::lround(uniform(random) * 32)); // exact as f16
            (*side)[i] = whole / 32.0;
            (side == &a ? bitsOfA : bitsOfB)[i] =
                static_cast<std::uint16_t>(encodeFloat(static_cast<float>(whole) / 32, formatF16));
          }
        Emulator gpu(target);
        Buffer &in = gpu.upload(bitsOfA), &other = gpu.upload(bitsOfB),
               &out = gpu.allocate(3 * rows * rows * sizeof(float));
        (void)out.poison(std::byte(0xCD));
        ASSERT_EQ(runKernel(gpu, target, k.text(), 1, {in, other, out, std::int32_t(n)}, {}, From::Tile).error, "");
        const auto got = gpu.download<float>(out);
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < rows; ++j) {
            double sum = 0;
            for (int l = 0; l < n; ++l)
              sum += a[static_cast<std::size_t>(i * n + l)] * b[static_cast<std::size_t>(l * rows + j)];
            const auto at = static_cast<std::size_t>(i * rows + j);
            ASSERT_EQ(got[at], static_cast<float>(sum)) << "multiples of 2^-10 below 2^8 add up exactly";
            const double e = std::exp(sum / (8.0 * n));
            // docs/numbers.md, of quotients up to 1/8: an ulp, or 2.2 if approximate, and the rounding of both.
            EXPECT_NEAR(got[at + 2 * rows * rows], e, 2 * std::ldexp(1, -23));
            EXPECT_NEAR(got[at + rows * rows], e, 3 * std::ldexp(1, -23));
          }
      }
    }
}

} // namespace
} // namespace kiln::test
