// Vector widths, sectors, coalesced layouts and owners against enumeration.
#include "compiler/layout/MemoryAccess.h"
#include "compiler/layout/Checks.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/support/TestTier.h"

#include <set>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

TEST(MemoryAccess, VectorsJoinOnlyWhatAThreadHolds) {
  Random random(51);
  int wide = 0;
  for (int round = 0; round < kiln::test::pick(500, 5000); ++round) {
    LinearLayout layout = randomPair(random, 9).first;
    unsigned bits = random.pick({8u, 16u, 32u, 64u}), dim = unsigned(random.in(0, 1));
    std::uint32_t v =
        vectorElements(layout, dim, bits, 1u << random.in(0, 5), 1u << random.in(0, 5), 1u << random.in(0, 5));
    wide += v > 1;
    EXPECT_LE(v * bits / 8, 16u);
    for (int n = 0; n < 16; ++n) {
      unsigned lane = unsigned(random.in(0, 31)), warp = unsigned(random.word()), block = unsigned(random.word());
      std::set<BitVector> have;
      for (unsigned r = 0; r < layout.size(InDim::Register); ++r)
        have.insert(
            layout.apply(r, lane, warp & (layout.size(InDim::Warp) - 1), block & (layout.size(InDim::Block) - 1)));
      for (BitVector t : have) {
        BitVector unit = BitVector(1) << layout.bitPosition(dim), base = t - layout.coord(t, dim) % v * unit;
        for (std::uint32_t i = 0; i < v; ++i)
          EXPECT_TRUE(have.count(base + i * unit));
      }
    }
  }
  EXPECT_GT(wide, 20);
}

// The other direction: twice the width would need an element that the thread does not hold, or mix up lanes.
TEST(MemoryAccess, VectorsAreAsWideAsTheLayoutAllows) {
  Random random(52);
  for (int round = 0; round < kiln::test::pick(500, 5000); ++round) {
    LinearLayout layout = randomPair(random, 9).first;
    if (!layout.isPermutation())
      continue; // in permutation layouts the condition is exact
    for (unsigned dim = 0; dim < 2; ++dim) {
      std::uint32_t v = layoutVector(layout, dim, 1u << 20);
      if (v == layout.shape(dim))
        continue;
      std::set<BitVector> have;
      for (unsigned r = 0; r < layout.size(InDim::Register); ++r)
        have.insert(layout.apply(r, 0, 0, 0));
      EXPECT_FALSE(have.count(v * (BitVector(1) << layout.bitPosition(dim))));
    }
  }
}

TEST(MemoryAccess, CoalescedLayoutsAndSectors) {
  Random random(53);
  for (int round = 0; round < kiln::test::pick(500, 5000); ++round) {
    Sizes shape = {std::int64_t(1) << random.in(0, 8), std::int64_t(1) << random.in(0, 10)};
    unsigned bits = random.pick({8u, 16u, 32u, 64u});
    std::int64_t warps = std::int64_t(1) << random.in(0, 3);
    Blocked e = unwrap(coalesce(shape, Sizes{1, shape[1]}, 16, bits, warps));
    LinearLayout layout = unwrap(lower(e, shape));
    EXPECT_EQ(layout.size(InDim::Warp), warps);
    EXPECT_TRUE(layout.isSurjective());
    std::uint32_t v = vectorElements(layout, 1, bits, std::uint32_t(shape[1]), 16);
    // Enough elements for everyone: every thread moves 16 bytes, or the whole row if that is shorter.
    if (shape[0] * shape[1] >= 32 * warps * (128 / bits))
      EXPECT_EQ(v, std::min<std::uint32_t>(128 / bits, std::uint32_t(shape[1])));
    std::set<BitVector> touched, ofLines;
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned r = 0; r < v; ++r) {
        touched.insert(layout.apply(r, lane, 0, 0) * storageBytes(bits) >> 5);
        ofLines.insert(layout.apply(r, lane, 0, 0) * storageBytes(bits) >> 7);
      }
    EXPECT_EQ(touched.size(), sectors(layout, 1, unsigned(std::countr_zero(v)), bits));
    EXPECT_EQ(ofLines.size(), lines(layout, 1, unsigned(std::countr_zero(v)), bits));
  }
  // Column-major data: the first dimension is the contiguous one.
  Blocked e = unwrap(coalesce(Sizes{64, 64}, Sizes{64, 1}, 16, 16, 4));
  EXPECT_EQ(e.order, (Sizes{0, 1}));
  EXPECT_EQ(e.sizePerThread, (Sizes{8, 1}));
  EXPECT_EQ(e.threadsPerWarp, (Sizes{8, 4}));
  // A tile of 96 columns is three cores of 32.
  EXPECT_EQ(unwrap(coalesce(Sizes{64, 96}, Sizes{1, 32}, 16, 16, 4)).threadsPerWarp, (Sizes{8, 4}));
  EXPECT_EQ(unwrap(coalesce(Sizes{4, 4}, Sizes{-1, -5}, -16, 16, 4)).sizePerThread, (Sizes{1, 1}));
}

