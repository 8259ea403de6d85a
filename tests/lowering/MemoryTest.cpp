// Loads, stores, addresses and masks, run on the emulator.
#include "tests/lowering/Text.h"

#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

std::vector<float> randomFloats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-8, 8);
  std::vector<float> out(n);
  for (float &x : out)
    x = uniform(random);
  return out;
}

std::string addKernel(const std::string &layout, unsigned warps, unsigned block, const char *divisibility) {
  const std::string tile = "tensor<" + std::to_string(block) + "x", i32 = tile + "i32, " + layout + ">",
                    ptr = tile + "!tile.ptr<f32>, " + layout + ">", f32 = tile + "f32, " + layout + ">",
                    i1 = tile + "i1, " + layout + ">";
  const std::string b = std::to_string(block), div = divisibility;
  std::string body = "    %b = arith.constant " + b +
                     " : i32\n"
                     "    %p = tile.program_id x\n"
                     "    %s = arith.muli %p, %b : i32\n"
                     "    %r = tile.range 0 to " +
                     b + " : " + i32 +
                     "\n"
                     "    %ss = tile.splat %s : i32 to " +
                     i32 +
                     "\n"
                     "    %o = arith.addi %r, %ss : " +
                     i32 +
                     "\n"
                     "    %ns = tile.splat %n : i32 to " +
                     i32 +
                     "\n"
                     "    %m = arith.cmpi slt, %o, %ns : " +
                     i32 + "\n";
  for (const char *name : {"x", "y", "z"}) {
    const std::string n = name;
    body += "    %" + n + "s = tile.splat %" + n + " : !tile.ptr<f32> to " + ptr + "\n";
    body += "    %" + n + "p = tile.addptr %" + n + "s, %o : " + ptr + ", " + i32 + "\n";
  }
  body += "    %a = tile.load %xp mask %m : " + ptr + "\n    %c = tile.load %yp mask %m : " + ptr +
          "\n    %d = arith.addf %a, %c : " + f32 + "\n    tile.store %zp, %d mask %m : " + ptr + "\n";
  return kernelModule("%x: !tile.ptr<f32>" + div + ", %y: !tile.ptr<f32>" + div + ", %z: !tile.ptr<f32>" + div +
                          ", %n: i32" + div,
                      body, warps);
}

TEST(Memory, AddOfAnyLength) {
  const std::string layout = "#tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>";
  for (const char *target : loweringTargets) {
    Emulator gpu(target);
    for (int n : {1, 31, 1000, 1024, 4097}) {
      for (const char *divisibility : {"", " {tile.divisibility = 16 : i32}"}) {
        if (*divisibility && n % 16)
          continue;
        const std::vector<float> x = randomFloats(n, 1), y = randomFloats(n, 2);
        Buffer &bx = gpu.upload(x), &by = gpu.upload(y), &bz = gpu.allocate(n * 4);
        (void)bz.poison(std::byte(0xAB));
        const KernelRun run = runKernel(gpu, target, addKernel(layout, 4, 1024, divisibility), 4, {bx, by, bz, n},
                                        {static_cast<std::uint32_t>((n + 1023) / 1024)});
        ASSERT_EQ(run.error, "");
        const std::vector<float> z = gpu.download<float>(bz);
        for (int i = 0; i < n; ++i)
          ASSERT_EQ(z[i], x[i] + y[i]) << target << " n=" << n << " i=" << i;
        EXPECT_EQ(run.ptx.find("ld.global.v4") != std::string::npos, *divisibility != 0) << run.ptx;
      }
    }
  }
}

TEST(Memory, AddCompilesFast) {
  const std::string layout = "#tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>";
  const std::string text = addKernel(layout, 4, 1024, " {tile.divisibility = 16 : i32}");
  double best = 1e9;
  for (int i = 0; i < 5; ++i)
    best = std::min(best, lowered(text, "sm_90a").milliseconds);
  RecordProperty("milliseconds", std::to_string(best));
  std::printf("add: passes and back end %.1f ms\n", best);
  EXPECT_LT(best, 60); // 6 ms on an idle machine
}

} // namespace
} // namespace kiln::test
