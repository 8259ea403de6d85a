// Encodings against arithmetic that knows nothing of bases: the PTX manual's fragments, mixed-radix counting, the
// address formulas of swizzles.
#include "compiler/layout/Checks.h"
#include "compiler/layout/TileLayout.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/support/TestTier.h"

#include <functional>
#include <map>
#include <set>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

enum class Fragment { C, A16, B16, A8, B8, A32, B32 };

/// (row, column) of element i of a lane.
Coords fragment(Fragment kind, unsigned lane, unsigned i) {
  unsigned g = lane >> 2, t = lane & 3;
  switch (kind) {
  case Fragment::C:
    return {g + 8 * (i >> 1 & 1), 2 * t + (i & 1)};
  case Fragment::A16:
    return {g + 8 * (i >> 1 & 1), 2 * t + (i & 1) + 8 * (i >> 2)};
  case Fragment::B16:
    return {2 * t + (i & 1) + 8 * (i >> 1), g};
  case Fragment::A8:
    return {g + 8 * (i >> 2 & 1), 4 * t + (i & 3) + 16 * (i >> 3)};
  case Fragment::B8:
    return {4 * t + (i & 3) + 16 * (i >> 2), g};
  case Fragment::A32:
    return {g + 8 * (i & 1), t + 4 * (i >> 1)};
  case Fragment::B32:
    return {t + 4 * i, g};
  }
  return {};
}

const Mma oneWarp{2, {1, 1}};

std::string textOf(const Encoding &e, Sizes shape) {
  return unwrap(lower(e, shape)).text();
}

} // namespace

TEST(Encodings, WorkedExamples) {
  Blocked row{{1, 4}, {8, 4}, {4, 1}, {1, 0}};
  Mma mma{2, {2, 2}};
  EXPECT_EQ(textOf(row, {64, 32}), "register: j1 j2 j16 i32; lane: j4 j8 i1 i2 i4; warp: i8 i16");
  EXPECT_EQ(textOf(row, {16, 8}), "register: j1 j2; lane: j4 0 i1 i2 i4; warp: i8 0");
  EXPECT_EQ(textOf(Slice{1, Encoding(row)}, {64}), "register: i32; lane: 0 0 i1 i2 i4; warp: i8 i16");
  EXPECT_EQ(textOf(mma, {64, 32}), "register: j1 i8 j16 i32; lane: j2 j4 i1 i2 i4; warp: j8 i16");
  EXPECT_EQ(textOf(DotOperand{0, 2, Encoding(mma)}, {64, 32}),
            "register: j1 i8 j8 j16 i32; lane: j2 j4 i1 i2 i4; warp: 0 i16");
  EXPECT_EQ(textOf(DotOperand{0, 4, Encoding(mma)}, {64, 32}),
            "register: j1 j2 i8 j16 i32; lane: j4 j8 i1 i2 i4; warp: 0 i16");
  EXPECT_EQ(textOf(DotOperand{1, 2, Encoding(mma)}, {32, 32}),
            "register: i1 i8 i16 j16; lane: i2 i4 j1 j2 j4; warp: j8 0");
  Mma wgmma{3, {4, 1}, 32};
  EXPECT_EQ(textOf(wgmma, {64, 32}), "register: j1 i8 j8 j16; lane: j2 j4 i1 i2 i4; warp: i16 i32");
  EXPECT_EQ(textOf(DotOperand{0, 2, Encoding(wgmma)}, {64, 32}), textOf(wgmma, {64, 32}));
  EXPECT_EQ(textOf(Mma{3, {8, 1}, 64}, {64, 64}), "register: j1 i8 j8 j16 j32; lane: j2 j4 i1 i2 i4; warp: i16 i32 0");
  EXPECT_EQ(unwrap(lowerShared(Swizzled{8, 1, 8}, {8, 64}, 16)).text(),
            "offset: j1 j2 j4 j8 j16 j32 i1+j8 i2+j16 i4+j32");
  EXPECT_EQ(unwrap(lowerShared(Tma{128}, {8, 64}, 16)).text(), "offset: j1 j2 j4 j8 j16 j32 i1+j8 i2+j16 i4+j32");
  EXPECT_EQ(unwrap(lowerShared(Tma{64}, {8, 32}, 16)).text(), "offset: j1 j2 j4 j8 j16 i1 i2+j8 i4+j16");
  EXPECT_EQ(unwrap(lowerShared(Tma{32}, {8, 32}, 8)).text(), "offset: j1 j2 j4 j8 j16 i1 i2 i4+j16");
}

