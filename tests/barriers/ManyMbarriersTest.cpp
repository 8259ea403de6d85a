// A kernel may have any number of mbarriers: the proof follows the last one as the first one.
#include "tests/barriers/BarrierHarness.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

/// The elected thread ends a phase of each of `count` mbarriers; a copy counts to the last one, and all threads wait
/// for it or do not.
std::string kernel(unsigned count, bool waits) {
  const std::string type = "!tile_gpu.mbarriers<" + std::to_string(count) + ">",
                    buffer = "!tile_gpu.buffer<64x64xbf16, #tma>", last = "%full[%c" + std::to_string(count - 1) + "]";
  std::string out = R"(
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @k(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
      attributes {tile.kernel, tile.num_warps = 4 : i32} {
)";
  const auto line = [&](const std::string &text) { out += "    " + text + "\n"; };
  for (unsigned i = 0; i < count; ++i)
    line("%c" + std::to_string(i) + " = arith.constant " + std::to_string(i) + " : i32");
  line("%full = tile_gpu.local_alloc {offset = 0 : i32} : " + type);
  line("%a = tile_gpu.local_alloc {offset = 1024 : i32} : " + buffer);
  line("tile_gpu.elected { tile_gpu.mbarrier_init %full arrivals 1 : " + type + " }");
  line("tile_gpu.barrier");
  line("tile_gpu.elected {");
  line("tile_gpu.tensor_copy %map[%c0, %c0] to %a dims [1, 0] counts " + last + " : " + buffer + ", " + type);
  for (unsigned i = 0; i < count; ++i)
    line("tile_gpu.mbarrier_arrive %full[%c" + std::to_string(i) + "] phase %c0 : " + type);
  line("}");
  if (waits)
    line("tile_gpu.mbarrier_wait " + last + " phase %c0 ready %a : " + type + ", " + buffer);
  line("%l = tile_gpu.local_load %a : " + buffer + " to tensor<64x64xbf16, #row>");
  return out + "    return\n  }\n}\n";
}

TEST(ManyMbarriers, AreFollowed) {
  for (const unsigned count : {2u, 31u, 32u, 33u, 100u}) {
    BarrierHarness harness;
    auto good = harness.parse(kernel(count, true)), bad = harness.parse(kernel(count, false));
    ASSERT_TRUE(good && bad) << harness.errors;
    EXPECT_TRUE(harness.verifies(*good)) << count << ": " << harness.errors;
    EXPECT_FALSE(harness.verifies(*bad)) << count;
    EXPECT_NE(harness.errors.find("may still write"), std::string::npos) << harness.errors;
  }
}

} // namespace
} // namespace kiln::test
