// Blocks of a number of warps that is no power of two: three warpgroups, a warp next to two others.
#include "tests/lowering/LoweringHarness.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

/// One thread stores, all of them read what it stored, one thread stores the sum: a second one that stored would race.
std::string twice(unsigned warps) {
  const std::string barrier = "    tile_gpu.named_barrier 1, threads " + std::to_string(32 * warps) + "\n";
  return kernelModule("%p: !tile.ptr<i32>, %n: i32",
                      "    tile.store %p, %n : !tile.ptr<i32>\n" + barrier +
                          "    %old = tile.load %p : !tile.ptr<i32>\n    %sum = arith.addi %old, %n : i32\n" + barrier +
                          "    tile.store %p, %sum : !tile.ptr<i32>\n",
                      warps);
}

TEST(Warps, AnyNumberOfThemIsABlock) {
  for (const unsigned warps : {3u, 12u, 31u}) {
    Emulator gpu("sm_80");
    const Buffer &p = gpu.allocate(4, "p");
    const KernelRun run = runKernel(gpu, "sm_80", twice(warps), warps, {p, std::int32_t(21)});
    ASSERT_EQ(run.error, "") << warps << " warps";
    EXPECT_NE(run.ptx.find(".reqntid " + std::to_string(32 * warps)), std::string::npos) << run.ptx;
    EXPECT_EQ(gpu.download<std::int32_t>(p).front(), 42) << warps << " warps";
  }
}

} // namespace
} // namespace kiln::test
