// Tiles of m * 2^k against enumeration, element by element.
#include "compiler/layout/TileLayout.h"
#include "compiler/layout/Checks.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/support/TestTier.h"

#include <map>
#include <set>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

const std::uint32_t oddCounts[] = {1, 3, 5, 7, 9, 11, 13, 15};

/// Every pair of odd counts with a product of at most 15.
std::vector<Coords> allCounts() {
  std::vector<Coords> out;
  for (std::uint32_t a : oddCounts)
    for (std::uint32_t b : oddCounts)
      if (a * b <= maxRepetitions)
        out.push_back({a, b});
  return out;
}

/// Calls f(register, lane, warp, block) for every place.
template <typename F> void forEachPlace(const TileLayout &t, F f) {
  for (unsigned b = 0; b < t.core().size(InDim::Block); ++b)
    for (unsigned w = 0; w < t.core().size(InDim::Warp); ++w)
      for (unsigned l = 0; l < t.core().size(InDim::Lane); ++l)
        for (unsigned r = 0; r < t.registers(); ++r)
          f(r, l, w, b);
}

} // namespace

TEST(TileLayout, EveryElementHasItsCopies) {
  Random random(31);
  for (const Coords &counts : allCounts()) {
    for (int round = 0; round < kiln::test::pick(2, 12); ++round) {
      Encoding e = randomEncoding(random, random.in(0, 2));
      Sizes shape = {counts[0] << random.in(0, 5), counts[1] << random.in(0, 5)};
      TileLayout tile = *TileLayout::create(e, shape);
      EXPECT_EQ(tile.shape(), shape);
      EXPECT_EQ(tile.repetitions(), counts[0] * counts[1]);
      LinearLayout core = unwrap(lower(e, {shape[0] / counts[0], shape[1] / counts[1]}));
      std::map<std::pair<std::uint32_t, std::uint32_t>, unsigned> copies;
      forEachPlace(tile, [&](unsigned r, unsigned l, unsigned w, unsigned b) {
        Coords at = tile.coords(r, l, w, b);
        ++copies[{at[0], at[1]}];
        // The rule of the specification, spelled out: rep slowest, in dimension order.
        unsigned coreRegs = core.size(InDim::Register), rep = r / coreRegs;
        Coords inner = core.coords(core.apply(r % coreRegs, l, w, b));
        EXPECT_EQ(at[0], inner[0] + core.shape(0) * (rep / counts[1]));
        EXPECT_EQ(at[1], inner[1] + core.shape(1) * (rep % counts[1]));
        TileElement where = tile.locate(at);
        EXPECT_EQ(where.rep, rep);
        EXPECT_EQ(where.coreFlat, core.flat(inner));
        EXPECT_EQ(tile.coords(where), at);
      });
      // Nothing is missing, nothing outside, and all elements have as many copies as free bits make.
      EXPECT_EQ(copies.size(), std::size_t(shape[0] * shape[1]));
      unsigned each = 1u << (core.hardwareBits() - core.totalBits());
      for (auto &[at, n] : copies) {
        EXPECT_LT(at.first, shape[0]);
        EXPECT_LT(at.second, shape[1]);
        EXPECT_EQ(n, each);
      }
    }
  }
}

TEST(TileLayout, WgmmaOfNinetySix) {
  TileLayout tile = *TileLayout::create(Mma{3, {4, 1}, 32}, {64, 96});
  EXPECT_EQ(tile.text(), "register: j1 i8 j8 j16; lane: j2 j4 i1 i2 i4; warp: i16 i32; repeat: j3");
  ASSERT_EQ(tile.registers(), 48u); // the hardware's fragment of N = 96
  for (unsigned w = 0; w < 4; ++w)
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned i = 0; i < 48; ++i)
        EXPECT_EQ(tile.coords(i, l, w, 0),
                  (Coords{16 * w + (l >> 2) + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (l & 3) + (i & 1)}));
}