TEST(Encodings, FragmentsOfTheManual) {
  struct Case {
    Fragment kind;
    Encoding encoding;
    Sizes shape;
    unsigned elements;
  };
  auto dot = [](int op, int kWidth) { return Encoding(DotOperand{op, kWidth, Encoding(oneWarp)}); };
  const Case cases[] = {
      {Fragment::C, oneWarp, {16, 8}, 4},     {Fragment::A16, dot(0, 2), {16, 16}, 8},
      {Fragment::B16, dot(1, 2), {16, 8}, 4}, {Fragment::A8, dot(0, 4), {16, 32}, 16},
      {Fragment::B8, dot(1, 4), {32, 8}, 8},  {Fragment::A32, dot(0, 1), {16, 8}, 4},
      {Fragment::B32, dot(1, 1), {8, 8}, 2},  {Fragment::A16, dot(0, 2), {16, 8}, 4},
      {Fragment::A8, dot(0, 4), {16, 16}, 8},
  };
  for (const Case &c : cases) {
    LinearLayout layout = unwrap(lower(c.encoding, c.shape));
    ASSERT_EQ(layout.size(InDim::Register), c.elements);
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < c.elements; ++i)
        EXPECT_EQ(layout.coords(layout.apply(i, lane, 0, 0)), fragment(c.kind, lane, i));
  }
}

TEST(Encodings, WarpgroupFragments) {
  for (std::int64_t n : {8, 16, 64, 256}) {
    LinearLayout layout = unwrap(lower(Mma{3, {4, 1}, n}, {64, n}));
    for (unsigned w = 0; w < 4; ++w)
      for (unsigned l = 0; l < 32; ++l)
        for (unsigned i = 0; i < n / 2; ++i)
          EXPECT_EQ(layout.coords(layout.apply(i, l, w, 0)),
                    (Coords{16 * w + (l >> 2) + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (l & 3) + (i & 1)}));
  }
  const std::pair<unsigned, Fragment> operands[] = {{1, Fragment::A32}, {2, Fragment::A16}, {4, Fragment::A8}};
  for (auto [kWidth, kind] : operands) {
    LinearLayout layout = unwrap(lower(DotOperand{0, kWidth, Encoding(Mma{3, {4, 1}, 8})}, {64, 8 * kWidth}));
    for (unsigned w = 0; w < 4; ++w)
      for (unsigned l = 0; l < 32; ++l)
        for (unsigned i = 0; i < 4 * kWidth; ++i) {
          Coords want = fragment(kind, l, i);
          want[0] += 16 * w;
          EXPECT_EQ(layout.coords(layout.apply(i, l, w, 0)), want);
        }
  }
}

TEST(Encodings, BlockedAgainstMixedRadix) {
  Random random(11);
  for (int round = 0; round < kiln::test::pick(200, 2000); ++round) {
    int rank = random.in(1, 3);
    Blocked e = randomBlocked(random, rank, random.in(0, 3));
    Sizes shape;
    for (int d = 0; d < rank; ++d)
      shape.push_back(std::int64_t(1) << random.in(0, 6));
    LinearLayout layout = unwrap(lower(e, shape));
    auto digits = [&](std::int64_t x, const Sizes &radix) {
      Sizes out(shape.size(), 0);
      for (std::int64_t d : e.order) {
        out[d] = x % radix[d];
        x /= radix[d];
      }
      return out;
    };
    Sizes part, reps;
    std::int64_t inPart = 1, inReps = 1, warps = 1;
    for (int d = 0; d < rank; ++d) {
      part.push_back(std::min(e.sizePerThread[d], shape[d])); // registers past the extent do not exist
      reps.push_back(
          std::max<std::int64_t>(1, shape[d] / (e.sizePerThread[d] * e.threadsPerWarp[d] * e.warpsPerCTA[d])));
      inPart *= part[d];
      inReps *= reps[d];
      warps *= e.warpsPerCTA[d];
    }
    ASSERT_EQ(layout.size(InDim::Register), inPart * inReps);
    for (int n = 0; n < 40; ++n) {
      int reg = random.in(0, int(inPart * inReps) - 1), lane = random.in(0, 31), warp = random.in(0, int(warps) - 1);
      Sizes element = digits(reg % inPart, part), l = digits(lane, e.threadsPerWarp), w = digits(warp, e.warpsPerCTA);
      Sizes rep = digits(reg / inPart, reps);
      Coords got = layout.coords(layout.apply(unsigned(reg), unsigned(lane), unsigned(warp), 0));
      for (int d = 0; d < rank; ++d)
        EXPECT_EQ(got[d], (element[d] +
                           e.sizePerThread[d] * (l[d] + e.threadsPerWarp[d] * (w[d] + e.warpsPerCTA[d] * rep[d]))) %
                              shape[d]);
    }
  }
}

