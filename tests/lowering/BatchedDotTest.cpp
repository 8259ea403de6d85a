// Products of blocks, [b, m, k] x [b, k, n], from the front end to the emulator: a tile's rows are cut into blocks by
// reshape, each is multiplied with its own.  Whole numbers: sums are exact, whichever unit multiplies.
#include "compiler/language/Language.h"
#include "runtime/io/Numbers.h"
#include "tests/lowering/Text.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace kiln::language;

constexpr int m = 16, n = 16, k = 32;

/// out[p] = x[p] y[p] + x[p] y[p] + (y[p]^T x[p]^T)^T, of `blocks` blocks: with an accumulator and without.
template <Element T> language::Kernel blockProducts(int blocks, int warps) {
  return kernel("k", {.warps = warps},
                [&](Arg<Pointer<T>, "x", ArgTraits{.divisibility = 16}> x,
                    Arg<Pointer<T>, "y", ArgTraits{.divisibility = 16}> y, Arg<Pointer<f32>, "out"> out) {
                  const auto rows = [](std::int64_t count, std::int64_t columns) {
                    return expandDims(range(0, count) * columns, 1) + expandDims(range(0, columns), 0);
                  };
                  const auto a = reshape(load(x + rows(blocks * m, k)), {blocks, m, k});
                  const auto b = reshape(load(y + rows(blocks * k, n)), {blocks, k, n});
                  const auto c = dot(a, b);
                  const auto d = transpose(dot(transpose(b, {0, 2, 1}), transpose(a, {0, 2, 1})), {0, 2, 1});
                  store(out + rows(blocks * m, n), reshape(dot(a, b, c) + d, {blocks * m, n}));
                });
}

template <Element T> void check(const char *target, int blocks, int warps) {
  SCOPED_TRACE(std::string(target) + ", " + std::string(elementName(elementOf<T>)) + ", " + std::to_string(blocks) +
               " blocks, " + std::to_string(warps) + " warps");
  const language::Kernel kernel = blockProducts<T>(blocks, warps);
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  std::mt19937_64 random(5);
  const auto matrix = [&](std::size_t count) {
    std::pair<std::vector<int>, std::vector<unsigned char>> made;
    for (std::size_t i = 0; i < count; ++i) {
      const int v = static_cast<int>(random() % 17) - 8;
      made.first.push_back(v);
      const auto put = [&](const auto &bits) {
        const auto *p = reinterpret_cast<const unsigned char *>(&bits);
        made.second.insert(made.second.end(), p, p + sizeof(bits));
      };
      if constexpr (std::same_as<T, f32>)
        put(static_cast<float>(v));
      else
        put(static_cast<std::uint16_t>(encodeFloat(v, formatF16)));
    }
    return made;
  };
  const auto count = static_cast<std::size_t>(blocks);
  const auto x = matrix(count * m * k), y = matrix(count * k * n);
  Emulator gpu(target);
  Buffer &bx = gpu.upload(x.second), &by = gpu.upload(y.second), &out = gpu.allocate(count * m * n * sizeof(float));
  (void)out.poison(std::byte(0xCD));
  const KernelRun run =
      runKernel(gpu, target, kernel.text(), static_cast<unsigned>(warps), {bx, by, out}, {}, From::Tile);
  ASSERT_EQ(run.error, "");
  const auto got = gpu.download<float>(out);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t block = i / (m * n), row = i / n % m, column = i % n;
    int sum = 0;
    for (std::size_t l = 0; l < k; ++l)
      sum += x.first[(block * m + row) * k + l] * y.first[(block * k + l) * n + column];
    ASSERT_EQ(got[i], static_cast<float>(3 * sum)) << "block " << block << ", row " << row << ", column " << column;
  }
  EXPECT_EQ(run.ptx.find("mma.sync") != std::string::npos, (std::same_as<T, f16>));
}

TEST(BatchedDot, BlocksOfATileTimesBlocks) {
  for (const char *target : loweringTargets)
    for (const int blocks : {2, 4, 8})
      for (const int warps : {1, 4, 8}) {
        check<f16>(target, blocks, warps);
        if (blocks <= 4)
          check<f32>(target, blocks, warps);
      }
}

} // namespace
} // namespace kiln::test
