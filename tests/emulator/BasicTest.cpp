// The path every kernel takes: parameters in, index arithmetic, loads, stores.
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

TEST(Basic, AddsTwoVectors) {
  Emulator gpu;
  std::vector<std::uint32_t> a(1000), b(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    a[i] = i * 7;
    b[i] = 100000 - i;
  }
  auto &x = gpu.upload(a, "a");
  auto &y = gpu.upload(b, "b");
  auto &out = gpu.upload(std::vector<std::uint32_t>(1000, 0xABABABAB), "out");
  const std::string text =
      kernelText(".param .u64 a, .param .u64 b, .param .u64 out, .param .u32 n", std::string(threadIndex) + R"(
    ld.param.u32 %r1, [n];
    setp.ge.u32 %p1, %r60, %r1;
    @%p1 bra DONE;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [out];
    cvta.to.global.u64 %rd1, %rd1;
    add.s64 %rd1, %rd1, %rd60;
    add.s64 %rd2, %rd2, %rd60;
    add.s64 %rd3, %rd3, %rd60;
    ld.global.u32 %r2, [%rd1];
    ld.u32 %r3, [%rd2];
    add.u32 %r4, %r2, %r3;
    st.global.u32 [%rd3], %r4;
  DONE:
  )");
  const Launched r = gpu.run(text, {8}, {128}, {x, y, out, 1000u});
  ASSERT_TRUE(r.clean()) << r.text();
  const auto got = gpu.download<std::uint32_t>(out);
  for (std::uint32_t i = 0; i < 1000; ++i)
    ASSERT_EQ(got[i], a[i] + b[i]) << i;
}