TEST(Encodings, SliceIsTheParentWithTheDimensionCut) {
  Random random(12);
  for (int round = 0; round < kiln::test::pick(200, 2000); ++round) {
    Encoding e = randomEncoding(random, random.in(0, 3));
    for (unsigned dim = 0; dim < 2; ++dim) {
      std::int64_t size = std::int64_t(1) << random.in(0, 6);
      LinearLayout cut = unwrap(lower(Slice{dim, e}, {size}));
      LinearLayout parent = unwrap(lower(e, {dim == 0 ? 64 : size, dim == 0 ? size : 64}));
      for (InDim d : hardwareDims) {
        Columns want;
        for (BitVector c : parent.columns(d))
          if (std::uint32_t x = parent.coord(c, 1 - dim); x || d != InDim::Register)
            want.push_back(x);
        EXPECT_EQ(Columns(cut.columns(d)), want) << e.keyword() << " dim " << dim << " " << inDimName(d);
      }
    }
  }
}

TEST(Encodings, BlocksOfAClusterSplitTheTopBits) {
  Blocked e{{1, 2}, {4, 8}, {2, 1}, {1, 0}, CtaSplit{{2, 4}, {2, 2}, {1, 0}}};
  LinearLayout layout = unwrap(lower(e, {32, 64}));
  EXPECT_EQ(layout.text(), "register: j1 j16 i8; lane: j2 j4 j8 i1 i2; warp: i4; block: j32 0 i16");
  for (unsigned block = 0; block < 8; ++block) {
    Coords at = layout.coords(layout.apply(0, 0, 0, block));
    EXPECT_EQ(at, (Coords{16 * (block >> 2), 32 * (block & 1)})); // blocks 2 and 3 along j copy 0 and 1
  }
  // A dimension smaller than its split: everything else replicates.
  EXPECT_EQ(unwrap(lower(e, {1, 1})).text(), "lane: 0 0 0 0 0; warp: 0; block: 0 0 0");
}

TEST(Encodings, LinearIsBoundToItsShape) {
  LinearLayout layout = unwrap(lower(oneWarp, {16, 8}));
  Encoding linear = asLinear(layout);
  EXPECT_EQ(unwrap(lower(linear, {16, 8})), layout);
  EXPECT_FALSE(lower(linear, {8, 16}).ok());
  EXPECT_EQ(unwrap(lower(Slice{0, linear}, {8})), unwrap(layout.slice(0)));
  EXPECT_EQ(unwrap(lower(Transposed{{1, 0}, linear}, {8, 16})), unwrap(layout.transpose({1, 0})));
  EXPECT_EQ(unwrap(lower(Slice{0, Encoding(Transposed{{1, 0}, linear})}, {16})),
            unwrap(unwrap(layout.transpose({1, 0})).slice(0)));
  LinearLayout cube = unwrap(lower(Blocked{{1, 2, 1}, {2, 4, 4}, {1, 1, 1}}, {4, 8, 8}));
  EXPECT_EQ(unwrap(lower(Slice{0, Encoding(Slice{1, asLinear(cube)})}, {8})), unwrap(unwrap(cube.slice(1)).slice(0)));
}