TEST(TileLayout, SliceTransposeReshape) {
  Random random(32);
  for (const Coords &counts : allCounts()) {
    Encoding e = randomEncoding(random, random.in(0, 2));
    Sizes shape = {counts[0] << random.in(0, 4), counts[1] << random.in(0, 4)};
    TileLayout tile = *TileLayout::create(e, shape);

    // A slice is the layout of the sliced encoding, and holds exactly what the parent's threads hold along the rest.
    for (unsigned d = 0; d < 2; ++d) {
      TileLayout cut = *tile.slice(d);
      EXPECT_EQ(cut.shape(), Sizes{shape[1 - d]});
      std::map<std::array<unsigned, 3>, std::set<std::uint32_t>> want, got;
      forEachPlace(tile, [&](unsigned r, unsigned l, unsigned w, unsigned b) {
        want[{l, w, b}].insert(tile.coords(r, l, w, b)[1 - d]);
      });
      forEachPlace(cut, [&](unsigned r, unsigned l, unsigned w, unsigned b) {
        got[{l, w, b}].insert(cut.coords(r, l, w, b)[0]);
      });
      EXPECT_EQ(got, want);
      TileLayout encoded = *TileLayout::create(Slice{d, e}, {shape[1 - d]});
      EXPECT_EQ(cut.tile(), encoded.tile());
    }

    unsigned perm[] = {1, 0};
    TileLayout turned = *tile.transpose(perm);
    unsigned coreRegs = tile.core().size(InDim::Register);
    forEachPlace(tile, [&](unsigned r, unsigned l, unsigned w, unsigned b) {
      unsigned renamed = tile.transposedRep(perm, r / coreRegs) * coreRegs + r % coreRegs;
      Coords at = tile.coords(r, l, w, b), there = turned.coords(renamed, l, w, b);
      EXPECT_EQ(there, (Coords{at[1], at[0]}));
    });
    EXPECT_EQ(turned, *TileLayout::create(Transposed{{1, 0}, e}, {shape[1], shape[0]}));

    // Row-major flat indices survive every reshape that keeps counted dimensions whole.
    std::vector<Sizes> shapes = {{shape[0], 1, shape[1]}, {1, shape[0], shape[1], 1}};
    if (counts[0] == 1 && shape[0] >= 4)
      shapes.push_back({2, shape[0] / 2, shape[1]});
    if (counts[1] == 1 && shape[1] >= 4)
      shapes.push_back({shape[0], shape[1] / 4, 4});
    if (counts[0] * counts[1] == 1)
      shapes.push_back({shape[0] * shape[1]});
    for (const Sizes &s : shapes) {
      auto reshaped = tile.reshape(s);
      ASSERT_TRUE(reshaped.ok()) << reshaped.status().toString();
      forEachPlace(tile, [&](unsigned r, unsigned l, unsigned w, unsigned b) {
        Coords at = tile.coords(r, l, w, b), there = reshaped->coords(r, l, w, b);
        std::int64_t flat = at[0] * shape[1] + at[1], flatThere = 0;
        for (std::size_t d = 0; d < s.size(); ++d)
          flatThere = flatThere * s[d] + there[unsigned(d)];
        EXPECT_EQ(flat, flatThere);
      });
    }
  }
}

TEST(TileLayout, PaddedShapeIsTheSmallestLegalTile) {
  Random random(33);
  auto legal = [](std::int64_t a, std::int64_t b) { return splitExtents(Sizes{a, b}).ok(); };
  for (int round = 0; round < kiln::test::pick(200, 800); ++round) {
    std::int64_t a = random.in(1, 300), b = random.in(1, 300);
    Sizes got = *paddedShape(Sizes{a, b});
    EXPECT_TRUE(legal(got[0], got[1]) && got[0] >= a && got[1] >= b);
    std::int64_t best = std::int64_t(1) << 40;
    for (std::int64_t x = a; x <= 512; ++x)
      if (legal(x, 1))
        for (std::int64_t y = b; y <= 512 && x * y < best; ++y)
          if (legal(x, y))
            best = x * y;
    EXPECT_EQ(got[0] * got[1], best) << a << "x" << b;
  }
  EXPECT_FALSE(paddedShape(Sizes{0}).has_value());
  EXPECT_FALSE(paddedShape(Sizes{std::int64_t(1) << 62, 4}).has_value());
  EXPECT_EQ(paddedShape(Sizes{}), Sizes{});
}

