// Reductions and scans of tiles with head dimensions of 96, 112 and 192, cores with repetitions, against float64: along
// the repetitions and across them, in layouts of threads, matrix products and rows, inside warps and through shared
// memory.
#include "compiler/layout/Reduction.h"
#include "tests/reduce/SharedKernel.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::test {
namespace {

using layout::Encoding;
using layout::Sizes;

constexpr unsigned logWarps = 2;
constexpr double unit = 0x1p-24;

struct Case {
  TileCase tile;
  bool reverse = false;
};

/// Every head dimension in every layout; orientation, axis and target go round.
std::vector<Case> cases(std::int64_t others) {
  const Encoding encodings[] = {
      layout::Blocked{{1, 4}, {8, 4}, {4, 1}, {1, 0}},  // rows in lanes and warps
      layout::Blocked{{2, 1}, {2, 16}, {1, 4}, {1, 0}}, // columns across warps
      layout::Mma{.version = 2, .warpsPerCTA = {2, 2}}, // products by mma.sync
      layout::Mma{.version = 3, .warpsPerCTA = {4, 1}, .instrN = 16},
      layout::DotOperand{.op = 0, .kWidth = 2, .parent = Encoding(layout::Mma{.version = 2, .warpsPerCTA = {4, 1}})},
      layout::Slice{.dim = 1, .parent = Encoding(layout::Blocked{{1, 2, 1}, {2, 2, 8}, {2, 1, 2}, {2, 1, 0}})},
  };
  std::vector<Case> out;
  unsigned number = 0;
  for (std::int64_t head : {96, 112, 192})
    for (const Encoding &e : encodings)
      for (unsigned variant = 0; variant < 4; ++variant, ++number) {
        // Of four variants one comes round, another one for the next layout and head dimension.
        if (!isFullTier() && variant != (number / 4 + number / 24) % 4)
          continue;
        const bool columns = variant < 2, reverse = number / 8 % 2;
        const auto *mma = std::get_if<layout::Mma>(&e.kind);
        const char *target = (mma && mma->version == 3) || number / 4 % 2 ? "sm_90a" : "sm_80";
        const Sizes shape = columns ? Sizes{others, head} : Sizes{head, others};
        out.push_back({{logWarps, variant % 2, shape, e, target, number % 3 ? 49152 : 4096}, reverse});
      }
  return out;
}

std::vector<float> randomTile(std::mt19937_64 &random, const Sizes &shape) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> x(volume(shape));
  for (float &v : x)
    v = uniform(random);
  return x;
}

constexpr const char *sum =
    "    ^bb0(%a: f32, %b: f32):\n      %c = arith.addf %a, %b : f32\n      tile.yield %c : f32\n";

TEST(Repetitions, SumsAlongHeadDimensions) {
  std::mt19937_64 random(31);
  unsigned ran = 0, across = 0, along = 0, kept = 0;
  for (const Case &c : cases(32)) {
    const TileCase &t = c.tile;
    const auto tile = layout::TileLayout::create(t.encoding, t.shape);
    ASSERT_TRUE(tile.ok()) << tile.status().toString();
    ++ran;
    across += layout::planReduction(tile->core(), t.axis, 32, **findTarget(t.target))->exchange.has_value();
    ++(tile->tile().counts[t.axis] > 1 ? along : kept);
    const Sizes shape = without(t.shape, t.axis);
    const Encoding result = sliced(t.encoding, t.axis);
    const auto x = randomTile(random, t.shape);
    TileKernel kernel(logWarps);
    kernel.input("x", t.shape, "f32", t.encoding);
    kernel.body("    %r = tile.reduce(%x) {axis = " + std::to_string(t.axis) +
                " : i32} : " + tensorType(t.shape, "f32", t.encoding) + " to " + tensorType(shape, "f32", result) +
                " {\n" + sum + "    }\n");
    kernel.output("r", shape, "f32", &result);
    Emulator gpu(t.target);
    Buffer &bx = gpu.upload(x), &br = gpu.allocate(volume(shape) * 4);
    (void)br.poison(std::byte(0xCD));
    ASSERT_EQ(kernel.run(gpu, t.target, {bx, br}, t.scratchBytes), "");
    const auto out = gpu.download<float>(br);
    std::size_t at = 0;
    eachLine(t.shape, t.axis, [&](const std::vector<std::size_t> &line) {
      double exact = 0, magnitude = 0;
      for (std::size_t i : line) {
        exact += x[i];
        magnitude += std::abs(x[i]);
      }
      ASSERT_LE(std::abs(out[at] - exact), static_cast<double>(line.size() - 1) * unit * magnitude)
          << "line " << at << "\n"
          << kernel.text();
      ++at;
    });
  }
  std::printf("  %u kernels, %u across warps, %u along repetitions, %u across them\n", ran, across, along, kept);
  EXPECT_GE(ran, 12u);
  EXPECT_GT(across, 2u);
  EXPECT_GT(along, 3u);
  EXPECT_GT(kept, 3u);
}

TEST(Repetitions, RunningSumsAlongHeadDimensions) {
  std::mt19937_64 random(32);
  unsigned ran = 0, across = 0, along = 0, reversed = 0;
  for (const Case &c : cases(16)) {
    const TileCase &t = c.tile;
    const auto tile = layout::TileLayout::create(t.encoding, t.shape);
    ASSERT_TRUE(tile.ok()) << tile.status().toString();
    const auto plan = layout::planScan(tile->core(), t.axis, 32, **findTarget(t.target));
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    ++ran;
    across += plan->has_value() && (*plan)->totals;
    along += tile->tile().counts[t.axis] > 1;
    reversed += c.reverse;
    const auto x = randomTile(random, t.shape);
    TileKernel kernel(logWarps);
    kernel.input("x", t.shape, "f32", t.encoding);
    kernel.body("    %r = tile.scan(%x) {axis = " + std::to_string(t.axis) + " : i32" + (c.reverse ? ", reverse" : "") +
                "} : " + tensorType(t.shape, "f32", t.encoding) + " {\n" + sum + "    }\n");
    kernel.output("r", t.shape, "f32", &t.encoding);
    Emulator gpu(t.target);
    Buffer &bx = gpu.upload(x), &br = gpu.allocate(x.size() * 4);
    (void)br.poison(std::byte(0xCD));
    ASSERT_EQ(kernel.run(gpu, t.target, {bx, br}, t.scratchBytes), "");
    const auto out = gpu.download<float>(br);
    eachLine(t.shape, t.axis, [&](const std::vector<std::size_t> &line) {
      double exact = 0, magnitude = 0;
      for (std::size_t k = 0; k < line.size(); ++k) {
        const std::size_t i = line[c.reverse ? line.size() - 1 - k : k];
        exact += x[i];
        magnitude += std::abs(x[i]);
        ASSERT_LE(std::abs(out[i] - exact), static_cast<double>(k) * unit * magnitude) << "place " << k << "\n"
                                                                                       << kernel.text();
      }
    });
  }
  std::printf("  %u kernels, %u across warps, %u along repetitions, %u reversed\n", ran, across, along, reversed);
  EXPECT_GE(ran, 12u);
  EXPECT_GT(across, 2u);
  EXPECT_GT(along, 3u);
  EXPECT_GT(reversed, 2u);
}

} // namespace
} // namespace kiln::test
