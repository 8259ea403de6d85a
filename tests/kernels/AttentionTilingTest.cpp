// Which tiles attention takes: they fit, and where the device has room, two warps for each scheduler.
#include "kernels/attention/AttentionTiling.h"

#include "compiler/target/Target.h"
#include "kernels/attention/AttentionBackwardTiling.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace kernels;

AttentionConfig tilesOf(int dim, int dimV, const Target &device, std::int64_t queries = 4096, bool alibi = false,
                        std::int64_t heads = 32) {
  AttentionConfig c;
  c.dim = dim, c.dimV = dimV, c.alibi = alibi;
  chooseTiles(c, {queries, 4096, heads}, device, device, 132);
  return c;
}
const Target &named(const char *name) {
  return **findTarget(name);
}

/// Bytes that the compiler asks for: the queries, and `stages` tiles of keys and of values.
std::int64_t bytesOf(const AttentionConfig &c, const Target &target) {
  const int stages = target.has(Capability::CpAsync) ? c.stages : 1;
  return 2 * (std::int64_t(c.blockM) * c.dim + std::int64_t(stages) * c.blockN * (c.dim + c.dimV));
}

TEST(AttentionTiling, FitsWhereverTheSmallestTilesFit) {
  unsigned fit = 0, small = 0;
  for (const Target &target : allTargets())
    for (int dim = 16; dim <= 256; dim += 16)
      for (int dimV = 16; dimV <= 256; dimV += 16)
        for (std::int64_t queries : {1, 64, 65, 4096})
          for (bool alibi : {false, true}) {
            const AttentionConfig c = tilesOf(dim, dimV, target, queries, alibi);
            AttentionConfig least = c;
            least.blockM = 64, least.blockN = 16;
            if (bytesOf(least, target) > target.sharedOptIn) {
              ++small;
              continue;
            }
            ++fit;
            ASSERT_LE(bytesOf(c, target), target.sharedOptIn) << target.name << " " << dim << " " << dimV;
            ASSERT_EQ(c.blockM / c.warps % 16, 0);
            if (queries <= 64)
              ASSERT_EQ(c.blockM, 64);
          }
  EXPECT_GT(fit, 10000u);
  std::printf("%u fit; for %u the target has too little shared memory\n", fit, small);
}

/// Four warps with 32 rows each where two such blocks share an SM; else eight in one block.
TEST(AttentionTiling, RowsOfAWarpFollowTheDevice) {
  for (const auto &[target, dim, rows, keys] : {std::tuple("sm_90", 64, 32, 64),
                                                {"sm_90", 128, 32, 64},
                                                {"sm_80", 64, 32, 64},
                                                {"sm_80", 96, 32, 64},
                                                {"sm_80", 128, 16, 128},
                                                {"sm_86", 64, 32, 64},
                                                {"sm_86", 128, 16, 64},
                                                {"sm_90", 192, 16, 64},
                                                {"sm_86", 192, 16, 32},
                                                {"sm_90", 256, 16, 32},
                                                {"sm_75", 64, 16, 64}}) {
    const AttentionConfig c = tilesOf(dim, dim, named(target));
    EXPECT_EQ(c.blockM / c.warps, rows) << target << " " << dim;
    EXPECT_EQ(c.blockN, keys) << target << " " << dim;
  }
  // Slopes leave no registers for them at 128 columns.
  EXPECT_EQ(tilesOf(128, 128, named("sm_90"), 4096, true).warps, 8);
  EXPECT_EQ(tilesOf(64, 64, named("sm_90"), 4096, true).warps, 4);
}

/// Where warpgroups multiply: as measured; few keys take what other targets do.
TEST(AttentionTiling, OfWarpgroups) {
  for (const auto &[dim, dimV, keys, rows, step, warps] : {std::tuple(64, 64, 4096, 64, 128, 4),
                                                           {80, 80, 4096, 128, 64, 4},
                                                           {96, 96, 4096, 64, 128, 4},
                                                           {48, 48, 4096, 128, 64, 4},
                                                           {96, 96, 1023, 128, 64, 4},
                                                           {128, 128, 4096, 128, 128, 8},
                                                           {128, 128, 512, 128, 128, 8},
                                                           {128, 128, 511, 128, 64, 4},
                                                           {64, 64, 1023, 128, 64, 4},
                                                           {192, 128, 4096, 128, 128, 8},
                                                           {192, 192, 4096, 128, 64, 8},
                                                           {256, 256, 4096, 128, 64, 8},
                                                           {208, 208, 4096, 64, 32, 4}}) {
    AttentionConfig c;
    c.dim = dim, c.dimV = dimV;
    chooseTiles(c, {4096, keys, 32}, named("sm_90a"), named("sm_90a"), 132);
    EXPECT_EQ(std::tuple(c.blockM, c.blockN, c.warps), std::tuple(rows, step, warps))
        << dim << "/" << dimV << " " << keys;
  }
  AttentionConfig masked; // few blocks that every row sees
  masked.right = true;
  chooseTiles(masked, {4096, 512, 32}, named("sm_90a"), named("sm_90a"), 132);
  EXPECT_EQ(std::tuple(masked.blockM, masked.blockN, masked.warps), std::tuple(64, 64, 4));
}

