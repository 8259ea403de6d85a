// Where the bytes of a wgmma operand lie: the formulas of the specification, and tiles as copies with a swizzle lay
// them out.
#include "runtime/device/emulator/matrix/WgmmaDescriptor.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace kiln::emulator {
namespace {

std::uint64_t encode(std::uint64_t start, std::uint64_t lbo, std::uint64_t sbo, std::uint64_t base,
                     std::uint64_t swizzle) {
  return start >> 4 | lbo >> 4 << 16 | sbo >> 4 << 32 | base << 49 | swizzle << 62;
}
constexpr std::uint32_t swizzleBytes[] = {0, 128, 64, 32};

/// The swizzle on an address, as tensor copies apply it.
std::uint32_t swizzled(std::uint32_t a, std::uint32_t s) {
  return s == 128 ? a ^ (a >> 3 & 0x70) : s == 64 ? a ^ (a >> 3 & 0x30) : s == 32 ? a ^ (a >> 3 & 0x10) : a;
}

TEST(WgmmaDescriptor, Fields) {
  const WgmmaDescriptor d = wgmmaDescriptor(encode(0x3FFF0, 0x1230, 0x20400, 5, 1));
  EXPECT_EQ(d.start, 0x3FFF0u);
  EXPECT_EQ(d.leading, 0x1230u);
  EXPECT_EQ(d.stride, 0x20400u);
  EXPECT_EQ(d.baseOffset, 5u);
  EXPECT_EQ(d.swizzleBytes, 128u);
  EXPECT_EQ(d.reserved, 0u);
  EXPECT_EQ(wgmmaDescriptor(std::uint64_t(2) << 62).swizzleBytes, 64u);
  EXPECT_EQ(wgmmaDescriptor(std::uint64_t(3) << 62).swizzleBytes, 32u);
  const std::set<unsigned> free{14, 15, 30, 31, 46, 47, 48, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61};
  for (unsigned b = 0; b < 64; ++b)
    EXPECT_EQ(wgmmaDescriptor(std::uint64_t(1) << b).reserved != 0, free.count(b) != 0) << b;
}

// The specification's formulas, written out again.
TEST(WgmmaDescriptor, Formulas) {
  std::mt19937 random(1);
  for (unsigned i = 0; i < 20000; ++i) {
    const std::uint32_t start = random() % 0x4000 * 16, lbo = random() % 0x800 * 16, sbo = random() % 0x800 * 16;
    const std::uint32_t bo = random() % 8, field = random() % 4, s = swizzleBytes[field];
    const WgmmaDescriptor d = wgmmaDescriptor(encode(start, lbo, sbo, bo, field));
    const bool mn = random() % 2;
    const std::uint32_t row = random() % (mn ? 16 : 256), byte = random() % (mn ? 512 : 32);
    std::uint32_t a = start;
    if (!mn && s)
      a += row / 8 * sbo + row % 8 * s + byte;
    else if (!mn)
      a += row / 8 * sbo + byte / 16 * lbo + row % 8 * 16 + byte % 16;
    else if (s)
      a += byte / s * lbo + row / 8 * sbo + row % 8 * s + byte % s;
    else
      a += byte / 16 * sbo + row / 8 * lbo + row % 8 * 16 + byte % 16;
    const std::uint32_t m = s == 128 ? 7 : s == 64 ? 3 : s == 32 ? 1 : 0;
    a ^= (((a >> 7) - bo) & m) << 4;
    ASSERT_EQ(wgmmaOffset(d, mn, row, byte), a)
        << start << " " << lbo << " " << sbo << " " << bo << " " << s << " " << mn;
  }
}

// A tile of R rows of S bytes as a copy with swizzle writes it, read with the descriptors of the code generator's
// table.
TEST(WgmmaDescriptor, SwizzledKMajorTiles) {
  for (unsigned field : {1u, 2u, 3u}) {
    const std::uint32_t s = swizzleBytes[field], rows = 64, base = 8192;
    for (std::uint32_t step = 0; step < s / 32; ++step) { // an instruction further along K: 32 bytes
      const WgmmaDescriptor d = wgmmaDescriptor(encode(base + 32 * step, 16, 8 * s, 0, field));
      for (std::uint32_t r = 0; r < rows; ++r)
        for (std::uint32_t b = 0; b < 32; ++b)
          ASSERT_EQ(wgmmaOffset(d, false, r, b), swizzled(base + r * s + 32 * step + b, s));
    }
  }
}

TEST(WgmmaDescriptor, SwizzledMnMajorTiles) {
  for (unsigned field : {1u, 2u, 3u}) {
    const std::uint32_t s = swizzleBytes[field], rowsOfK = 64, base = 16384, slab = rowsOfK * s;
    for (std::uint32_t k0 = 0; k0 < rowsOfK; k0 += 16) {
      const WgmmaDescriptor d = wgmmaDescriptor(encode(base + k0 * s, slab, 8 * s, 0, field));
      for (std::uint32_t k = 0; k < 16; ++k)
        for (std::uint32_t mn = 0; mn < 128; ++mn)
          ASSERT_EQ(wgmmaOffset(d, true, k, 2 * mn), swizzled(base + 2 * mn / s * slab + (k0 + k) * s + 2 * mn % s, s));
    }
  }
}

// A tile whose pattern does not start at a multiple of its period: the base offset moves the pattern along.
TEST(WgmmaDescriptor, BaseOffset) {
  for (unsigned field : {1u, 2u, 3u}) {
    const std::uint32_t s = swizzleBytes[field], lines = s / 16; // the period is so many lines of 128 bytes
    for (std::uint32_t shift = 0; shift < lines; ++shift) {
      const std::uint32_t base = 4096 + 128 * shift;
      const WgmmaDescriptor d = wgmmaDescriptor(encode(base, 16, 8 * s, base >> 7 & 7, field));
      for (std::uint32_t r = 0; r < 32; ++r)
        for (std::uint32_t b = 0; b < 32; ++b) // as if the tile started at 0
          ASSERT_EQ(wgmmaOffset(d, false, r, b), base + swizzled(r * s + b, s)) << s << " " << shift;
    }
  }
}

TEST(WgmmaDescriptor, PiecesAreTheBytes) {
  std::mt19937 random(2);
  for (unsigned i = 0; i < 200; ++i) {
    const WgmmaDescriptor d = wgmmaDescriptor(
        encode(random() % 512 * 16, random() % 512 * 16, random() % 512 * 16, random() % 8, random() % 4));
    const WgmmaOperand operand{random() % 2 != 0, static_cast<std::uint32_t>(1 + random() % 32) * 8};
    std::vector<std::uint32_t> pieces(operand.pieces());
    wgmmaPieces(d, operand, pieces.data());
    for (std::uint32_t p = 0; p < operand.pieces(); ++p)
      for (std::uint32_t b = 0; b < 16; ++b)
        ASSERT_EQ(pieces[p] + b, wgmmaOffset(d, operand.mnMajor, operand.rowOf(p), operand.byteOf(p) + b));
    // Every element once.
    EXPECT_EQ(operand.rowOf(operand.pieces() - 1) + 1, operand.mnMajor ? 16 : operand.extent);
  }
}

// A field is used exactly if some address changes with it.
TEST(WgmmaDescriptor, UsedFields) {
  for (unsigned field = 0; field < 4; ++field)
    for (bool mn : {false, true})
      for (std::uint32_t extent : {8u, 16u, 24u, 32u, 40u, 64u, 72u, 256u}) {
        const WgmmaOperand operand{mn, extent};
        std::vector<std::uint32_t> plain(operand.pieces()), other(operand.pieces());
        const WgmmaDescriptor d = wgmmaDescriptor(encode(0, 1024, 2048, 0, field));
        wgmmaPieces(d, operand, plain.data());
        wgmmaPieces(wgmmaDescriptor(encode(0, 4096, 2048, 0, field)), operand, other.data());
        EXPECT_EQ(usesLeading(d, operand), plain != other) << field << mn << extent;
        wgmmaPieces(wgmmaDescriptor(encode(0, 1024, 8192, 0, field)), operand, other.data());
        EXPECT_EQ(usesStride(d, operand), plain != other) << field << mn << extent;
      }
}

} // namespace
} // namespace kiln::emulator
