// withLayout, from the front end to the emulator: the layout that was asked for is there, and values are the same.
#include "compiler/language/Language.h"
#include "tests/lowering/Text.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace kiln::language;

constexpr int rows = 64, columns = 32;

/// out[j] = the sum of column j of x; rows of x are adjacent in memory, and read so.
language::Kernel columnSums(bool hint) {
  return kernel(
      "k", {.warps = 1}, [&](Arg<Pointer<f32>, "x", ArgTraits{.divisibility = 16}> x, Arg<Pointer<f32>, "out"> out) {
        auto tile = load(x + expandDims(range(0, rows) * columns, 1) + expandDims(range(0, columns), 0));
        if (hint) // a lane has a column
          tile = withLayout(
              tile,
              {.sizePerThread = {rows, 1}, .threadsPerWarp = {1, columns}, .warpsPerCTA = {1, 1}, .order = {0, 1}});
        store(out + range(0, columns), sum(tile, along(0)));
      });
}

TEST(LayoutHint, TilesLieAsAskedAndValuesStay) {
  std::vector<float> x(rows * columns), sums(columns);
  std::mt19937_64 random(3);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(random() % 4096); // sums of whole numbers are exact
    sums[i % columns] += x[i];
  }
  for (const char *target : loweringTargets)
    for (const bool hint : {false, true}) {
      SCOPED_TRACE(std::string(target) + (hint ? ", with the hint" : ", without"));
      const language::Kernel k = columnSums(hint);
      ASSERT_TRUE(k.ok()) << k.status().toString();
      Emulator gpu(target);
      Buffer &in = gpu.upload(x), &out = gpu.allocate(sums.size() * sizeof(float));
      (void)out.poison(std::byte(0xCD));
      const KernelRun run = runKernel(gpu, target, k.text(), 1, {in, out}, {}, From::Tile);
      ASSERT_EQ(run.error, "");
      EXPECT_EQ(gpu.download<float>(out), sums);
      // Lanes that have columns exchange nothing to add them up.
      EXPECT_EQ(run.ptx.find("shfl") == std::string::npos, hint) << run.ptx;
    }
}

} // namespace
} // namespace kiln::test