/// No second block comes to an SM where there are no more programs than SMs; where even programs of 64 rows are that
/// few, these.
TEST(AttentionTiling, FewProgramsHaveMoreWarps) {
  EXPECT_EQ(tilesOf(128, 128, named("sm_90"), 128 * 11, false, 12).warps, 8); // 132 programs
  EXPECT_EQ(tilesOf(128, 128, named("sm_90"), 128 * 11, false, 13).warps, 4);
  EXPECT_EQ(tilesOf(64, 64, named("sm_80"), 128, false, 67).warps, 8); // 134 programs of 64 rows
  EXPECT_EQ(tilesOf(64, 64, named("sm_80"), 128, false, 66).blockM, 64);
  EXPECT_EQ(tilesOf(128, 128, named("sm_90"), 64 * 132, false, 1).blockM, 64);
  EXPECT_EQ(tilesOf(128, 128, named("sm_90"), 64 * 132 + 1, false, 1).blockM, 128);
}

/// Loops of few rounds have shorter ones where heads are wide.
TEST(AttentionTiling, FewKeysHaveShortRounds) {
  for (const auto &[dim, keys, step] :
       {std::tuple(128, 1024, 64), {128, 1025, 128}, {96, 512, 64}, {64, 512, 128}, {64, 64, 64}}) {
    AttentionConfig c;
    c.dim = c.dimV = dim;
    chooseTiles(c, {512, keys, 2}, named("sm_90"), named("sm_90"), 132);
    EXPECT_EQ(c.blockM, 64);
    EXPECT_EQ(c.blockN, step) << dim << " " << keys;
  }
}

/// Keys and values that are no whole 16 bytes go through registers, as on a target without asynchronous copies: 32 rows
/// a warp would spill 908 bytes at 128 columns.
TEST(AttentionTiling, UnalignedRowsLeaveFewerRegisters) {
  for (const auto &[dim, rows, keys] : {std::tuple(64, 16, 64), {128, 16, 64}, {192, 16, 64}}) {
    AttentionConfig c;
    c.dim = c.dimV = dim;
    chooseTiles(c, {4096, 4096, 32, false}, named("sm_90"), named("sm_90"), 132);
    EXPECT_EQ(c.blockM / c.warps, rows) << dim;
    EXPECT_EQ(c.blockN, keys) << dim;
  }
}

/// Heads of 128 and 256 columns lose nothing at the assembler's level 1; others do.
TEST(AttentionTiling, AssemblersLevel) {
  for (const auto &[dim, level] : {std::pair(64, 3), {96, 3}, {128, 1}, {192, 3}, {256, 1}})
    EXPECT_EQ(assemblerLevel(tilesOf(dim, dim, named("sm_90"))), level) << dim;
  EXPECT_EQ(assemblerLevel(tilesOf(128, 128, named("sm_90"), 64)), 3);
}

/// Code for an older target on a newer device: the device's SM counts.
TEST(AttentionTiling, OlderCodeOnANewerDevice) {
  AttentionConfig c;
  chooseTiles(c, {4096, 4096, 32}, named("sm_80"), named("sm_90"), 132);
  EXPECT_EQ(c.warps, 4);
  chooseTiles(c, {4096, 4096, 32}, named("sm_90"), named("sm_80"), 108);
  EXPECT_EQ(c.warps, 8);
}

/// Two warpgroups share the columns of 64 rows: by whole instructions at every width (AttentionBackwardTiling.cpp).
TEST(AttentionBackwardTiling, WideTilesAreOfWarpgroupsAtEveryWidth) {
  for (int dim = 144; dim <= 256; dim += 16)
    for (const AttentionBackwardLaunch launch : {AttentionBackwardLaunch::Keys, AttentionBackwardLaunch::Queries}) {
      AttentionBackwardConfig c;
      c.dim = c.dimV = dim;
      chooseBackwardTiles(launch, c, /*aligned=*/true, named("sm_90a"), named("sm_90a"));
      EXPECT_EQ((std::tuple{c.blockM, c.blockN, c.warps}), (std::tuple{64, 64, 8})) << dim;
      EXPECT_EQ(c.dim, (dim + 63) / 64 * 64);
      EXPECT_EQ(c.dimV, c.dim);
      AttentionBackwardConfig other;
      other.dim = other.dimV = dim;
      chooseBackwardTiles(launch, other, /*aligned=*/true, named("sm_80"), named("sm_80"));
      EXPECT_EQ(other.dim, dim);
    }
}

} // namespace
} // namespace kiln::test