// Any common kWidth gives the same dot product: one permutation of K serves A and B of every instruction.
TEST(Encodings, OnePermutationOfKServesBothOperands) {
  struct Native {
    unsigned bits, width;
    Fragment a, b;
  };
  for (Native n : {Native{8, 4, Fragment::A8, Fragment::B8}, Native{16, 2, Fragment::A16, Fragment::B16},
                   Native{32, 1, Fragment::A32, Fragment::B32}}) {
    unsigned low = unsigned(std::countr_zero(n.width));
    for (unsigned kWidth : {1u, 2u, 4u, 8u, 16u}) {
      unsigned K = 8 * std::max(kWidth, n.width), top = unsigned(std::countr_zero(std::max(kWidth, n.width)));
      LinearLayout a = unwrap(lower(DotOperand{0, kWidth, Encoding(oneWarp)}, {16, K}));
      LinearLayout b = unwrap(lower(DotOperand{1, kWidth, Encoding(oneWarp)}, {K, 8}));
      auto along = [](const LinearLayout &layout, unsigned dim, bool yes) {
        std::vector<unsigned> out;
        for (unsigned i = 0; i < layout.bits(InDim::Register); ++i)
          if ((layout.coord(layout.column(InDim::Register, i), dim) != 0) == yes)
            out.push_back(i);
        return out;
      };
      auto ka = along(a, 1, true), ma = along(a, 1, false), kb = along(b, 0, true), mb = along(b, 0, false);
      ASSERT_EQ(ka.size(), top + 1);
      ASSERT_EQ(kb.size(), top + 1);
      ASSERT_EQ(ma.size(), 1u);
      ASSERT_TRUE(mb.empty());
      std::set<unsigned> seen;
      for (unsigned instruction = 0; instruction < 1u << (top - low); ++instruction) {
        std::map<unsigned, unsigned> ks; // K of the instruction -> K of the tensor
        auto pick = [&](const std::vector<unsigned> &regs, unsigned elements, unsigned half) {
          unsigned out = 0;
          for (unsigned i : bitsOf(elements | instruction << low | half << top))
            out |= 1u << regs[i];
          return out;
        };
        for (unsigned lane = 0; lane < 32; ++lane)
          for (unsigned e = 0; e < 4 * n.width; ++e) {
            unsigned reg = pick(ka, e & (n.width - 1), e >> (low + 1)) | (e >> low & 1) << ma[0];
            Coords at = a.coords(a.apply(reg, lane, 0, 0)), want = fragment(n.a, lane, e);
            EXPECT_EQ(at[0], want[0]);
            EXPECT_EQ(ks.emplace(want[1], at[1]).first->second, at[1]);
          }
        for (unsigned lane = 0; lane < 32; ++lane)
          for (unsigned e = 0; e < 2 * n.width; ++e) {
            Coords at = b.coords(b.apply(pick(kb, e & (n.width - 1), e >> low), lane, 0, 0)),
                   want = fragment(n.b, lane, e);
            EXPECT_EQ(at[1], want[1]);
            EXPECT_EQ(ks.at(want[0]), at[0]);
          }
        for (auto [k, tensor] : ks)
          seen.insert(tensor);
      }
      EXPECT_EQ(seen.size(), K);
    }
  }
}

// kWidth 2 makes an accumulator an A operand, for every element width.
TEST(Encodings, AccumulatorIsAnOperandWithWidthTwo) {
  for (Encoding acc : {Encoding(Mma{2, {4, 1}}), Encoding(Mma{3, {4, 1}, 64}), Encoding(Mma{2, {1, 1}})})
    EXPECT_EQ(unwrap(lower(acc, {64, 64})), unwrap(lower(DotOperand{0, 2, acc}, {64, 64})));
}

