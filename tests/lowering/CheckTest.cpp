// assert, print, assume; grid positions; named barriers; how kernels are marked.
#include "tests/lowering/Text.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

const layout::Encoding row = layout::Blocked{{1}, {32}, {2}, {0}};

TEST(Check, AssertStopsTheKernelWithItsMessage) {
  Emulator gpu("sm_80");
  const std::string i32 = tensorType({64}, "i32", row), i1 = tensorType({64}, "i1", row);
  for (int bound : {64, 63}) {
    const LoweredKernel k =
        lowered(kernelModule("%n: i32",
                             "    %r = tile.range 0 to 64 : " + i32 + "\n    %s = tile.splat %n : i32 to " + i32 +
                                 "\n    %c = arith.cmpi slt, %r, %s : " + i32 +
                                 "\n    tile.assert %c, \"index out of range\" : " + i1 + "\n",
                             2),
                "sm_80");
    ASSERT_TRUE(k.ok) << k.errors;
    const Launched run = gpu.run(k.ptx, {1}, {64}, {bound}, 0, "k");
    EXPECT_EQ(run.status.ok(), bound == 64) << run.text();
    EXPECT_EQ(run.text().find("assertion 'index out of range' failed") != std::string::npos, bound == 63) << run.text();
  }
}

TEST(Check, PrintWritesEachElementOnce) {
  Emulator gpu("sm_80");
  // Eight elements in 64 threads: many copies, one line each.
  const std::string f32 = tensorType({8}, "f32", row), f16 = tensorType({8}, "f16", row);
  const LoweredKernel k =
      lowered(kernelModule("%n: i32",
                           "    %v = arith.constant dense<[0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]> : " + f16 +
                               "\n    tile.print \"100% x = \" %v, %n : " + f16 + ", i32\n    tile.print \"done\"\n",
                           2),
              "sm_80");
  ASSERT_TRUE(k.ok) << k.errors;
  testing::internal::CaptureStdout();
  const Launched run = gpu.run(k.ptx, {2}, {64}, {-5}, 0, "k");
  std::fflush(stdout);
  const std::string out = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(run.clean()) << run.text();
  for (int block = 0; block < 2; ++block) {
    const std::string program = "program " + std::to_string(block) + ",0,0 ";
    for (int i = 0; i < 8; ++i) {
      const std::string line = program + "[" + std::to_string(i) + "] 100% x = " + std::to_string(i) + ".5\n";
      EXPECT_NE(out.find(line), std::string::npos) << line << out;
    }
    EXPECT_NE(out.find(program + "100% x = -5\n"), std::string::npos) << out;
    EXPECT_NE(out.find(program + "done\n"), std::string::npos) << out;
  }
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 20) << out;
}

TEST(Check, PositionsInTheGrid) {
  Emulator gpu("sm_75");
  Buffer &out = gpu.allocate(2 * 3 * 4 * 4);
  (void)out.poison(std::byte(0xCD));
  std::string body;
  for (const char *axis : {"x", "y", "z"})
    body += std::string("    %") + axis + " = tile.program_id " + axis + "\n    %n" + axis + " = tile.num_programs " +
            axis + "\n";
  body += "    %a = arith.muli %z, %ny : i32\n    %b = arith.addi %a, %y : i32\n    %c = arith.muli %b, %nx : i32\n"
          "    %d = arith.addi %c, %x : i32\n    %p = tile.addptr %o, %d : !tile.ptr<i32>, i32\n"
          "    %e = arith.muli %d, %nz : i32\n    tile.store %p, %e : !tile.ptr<i32>\n";
  const KernelRun run = runKernel(gpu, "sm_75", kernelModule("%o: !tile.ptr<i32>", body, 1), 1, {out}, {2, 3, 4});
  ASSERT_EQ(run.error, "");
  const auto values = gpu.download<std::int32_t>(out);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], static_cast<std::int32_t>(4 * i));
}

TEST(Check, BarriersAndKernelAttributes) {
  const LoweredKernel k = lowered(
      kernelModule("%x: !tile.ptr<f32> {tile.divisibility = 16 : i32, tile.noalias, tile.name = \"x\"}, %n: i32",
                   "    tile_gpu.barrier\n    tile_gpu.warp_barrier\n    tile_gpu.named_barrier 1, threads 64\n"
                   "    tile_gpu.named_arrive 2, threads 128\n    %z = arith.constant 0 : i32\n"
                   "    %c = arith.cmpi sge, %n, %z : i32\n    tile.assume %c\n",
                   4),
      "sm_80", /*keepStages=*/true);
  ASSERT_TRUE(k.ok) << k.errors;
  for (const char *text : {"bar.sync \t0", "bar.warp.sync", "bar.sync \t1, 64", "bar.arrive 2, 128", ".reqntid 128",
                           ".visible .entry k(", ".param .u64 .ptr .global .align 16 k_param_0"})
    EXPECT_NE(k.ptx.find(text), std::string::npos) << text << "\n" << k.ptx;
  EXPECT_EQ(k.ptx.find("kiln_shared"), std::string::npos) << "no shared memory was asked for\n" << k.ptx;
  EXPECT_NE(k.llvm.find("noalias"), std::string::npos) << k.llvm;
  EXPECT_NE(k.llvm.find("llvm.assume"), std::string::npos) << k.llvm;
}

} // namespace
} // namespace kiln::test