TEST(SharedTile, SlabsAreDisjointAlignedCores) {
  for (const Coords &counts : allCounts()) {
    for (SharedEncoding e : {SharedEncoding(Swizzled{2, 1, 4}), SharedEncoding(Swizzled{4, 2, 2, {0, 1}}),
                             SharedEncoding(Padded{16, 2}), SharedEncoding(Padded{1, 1})}) {
      Sizes shape = {counts[0] * 16, counts[1] * 64};
      SharedTile tile = *SharedTile::create(e, shape, 16), core = *SharedTile::create(e, {16, 64}, 16);
      const std::uint64_t slab = (core.bytes() + tile.alignment() - 1) / tile.alignment() * tile.alignment();
      std::set<std::uint64_t> used;
      for (std::uint32_t i = 0; i < shape[0]; ++i)
        for (std::uint32_t j = 0; j < shape[1]; ++j) {
          std::uint64_t at = tile.byteOffset(Coords{i, j});
          unsigned rep = i / 16 * counts[1] + j / 64;
          EXPECT_TRUE(used.insert(at).second);
          EXPECT_EQ(at, rep * slab + core.byteOffset(Coords{i % 16, j % 64}));
          EXPECT_EQ(tile.repetitionByte(rep), rep * slab);
        }
      EXPECT_EQ(*used.rbegin() + 2, tile.bytes());
    }
  }
}

namespace {

/// Where TMA and wgmma have the element, by counting: column of S bytes, row, byte; then the swizzle of the address.
std::uint64_t hardwareByte(const Sizes &shape, unsigned bytes, unsigned swizzle, const Sizes &order, const Coords &x) {
  std::uint64_t column = x[unsigned(order[0])] * std::uint64_t(bytes), row = 0, rows = 1;
  for (std::size_t i = 1; i < order.size(); ++i) {
    row += x[unsigned(order[i])] * rows;
    rows *= static_cast<std::uint64_t>(shape[std::size_t(order[i])]);
  }
  const std::uint64_t s = swizzle ? swizzle : static_cast<std::uint64_t>(shape[std::size_t(order[0])]) * bytes;
  const std::uint64_t at = column / s * rows * s + row * s + column % s;
  return at ^ (at >> 3 & (swizzle == 128 ? 0x70 : swizzle == 64 ? 0x30 : swizzle == 32 ? 0x10 : 0));
}

} // namespace

