// Property 13: access to buffers of a given layout is correct, its wavefronts are those of the bank simulation.
#include "compiler/layout/LocalAccess.h"
#include "compiler/layout/TileLayout.h"
#include "support/Text.h"
#include "tests/layout/OracleAccess.h"
#include "tests/layout/PlanOracle.h"
#include "tests/layout/RandomLayouts.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace kiln::test {
namespace {

using namespace kiln::layout;

/// A bijection of offsets and elements: unit vectors in random order, then sheared.
LinearLayout randomBijection(Random &random, std::span<const std::uint32_t> shape, unsigned n) {
  std::vector<BitVector> offsets;
  for (unsigned i = 0; i < n; ++i)
    offsets.push_back(unitVector(i));
  random.shuffle(offsets);
  for (unsigned count = n >= 2 ? random.below(6) : 0; count > 0; --count) {
    unsigned i = random.below(n), j = (i + random.between(1, n - 1)) % n;
    offsets[i] ^= offsets[j];
  }
  return *LinearLayout::create(shape, {.offsets = offsets});
}

TEST(LocalAccess, MovesTheRightElements) {
  Random random(13);
  std::map<std::string, unsigned> seen;
  for (unsigned i = 0; i < pick(1200u, 20000u); ++i) {
    unsigned least = random.chance(50) ? 0 : 4, rowBits = random.between(least, 6),
             columnBits = random.between(least, 6);
    const std::array<std::uint32_t, 2> shape = {1u << rowBits, 1u << columnBits};
    const Sizes extents = {shape[0], shape[1]};
    unsigned bits = randomWidth(random), warpBits = random.between(0, 3);
    LinearLayout distributed = random.chance(40) ? *lower(randomEncoding(random, warpBits), extents)
                               : random.chance(50)
                                   ? *lower(randomFragment(random, warpBits), extents)
                                   : randomPermutation(random, rowBits + columnBits, warpBits, 0, shape);
    auto given = lowerShared(randomSharedEncoding(random, shape[0], shape[1], bits), extents, bits);
    ASSERT_TRUE(given.ok()) << given.status().toString();
    LinearLayout shared = random.chance(80) ? *given : randomBijection(random, shape, rowBits + columnBits);
    const Target &target = randomTarget(random, false);
    for (bool store : {false, true}) {
      SCOPED_TRACE(format("%s of %u bits on %s\n  %s\n  buffer %s", store ? "store" : "load", bits,
                          std::string(target.name).c_str(), distributed.text().c_str(), shared.text().c_str()));
      auto plan = planLocalAccess(distributed, shared, bits, target, store);
      ASSERT_TRUE(plan.ok()) << plan.status().toString();
      if (isMatrix(plan->access.form)) {
        EXPECT_TRUE(target.has(store ? Capability::Stmatrix : Capability::Ldmatrix));
      }
      LocalRun run = runLocalAccess(plan->access, distributed, shared, plan->storageBytes, plan->registerCopy);
      ASSERT_EQ(run.error, "");
      ASSERT_EQ(run.wavefronts, plan->wavefronts);
      ASSERT_EQ(run.conflicts, plan->conflicts);
      ++seen[std::string(accessFormName(plan->access.form))];
      seen["with conflicts"] += plan->conflicts > 0;

      // The oracle must notice a wrong access: one bit of an offset that some instruction uses (those of vector
      // directions are implied by the vector).
      Access wrong = plan->access;
      Mask used = 0;
      for (Mask direction : wrong.instruction)
        used ^= direction;
      if (shared.totalBits() == 0 || wrong.lanePredicate)
        continue;
      std::vector<Mask> *list = isMatrix(wrong.form) ? &wrong.rowOffset : &wrong.lane;
      unsigned column = random.below(static_cast<unsigned>(list->size()));
      if (used && random.chance(50)) {
        list = &wrong.registerOffset;
        column = static_cast<unsigned>(std::countr_zero(used));
      }
      (*list)[column] ^= 1u << random.below(shared.totalBits());
      LocalRun bad = runLocalAccess(wrong, distributed, shared, plan->storageBytes, plan->registerCopy);
      ++seen["mutants"];
      EXPECT_NE(bad.error, "") << "a wrong offset was not noticed";
    }
  }
  for (const auto &[name, count] : seen)
    std::printf("  %-20s%u\n", name.c_str(), count);
  EXPECT_GT(seen["ldmatrix"], 20u);
  EXPECT_GT(seen["ldmatrix.trans"], 5u);
  EXPECT_GT(seen["stmatrix"], 0u);
  EXPECT_GT(seen["stmatrix.trans"], 0u);
  EXPECT_GT(seen["mutants"], 500u);
}

// Tiles of m * 2^k in tma buffers: the core's access, at the bytes of every repetition, moves the right elements in as
// many wavefronts as the plan says.
TEST(LocalAccess, TmaRepetitionsInPlace) {
  Random random(14);
  std::map<std::string, unsigned> seen;
  for (unsigned i = 0; i < pick(150u, 2000u); ++i) {
    const unsigned bits = random.pick(std::vector<unsigned>{8, 16, 32}), bytes = bits / 8,
                   warpBits = random.between(0, 2);
    const unsigned swizzle = random.pick(std::vector<unsigned>{32, 64, 128}), inner = random.below(2);
    const unsigned m = random.pick(std::vector<unsigned>{3, 5, 7}), both = random.chance(30) ? 3 : 1;
    Sizes shape(2);
    shape[inner] = std::int64_t(m) * (swizzle / bytes << random.below(3));
    shape[1 - inner] = std::int64_t(m == 7 ? 1 : both) * (8 << random.below(3));
    if (random.chance(50))
      std::swap(shape[inner], shape[1 - inner]);
    const Tma encoding{swizzle, {inner, 1 - inner}};
    auto buffer = SharedTile::create(encoding, shape, bits);
    if (!buffer || buffer->bytes() > 128 * 1024)
      continue;
    const Encoding e = random.chance(50) ? randomEncoding(random, warpBits) : randomFragment(random, warpBits);
    const TileLayout tile = *TileLayout::create(e, shape);
    const unsigned registers = tile.core().size(InDim::Register);
    auto plan = planLocalAccess(tile.core(), buffer->core(), bits, **findTarget("sm_90a"), false);
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    const Access &a = plan->access;
    SCOPED_TRACE(format("%lldx%lld of %u bits, swizzle %u, order %u: %s", (long long)shape[0], (long long)shape[1],
                        bits, swizzle, inner, tile.text().c_str()));
    for (unsigned rep = 0; rep < tile.repetitions(); ++rep)
      for (unsigned warp = 0; warp < tile.core().size(InDim::Warp); ++warp)
        for (unsigned n = 0; n < 1u << a.instruction.size(); ++n) {
          const Mask first = applyMask(a.instruction, n), constant = applyMask(a.registerOffset, first);
          std::uint64_t address[32];
          for (unsigned lane = 0; lane < 32; ++lane) {
            const Mask own = isMatrix(a.form) ? applyMask(a.rowOffset, lane & ((8u << a.matrices.size()) - 1))
                                              : applyMask(a.lane, lane);
            address[lane] =
                buffer->repetitionByte(rep) + byteOf(buffer->fields(), own ^ applyMask(a.warp, warp) ^ constant);
          }
          ASSERT_EQ(isMatrix(a.form) ? simulateRows(address, 1u << a.matrices.size())
                                     : simulateWavefronts(address, ~0u, a.bytes),
                    a.wavefronts);
          for (unsigned lane = 0; lane < 32 && !isMatrix(a.form); ++lane)
            for (unsigned s = 0; s < 1u << a.vector.size(); ++s)
              ASSERT_EQ(
                  address[lane] + s * bytes,
                  buffer->byteOffset(tile.coords(rep * registers + (first ^ applyMask(a.vector, s)), lane, warp, 0)));
        }
    ++seen[std::string(accessFormName(a.form))];
    seen["several fields"] += buffer->fields().size() > 1;
    seen["with conflicts"] += plan->conflicts > 0;
  }
  for (const auto &[name, count] : seen)
    std::printf("  %-20s%u\n", name.c_str(), count);
  EXPECT_GT(seen["several fields"], 20u);
  EXPECT_GT(seen["with conflicts"], 5u);
  EXPECT_GT(seen["ldmatrix"], 0u);
  EXPECT_GT(seen["ld"], 20u);
}

} // namespace
} // namespace kiln::test
