// Layout conversions inside warps, bit for bit: random pairs of layouts, shapes with odd factors, 8 to 64 bits.
#include "tests/lowering/LoweringHarness.h"

#include "compiler/layout/TilePlanner.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>
#include <map>

namespace kiln::test {
namespace {

using layout::Sizes;
using layout::TileLayout;

/// Another layout of the same tile whose conversion stays inside the warps: hardware bits below the warps shuffled.
layout::Encoding shuffledInWarp(std::mt19937_64 &random, const TileLayout &tile) {
  const layout::LinearLayout &core = tile.core();
  std::vector<layout::BitVector> inner;
  for (layout::InDim in : {layout::InDim::Register, layout::InDim::Lane})
    for (layout::BitVector c : core.columns(in))
      inner.push_back(c);
  // Mixed by invertible steps: swaps and sums.
  const auto n = static_cast<unsigned>(inner.size());
  for (unsigned i = 0; i < 3 * n; ++i) {
    const unsigned a = static_cast<unsigned>(random() % n), b = static_cast<unsigned>(random() % n);
    if (a == b)
      continue;
    if (random() % 4)
      std::swap(inner[a], inner[b]);
    else
      inner[a] ^= inner[b];
  }
  auto basis = [&](layout::BitVector c) {
    const layout::Coords at = core.coords(c);
    return Sizes(at.begin(), at.end());
  };
  layout::Linear out;
  const unsigned registers = core.bits(layout::InDim::Register);
  for (unsigned i = 0; i < n; ++i)
    (i < registers ? out.registers : out.lanes).push_back(basis(inner[i]));
  for (layout::BitVector c : core.columns(layout::InDim::Warp))
    out.warps.push_back(basis(c));
  for (unsigned d = 0; d < core.dims(); ++d)
    out.shape.push_back(core.shape(d));
  return out;
}

std::string viewKernel(const Sizes &shape, const std::string &element, const std::string &source,
                       const std::string &body, const std::string &destination, unsigned warps) {
  const std::string view = "!tile.view<" + extents(shape) + "x" + element + ">";
  std::string text = "    %c0 = arith.constant 0 : i64\n    %c1 = arith.constant 1 : i64\n";
  std::string sizes, strides, zeros;
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    const std::string n = std::to_string(d);
    text += "    %n" + n + " = arith.constant " + std::to_string(shape[d]) + " : i64\n    %s" + n +
            " = arith.constant " + std::to_string(stride) + " : i64\n";
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::string comma = d ? ", " : "", n = std::to_string(d);
    sizes += comma + "%n" + n;
    strides += comma + "%s" + n;
    zeros += comma + "%c0";
  }
  for (const char *p : {"x", "y"})
    text += std::string("    %v") + p + " = tile.make_view %" + p + ", extents [" + sizes + "], strides [" + strides +
            "] : " + view + ", i64\n";
  text += "    %a = tile.load_view %vx[" + zeros + "] : " + view + ", i64 -> " + source + "\n" + body +
          "    tile.store_view %vy[" + zeros + "], %b : " + view + ", i64, " + destination + "\n";
  const std::string parameter = ": !tile.ptr<" + element + "> {tile.divisibility = 16 : i32}";
  return kernelModule("%x" + parameter + ", %y" + parameter, text, warps);
}

TEST(Convert, RandomPairsInsideWarps) {
  std::mt19937_64 random(7);
  std::map<std::string, unsigned> strategies;
  const char *const targets[] = {"sm_75", "sm_80", "sm_90a", "sm_120a"};
  const struct {
    const char *type;
    unsigned bytes;
  } elements[] = {{"i8", 1}, {"i16", 2}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"i64", 8}, {"f64", 8}, {"f8E4M3FN", 1}};
  const unsigned rounds = pick(60u, 600u);
  for (unsigned round = 0; round < rounds; ++round) {
    const unsigned logWarps = static_cast<unsigned>(random() % 3), rank = 1 + static_cast<unsigned>(random() % 3);
    const Sizes shape = randomShape(random, rank, 10);
    const layout::Encoding from = randomLayout(random, shape, logWarps);
    const auto source = TileLayout::create(from, shape);
    if (!source)
      continue; // a slice may not fit
    const layout::Encoding to = shuffledInWarp(random, *source);
    const auto destination = TileLayout::create(to, shape);
    ASSERT_TRUE(destination.ok()) << destination.status().toString();
    const char *target = targets[random() % 4];
    const auto &element = elements[random() % 8];
    auto plan = layout::planTileConversion(*source, *destination, element.bytes * 8, **findTarget(target));
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    ++strategies[std::string(layout::strategyName(plan->core.strategy))];
    const std::string a = tensorType(shape, element.type, from), b = tensorType(shape, element.type, to);
    const std::string text = viewKernel(
        shape, element.type, a, "    %b = tile_gpu.convert_layout %a : " + a + " to " + b + "\n", b, 1u << logWarps);
    std::size_t count = element.bytes;
    for (std::int64_t extent : shape)
      count *= static_cast<std::size_t>(extent);
    std::vector<unsigned char> x(count);
    for (unsigned char &c : x)
      c = static_cast<unsigned char>(random());
    Emulator gpu(target);
    Buffer &bx = gpu.upload(x), &by = gpu.allocate(count);
    (void)by.poison(std::byte(0xCD));
    const KernelRun run = runKernel(gpu, target, text, 1u << logWarps, {bx, by});
    ASSERT_EQ(run.error, "") << "round " << round;
    ASSERT_EQ(gpu.download<unsigned char>(by), x) << "round " << round << "\n" << text << run.ptx;
  }
  for (auto &[name, n] : strategies)
    std::printf("%s: %u\n", name.c_str(), n);
  EXPECT_GT(strategies["warp_shuffle"], rounds / 4);
}

} // namespace
} // namespace kiln::test