TEST(SharedEncodings, TmaAgainstAddressArithmetic) {
  Random random(13);
  for (unsigned bits : {8u, 16u, 32u, 64u}) {
    unsigned bytes = bits / 8;
    const std::pair<unsigned, unsigned> modes[] = {{128, 0x70}, {64, 0x30}, {32, 0x10}};
    for (auto [swizzle, mask] : modes) {
      // Of fewer than 8 rows the next column of rows lies inside the swizzle's period.
      const std::pair<unsigned, unsigned> tiles[] = {{8, 128},          {64, 256 / bytes}, {16, swizzle / bytes},
                                                     {1, 1024 / bytes}, {2, 512 / bytes},  {4, 256 / bytes}};
      for (auto [rows, cols] : tiles) {
        if (cols * bytes < swizzle)
          continue;
        LinearLayout layout = unwrap(lowerShared(Tma{swizzle}, {rows, cols}, bits));
        Columns mu = unwrap(inverseRows(layout.columns(InDim::Offset), layout.totalBits()));
        unsigned slab = swizzle / bytes;
        for (unsigned i = 0; i < rows; ++i)
          for (unsigned j = 0; j < cols; ++j) {
            unsigned a = (j / slab) * rows * swizzle + i * swizzle + (j % slab) * bytes;
            EXPECT_EQ(coordsOf(mu, layout.flat(Coords{i, j})) * bytes, a ^ (a >> 3 & mask));
          }
      }
    }
  }
}

TEST(SharedEncodings, SwizzledAgainstAddressArithmetic) {
  Random random(14);
  for (int round = 0; round < kiln::test::pick(100, 1000); ++round) {
    unsigned vec = 1u << random.in(0, 3), per = 1u << random.in(0, 2), phases = 1u << random.in(0, 3);
    bool byRow = random.chance(0.5);
    Sizes order = byRow ? Sizes{1, 0} : Sizes{0, 1};
    LinearLayout layout = unwrap(lowerShared(Swizzled{vec, per, phases, order}, {64, 64}, 16));
    Columns mu = unwrap(inverseRows(layout.columns(InDim::Offset), 12));
    for (int n = 0; n < 30; ++n) {
      Coords x = {unsigned(random.in(0, 63)), unsigned(random.in(0, 63))};
      unsigned col = byRow ? x[1] : x[0], row = byRow ? x[0] : x[1];
      EXPECT_EQ(coordsOf(mu, layout.flat(x)), row * 64 + ((col / vec ^ row / per % phases) * vec + col % vec));
    }
  }
}

// A row pitch of 16 bytes over a multiple of 128 keeps 16-byte rows, and columns of words, free of bank conflicts.
TEST(SharedEncodings, PaddedRowsDoNotCollide) {
  const std::pair<unsigned, unsigned> tiles[] = {{16, 64}, {8, 128}, {32, 64}};
  for (auto [bits, cols] : tiles) {
    unsigned bytes = bits / 8;
    SharedEncoding padded = Padded{cols, 16 / bytes};
    LinearLayout layout = unwrap(lowerShared(padded, {32, cols}, bits));
    Columns mu = unwrap(inverseRows(layout.columns(InDim::Offset), layout.totalBits()));
    std::set<std::uint64_t> banks;
    for (unsigned row = 0; row < 8; ++row) {
      std::uint64_t at = paddedOffset(padded, coordsOf(mu, layout.flat(Coords{row, 0}))) * bytes;
      EXPECT_EQ(at % 16, 0u);
      for (unsigned word = 0; word < 4; ++word)
        banks.insert((at / 4 + word) % 32);
    }
    EXPECT_EQ(banks.size(), 32u);
    EXPECT_EQ(SharedTile::create(padded, {32, cols}, bits)->bytes(), 32 * cols * bytes + 31 * 16);
  }
  SharedEncoding column = Padded{32, 1};
  std::set<std::uint64_t> banks;
  for (unsigned row = 0; row < 32; ++row)
    banks.insert(paddedOffset(column, row * 32) % 32);
  EXPECT_EQ(banks.size(), 32u);
}

TEST(SharedEncodings, LinearOffsets) {
  LinearLayout layout = unwrap(lowerShared(SharedLinear{{{0, 1}, {1, 1}, {2, 0}}}, {4, 2}, 16));
  EXPECT_EQ(layout.text(), "offset: j1 i1+j1 i2");
  EXPECT_EQ(baseAlignment(Tma{128}), 1024u);
  EXPECT_EQ(baseAlignment(Tma{0}), 128u);
}