TEST(MemoryAccess, WidestAccessOfATarget) {
  EXPECT_EQ(maxAccessBytes(**findTarget("sm_80")), 16u);
  EXPECT_EQ(maxAccessBytes(**findTarget("sm_100a")), 32u);
  LinearLayout layout = unwrap(lower(Blocked{{1, 16}, {32, 1}, {1, 1}}, {32, 16}));
  EXPECT_EQ(vectorElements(layout, 1, 16, 16, 32, 1u << 30, 32), 16u);
  EXPECT_EQ(vectorElements(layout, 1, 16, 16, 32), 8u);
  EXPECT_EQ(vectorElements(layout, 1, 16, 16, 0), 1u);
}

TEST(MemoryAccess, ExactlyOneOwnerActs) {
  Random random(54);
  int shuffles = 0, scratches = 0, none = 0;
  for (int round = 0; round < kiln::test::pick(3000, 30000); ++round) {
    LinearLayout layout = randomPair(random, 7).first;
    if (layout.hardwareBits() > 13)
      continue;
    Owners owners(layout);
    Actors store = actorsOf(MemoryOp::Store, layout);
    EXPECT_EQ(store.ownersOnly, !owners.everyThread());
    EXPECT_FALSE(actorsOf(MemoryOp::Load, layout).ownersOnly);
    EXPECT_EQ(actorsOf(MemoryOp::AtomicWithResult, layout).broadcast, !owners.everyThread());
    EXPECT_TRUE(actorsOf(MemoryOp::BulkCopy, layout).electOne);
    std::vector<unsigned> writes(layout.numElements(), 0);
    OwnerBroadcast hand = ownerBroadcast(layout);
    none += hand.none;
    shuffles += hand.shuffle;
    scratches += hand.scratch;
    for (unsigned b = 0; b < layout.size(InDim::Block); ++b)
      for (unsigned w = 0; w < layout.size(InDim::Warp); ++w)
        for (unsigned l = 0; l < layout.size(InDim::Lane); ++l)
          for (unsigned r = 0; r < layout.size(InDim::Register); ++r) {
            if (!(r & owners.registers) && owners.isOwner(l, w, b))
              ++writes[layout.apply(r, l, w, b)];
            if (hand.shuffle) { // the owner's lane holds the element in the same register
              auto from = static_cast<unsigned>(layout::apply(hand.ownerLane, l));
              EXPECT_TRUE(owners.isOwner(from, w, b));
              EXPECT_EQ(layout.apply(r, from, w, b), layout.apply(r, l, w, b));
            }
          }
    for (unsigned n : writes)
      EXPECT_EQ(n, 1u);
  }
  EXPECT_GT(none, 5);
  EXPECT_GT(shuffles, 5);
  EXPECT_GT(scratches, 5);
}
