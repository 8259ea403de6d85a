// Layout conversions inside warps, bit for bit: random pairs of layouts, shapes with odd factors, 8 to 64 bits.
#include "tests/lowering/Text.h"

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

TEST(Convert, RandomPairsInsideWarps) {
  std::mt19937_64 random(7);
  std::map<std::string, unsigned> strategies;
  const unsigned rounds = pick(60u, 300u);
  for (unsigned round = 0; round < rounds; ++round) {
    const unsigned logWarps = static_cast<unsigned>(random() % 3), rank = 1 + static_cast<unsigned>(random() % 3);
    const Sizes shape = randomShape(random, rank, 10);
    const layout::Encoding from = randomLayout(random, shape, logWarps);
    const auto source = TileLayout::create(from, shape);
    if (!source || source->registers() > 128)
      continue; // a slice may not fit; a tile must not fill the registers
    const layout::Encoding to = shuffledInWarp(random, *source);
    const auto destination = TileLayout::create(to, shape);
    ASSERT_TRUE(destination.ok()) << destination.status().toString();
    const char *target = loweringTargets[random() % 4];
    const auto &element = elementTypes[random() % std::size(elementTypes)];
    auto plan = layout::planTileConversion(*source, *destination, element.bytes * 8, **findTarget(target));
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    ++strategies[std::string(layout::strategyName(plan->core.strategy))];
    const std::string a = tensorType(shape, element.name, from), b = tensorType(shape, element.name, to);
    const std::string text = kernelModule(twoPointers(element.name),
                                          zeroConstant + loadView("a", "x", shape, element.name, a) +
                                              "    %b = tile_gpu.convert_layout %a : " + a + " to " + b + "\n" +
                                              storeView("b", "y", shape, element.name, b),
                                          1u << logWarps);
    const auto x = randomBytes(random, elementsOf(shape) * element.bytes);
    Emulator gpu(target);
    Buffer &bx = gpu.upload(x), &by = gpu.allocate(x.size());
    (void)by.poison(std::byte(0xCD));
    const KernelRun run = runKernel(gpu, target, text, 1u << logWarps, {bx, by});
    ASSERT_EQ(run.error, "") << "round " << round;
    ASSERT_EQ(gpu.download<unsigned char>(by), x) << "round " << round << "\n" << text << run.ptx;
  }
  for (auto &[name, n] : strategies)
    std::printf("%s: %u\n", name.c_str(), n);
  EXPECT_GT(strategies["warp_shuffle"], rounds / 4);
}

/// Any pair: through shared memory where the data crosses warps, with expand-shared, allocation and barriers.
TEST(Convert, RandomPairsThroughSharedMemory) {
  std::mt19937_64 random(8);
  std::map<std::string, unsigned> forms;
  for (unsigned round = 0, rounds = pick(50u, 300u); round < rounds; ++round) {
    const unsigned logWarps = static_cast<unsigned>(random() % 4), rank = 1 + static_cast<unsigned>(random() % 3);
    const Sizes shape = randomShape(random, rank, 11);
    const layout::Encoding from = randomLayout(random, shape, logWarps), to = randomLayout(random, shape, logWarps);
    const auto source = TileLayout::create(from, shape), destination = TileLayout::create(to, shape);
    if (!source || !destination || source->registers() > 128 || destination->registers() > 128)
      continue;
    const char *target = loweringTargets[random() % 4];
    const auto &element = elementTypes[random() % std::size(elementTypes)];
    auto plan = layout::planTileConversion(*source, *destination, element.bytes * 8, **findTarget(target));
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    if (plan->core.passes) {
      ++forms[std::string(layout::accessFormName(plan->core.shared.store.form))];
      ++forms[std::string(layout::accessFormName(plan->core.shared.load.form))];
      ++forms["scope " + std::string(layout::scopeName(plan->core.shared.scope))];
    }
    const std::string a = tensorType(shape, element.name, from), b = tensorType(shape, element.name, to);
    const std::string text = kernelModule(twoPointers(element.name),
                                          zeroConstant + loadView("a", "x", shape, element.name, a) +
                                              "    %b = tile_gpu.convert_layout %a : " + a + " to " + b + "\n" +
                                              storeView("b", "y", shape, element.name, b),
                                          1u << logWarps);
    const auto x = randomBytes(random, elementsOf(shape) * element.bytes);
    Emulator gpu(target);
    Buffer &bx = gpu.upload(x), &by = gpu.allocate(x.size());
    (void)by.poison(std::byte(0xCD));
    const KernelRun run = runKernel(gpu, target, text, 1u << logWarps, {bx, by}, {}, From::Expansion);
    ASSERT_EQ(run.error, "") << "round " << round;
    ASSERT_EQ(gpu.download<unsigned char>(by), x) << "round " << round << "\n" << text << run.ptx;
  }
  for (auto &[name, n] : forms)
    std::printf("%s: %u\n", name.c_str(), n);
  EXPECT_GT(forms["scope cta"], 2u);
  EXPECT_GT(forms["scope warp"], 0u);
}

/// Fragments staged for wide stores: stmatrix where the target has it.
TEST(Convert, FragmentsThroughSharedMemory) {
  const Sizes shape = {64, 128};
  const layout::Encoding fragment = layout::Mma{2, {2, 2}}, rows = layout::Blocked{{1, 8}, {4, 8}, {4, 1}, {1, 0}};
  std::mt19937_64 random(9);
  const auto x = randomBytes(random, 64 * 128 * 2);
  for (const char *target : loweringTargets)
    for (bool back : {false, true}) {
      const std::string a = tensorType(shape, "bf16", back ? rows : fragment),
                        b = tensorType(shape, "bf16", back ? fragment : rows);
      const std::string text = kernelModule(twoPointers("bf16"),
                                            zeroConstant + loadView("a", "x", shape, "bf16", a) +
                                                "    %b = tile_gpu.convert_layout %a : " + a + " to " + b + "\n" +
                                                storeView("b", "y", shape, "bf16", b),
                                            4);
      Emulator gpu(target);
      Buffer &bx = gpu.upload(x), &by = gpu.allocate(x.size());
      (void)by.poison(std::byte(0xCD));
      const KernelRun run = runKernel(gpu, target, text, 4, {bx, by}, {}, From::Expansion);
      ASSERT_EQ(run.error, "") << target;
      EXPECT_EQ(gpu.download<unsigned char>(by), x) << target;
      const bool stmatrix = (**findTarget(target)).has(Capability::Stmatrix);
      EXPECT_EQ(run.ptx.find("stmatrix.sync.aligned") != std::string::npos, stmatrix && !back) << target << run.ptx;
      EXPECT_EQ(run.ptx.find("ldmatrix.sync.aligned") != std::string::npos, back) << target << run.ptx;
    }
}

} // namespace
} // namespace kiln::test