TEST(SharedTile, TmaBuffersLieInTheHardwaresOrder) {
  Random random(34);
  const std::uint32_t odd[] = {1, 1, 3, 5, 7, 9, 11, 13, 15};
  unsigned several = 0, refused = 0;
  std::map<unsigned, unsigned> fields; // how many buffers have how many
  for (int round = 0; round < kiln::test::pick(1000, 10000); ++round) {
    const unsigned bits = random.pick({8u, 16u, 32u, 64u}), bytes = bits / 8, rank = unsigned(random.in(1, 3));
    const unsigned swizzle = random.pick({0u, 32u, 64u, 128u});
    const Sizes order = random.permutation(int(rank));
    Sizes shape(rank, 1);
    const bool legal = random.chance(0.5); // most likely
    for (unsigned i = 0; i < rank; ++i) {
      const std::int64_t m = odd[random.in(0, random.chance(0.5) ? 0 : 8)];
      const std::int64_t least = !legal || i > 1 ? 1 : i == 1 ? 8 : std::max(swizzle, 32u) / bytes;
      shape[std::size_t(order[i])] = m * (least << random.in(0, legal ? 2 : 5));
    }
    if (!splitExtents(shape).ok())
      continue;
    const TileShape tile = unwrap(splitExtents(shape));
    const auto innermost = unsigned(order[0]);
    auto buffer = SharedTile::create(Tma{swizzle, order}, shape, bits);
    if (!buffer) {
      // Rightly so: the row has no column of S bytes, no rows of a power of two without a swizzle, or fewer than 8 rows
      // from which the swizzle can repeat.
      EXPECT_NE(buffer.status().message().find("L14"), std::string::npos) << buffer.status().toString();
      std::uint32_t firstRows = 1;
      for (std::size_t i = 1; i < order.size() && (i == 1 || tile.counts[unsigned(order[i - 1])] == 1); ++i)
        firstRows *= tile.core[unsigned(order[i])];
      const bool narrow = tile.core[innermost] * bytes < swizzle, whole = !swizzle && tile.counts[innermost] > 1;
      const bool few = swizzle ? firstRows < 8 : firstRows * tile.core[innermost] * bytes < 128;
      EXPECT_TRUE(narrow || whole || (few && tile.repetitions() > 1)) << buffer.status().toString();
      ++refused;
      continue;
    }
    SCOPED_TRACE(testing::PrintToString(shape) + " order " + testing::PrintToString(order) + ", swizzle " +
                 std::to_string(swizzle) + ", bytes " + std::to_string(bytes));
    std::uint64_t elements = 1;
    for (std::int64_t extent : shape)
      elements *= std::uint64_t(extent);
    EXPECT_EQ(buffer->bytes(), elements * bytes);
    for (std::uint64_t n = 0; n < elements; ++n) {
      Coords x(rank, 0);
      std::uint64_t rest = n;
      for (unsigned d = rank; d-- > 0; rest /= std::uint64_t(shape[d]))
        x[d] = std::uint32_t(rest % std::uint64_t(shape[d]));
      ASSERT_EQ(buffer->byteOffset(x), hardwareByte(shape, bytes, swizzle, order, x)) << testing::PrintToString(n);
    }
    several += tile.repetitions() > 1;
    ++fields[buffer->fields().size()];
  }
  EXPECT_GT(several, 30u);
  EXPECT_GT(refused, 30u);
  EXPECT_GT(fields[1], 30u);
  EXPECT_GT(fields[2], 10u);
}

// What is added to a place of the core leaves its bank, or moves all banks of an instruction alike.
TEST(SharedTile, FieldsAndRepetitionsKeepTheSwizzle) {
  const SharedTile tile = *SharedTile::create(Tma{64}, {2, 96, 160}, 16);
  EXPECT_EQ(tile.tile().core, (Coords{2, 32, 32}));
  ASSERT_EQ(tile.fields().size(), 2u);
  EXPECT_EQ(tile.fields()[0], (OffsetField{0, 10, 2}));       // 32 rows of 64 bytes
  EXPECT_EQ(tile.fields()[1], (OffsetField{10, 1, 96 * 64})); // the second matrix
  EXPECT_EQ(tile.repetitionStride(1), 32u * 64);
  EXPECT_EQ(tile.repetitionStride(2), 2u * 96 * 64); // the next 32 columns
  EXPECT_EQ(tile.repetitionByte(5 + 2), 32u * 64 + 2 * 2 * 96 * 64);
  // Both row dimensions have repetitions: rows of the second one and columns are fields of their own.
  const Sizes shape = {6, 24, 128};
  const SharedTile nested = *SharedTile::create(Tma{64}, shape, 16);
  EXPECT_EQ(nested.fields().size(), 3u);
  for (std::uint32_t i = 0; i < 6; ++i)
    for (std::uint32_t j = 0; j < 24; ++j)
      for (std::uint32_t k = 0; k < 128; ++k)
        EXPECT_EQ(nested.byteOffset(Coords{i, j, k}), hardwareByte(shape, 2, 64, {2, 1, 0}, Coords{i, j, k}));
}
