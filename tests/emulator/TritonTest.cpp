// A foreign program with warp roles: tests/ptx/data/triton_ws.py, compiled by Triton for sm_120a.  One role copies
// tiles by tensor maps, the others multiply; registers go from one to the other and back.
#include "tests/emulator/PtxHarness.h"

#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

using namespace kiln;
using namespace kiln::test;

namespace {

struct Case {
  const char *file;
  std::uint32_t threads;
};

class TritonWarpRoles : public testing::TestWithParam<Case> {};

TEST_P(TritonWarpRoles, MultiplyUnderEverySchedule) {
  std::ifstream in(std::string(KILN_SOURCE_DIR "/tests/ptx/data/") + GetParam().file);
  std::stringstream text;
  text << in.rdbuf();
  ASSERT_NE(text.str().find("setmaxnreg.inc"), std::string::npos) << GetParam().file;
  constexpr std::int32_t m = 160, n = 128, k = 112; // edges along m and k
  std::mt19937_64 random(29);
  std::vector<_Float16> a(m * k), b(n * k);
  for (auto *list : {&a, &b})
    for (_Float16 &v : *list)
      v = static_cast<_Float16>(static_cast<int>(random() % 17) - 8) / static_cast<_Float16>(8);
  for (const Schedule schedule : {Schedule::InOrder, Schedule::Random, Schedule::Adversarial}) {
    SCOPED_TRACE(scheduleName(schedule));
    EmulatorOptions options;
    options.schedule = schedule;
    options.seed = 5;
    Emulator gpu("sm_120a", options);
    Buffer &ba = gpu.upload(a, "a"), &bb = gpu.upload(b, "b"), &bc = gpu.allocate(2 * m * n, "c");
    (void)bc.poison(std::byte(0xCD));
    const auto mapOf = [&](const Buffer &buffer, std::uint64_t rows, std::uint64_t columns, std::uint32_t wide) {
      TensorMapRecipe recipe = denseTensor(TensorMapType::F16, buffer.address(), {columns, rows}, {wide, 64});
      recipe.swizzle = wide == 32 ? TensorMapSwizzle::B64 : TensorMapSwizzle::B128;
      return gpu.encode(recipe);
    };
    // Each descriptor: the map, extents (i32), strides (i64); then M, N, K and two scratch addresses.
    std::vector<Argument> arguments;
    const auto descriptor = [&](const TensorMap &map, std::int32_t rows, std::int32_t columns) {
      arguments.insert(arguments.end(), {Argument(map), Argument(rows), Argument(columns),
                                         Argument(std::int64_t(columns)), Argument(std::int64_t(1))});
    };
    descriptor(mapOf(ba, m, k, 32), m, k);
    descriptor(mapOf(bb, n, k, 32), n, k);
    descriptor(mapOf(bc, m, n, 64), m, n);
    arguments.insert(arguments.end(),
                     {Argument(m), Argument(n), Argument(k), Argument(std::uint64_t(0)), Argument(std::uint64_t(0))});
    const Launched run = gpu.run(text.str(), {(m + 63) / 64 * (n / 64)}, {GetParam().threads}, arguments, 48 << 10);
    ASSERT_TRUE(run.status.ok()) << run.text();
    // Warps of one group execute different setmaxnreg instructions of the same count, which PTX forbids by the letter.
    EXPECT_EQ(run.ids(), "setmaxnreg.mismatch") << run.text();
    const auto c = gpu.download<_Float16>(bc);
    for (std::int32_t i = 0; i < m; ++i)
      for (std::int32_t j = 0; j < n; ++j) {
        double sum = 0; // multiples of 1/64 below 2^11: f32 holds them all
        for (std::int32_t x = 0; x < k; ++x)
          sum += static_cast<double>(a[static_cast<std::size_t>(i * k + x)]) *
                 static_cast<double>(b[static_cast<std::size_t>(j * k + x)]);
        ASSERT_EQ(static_cast<double>(c[static_cast<std::size_t>(i * n + j)]),
                  static_cast<double>(static_cast<_Float16>(sum)))
            << i << ", " << j;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Roles, TritonWarpRoles,
                         testing::Values(Case{"triton_ws4_sm120a.ptx", 256}, Case{"triton_ws8_sm120a.ptx", 384}),
                         [](const auto &info) { return "Threads" + std::to_string(info.param.threads); });

} // namespace
