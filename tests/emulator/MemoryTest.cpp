// Loads and stores in every state space, and their checks.
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

const std::string outPointer = "ld.param.u64 %rd1, [out];\n";

/// Runs one warp that stores 32 results at out + 4 * tid; `body` leaves the result in %r1.
std::vector<std::uint32_t> lanesOf(Emulator &gpu, const std::string &body, const std::string &outside = {}) {
  auto &out = gpu.upload(std::vector<std::uint32_t>(32, 0xABABABAB), "out");
  const Launched r = gpu.run(kernelText(".param .u64 out", std::string(threadIndex) + body + R"(
    ld.param.u64 %rd63, [out]; add.s64 %rd63, %rd63, %rd60; st.global.u32 [%rd63], %r1;)",
                                        "sm_90a", outside),
                             {1}, {32}, {out});
  EXPECT_TRUE(r.clean()) << r.text();
  return gpu.download<std::uint32_t>(out);
}

} // namespace

TEST(Memory, NarrowLoadsExtendToTheRegister) {
  Emulator gpu;
  auto &in = gpu.upload(std::vector<std::uint8_t>{0x80, 0xFF, 0x7F, 0x01, 0xFE, 0xFF, 0xFF, 0xFF}, "in");
  auto &out = gpu.allocate(8 * 8, "out");
  const Launched r = gpu.run(kernelText(".param .u64 in, .param .u64 out", R"(
    ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
    ld.global.u8 %r1, [%rd1];        cvt.u64.u32 %rd3, %r1; st.global.u64 [%rd2], %rd3;
    ld.global.s8 %r1, [%rd1];        cvt.u64.u32 %rd3, %r1; st.global.u64 [%rd2+8], %rd3;
    ld.global.s8 %rd3, [%rd1];       st.global.u64 [%rd2+16], %rd3;
    ld.global.u16 %rd3, [%rd1];      st.global.u64 [%rd2+24], %rd3;
    ld.global.s16 %rd3, [%rd1];      st.global.u64 [%rd2+32], %rd3;
    ld.global.s32 %rd3, [%rd1+4];    st.global.u64 [%rd2+40], %rd3;
    ld.global.u32 %rd3, [%rd1+4];    st.global.u64 [%rd2+48], %rd3;
    ld.global.s8 %h1, [%rd1];        cvt.u32.u16 %r1, %h1; cvt.u64.u32 %rd3, %r1; st.global.u64 [%rd2+56], %rd3;
  )"),
                             {1}, {1}, {in, out});
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(gpu.download<std::uint64_t>(out),
            (std::vector<std::uint64_t>{0x80, 0xFFFFFF80, 0xFFFFFFFFFFFFFF80, 0xFF80, 0xFFFFFFFFFFFFFF80,
                                        0xFFFFFFFFFFFFFFFE, 0xFFFFFFFE, 0xFF80}));
}

TEST(Memory, NarrowStoresTakeTheLowBits) {
  Emulator gpu;
  auto &out = gpu.upload(std::vector<std::uint8_t>(8, 0xEE), "out");
  const Launched r = gpu.run(kernelText(".param .u64 out", R"(
    ld.param.u64 %rd1, [out]; mov.u32 %r1, 0x12345678; mov.u64 %rd2, 0x1122334455667788;
    st.global.u8 [%rd1], %r1; st.global.u16 [%rd1+2], %rd2; st.global.u32 [%rd1+4], %rd2;)"),
                             {1}, {1}, {out});
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(gpu.download<std::uint8_t>(out),
            (std::vector<std::uint8_t>{0x78, 0xEE, 0x88, 0x77, 0x88, 0x77, 0x66, 0x55}));
}

TEST(Memory, VectorsAndSinks) {
  Emulator gpu;
  std::vector<std::uint32_t> in(128);
  for (std::uint32_t i = 0; i < 128; ++i)
    in[i] = i * 0x01010101u;
  auto &x = gpu.upload(in, "in");
  auto &out = gpu.upload(std::vector<std::uint32_t>(128, 0), "out");
  const Launched r = gpu.run(kernelText(".param .u64 in, .param .u64 out", R"(
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 16;
    ld.param.u64 %rd2, [in]; ld.param.u64 %rd3, [out]; add.u64 %rd2, %rd2, %rd1; add.u64 %rd3, %rd3, %rd1;
    ld.global.v4.u32 {%r2, _, %r4, %r5}, [%rd2];
    ld.global.v2.u64 {%rd4, %rd5}, [%rd2];
    mov.b64 {%r6, %r7}, %rd4;
    st.global.v4.b32 [%rd3], {%r5, %r4, %r7, %r2};)"),
                             {1}, {32}, {x, out});
  ASSERT_TRUE(r.clean()) << r.text();
  const auto got = gpu.download<std::uint32_t>(out);
  for (unsigned l = 0; l < 32; ++l) {
    EXPECT_EQ(got[4 * l], in[4 * l + 3]);
    EXPECT_EQ(got[4 * l + 1], in[4 * l + 2]);
    EXPECT_EQ(got[4 * l + 2], in[4 * l + 1]);
    EXPECT_EQ(got[4 * l + 3], in[4 * l]);
  }
}

TEST(Memory, WideVectorsNeedBlackwell) {
  const std::string body =
      R"(ld.param.u64 %rd1, [in]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 32; add.u64 %rd1, %rd1, %rd2;
    ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1]; ld.global.v4.b64 {%rd3,%rd4,%rd5,%rd6}, [%rd1];
    mov.b64 {%r9, %r10}, %rd6; add.u32 %r8, %r8, %r10; st.global.b32 [%rd1], %r8;)";
  {
    Emulator gpu("sm_100a");
    std::vector<std::uint32_t> v(256);
    for (std::uint32_t i = 0; i < 256; ++i)
      v[i] = i;
    auto &in = gpu.upload(v, "in");
    const Launched r = gpu.run(kernelText(".param .u64 in", body, "sm_100a"), {1}, {32}, {in});
    ASSERT_TRUE(r.clean()) << r.text();
    const auto got = gpu.download<std::uint32_t>(in);
    for (unsigned l = 0; l < 32; ++l)
      EXPECT_EQ(got[8 * l], 2 * (8 * l + 7));
  }
  Emulator old("sm_90a");
  auto &in = old.allocate(1024, "in");
  const Launched r = old.run(kernelText(".param .u64 in", body), {1}, {32}, {in});
  EXPECT_NE(r.status.message().find("sm_100"), std::string::npos) << r.text();
}

TEST(Memory, SharedLocalConstParam) {
  Emulator gpu;
  const auto got = lanesOf(gpu, R"(
    .shared .align 16 .b8 tile[256]; .local .align 8 .b8 depot[32];
    mov.u32 %r2, tile; mov.u32 %r3, %tid.x; shl.b32 %r4, %r3, 2; add.u32 %r5, %r2, %r4;
    mul.lo.u32 %r6, %r3, 3;
    st.shared.u32 [%r5], %r6;
    bar.sync 0;
    xor.b32 %r7, %r4, 124; add.u32 %r8, %r2, %r7;
    ld.shared.u32 %r9, [%r8];
    mov.u64 %rd2, depot; cvta.local.u64 %rd3, %rd2;
    st.local.u32 [depot+4], %r9; ld.u32 %r10, [%rd3+4];
    ld.const.u32 %r11, [table+8]; mov.u64 %rd4, table; ld.const.u32 %r12, [%rd4+4];
    add.u32 %r1, %r10, %r11; add.u32 %r1, %r1, %r12;)",
                           ".const .align 4 .u32 table[4] = {1, 20, 300, 4000};");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], (31 - l) * 3 + 320);
}

TEST(Memory, GenericAddressesOfSeveralSpacesInOneWarp) {
  Emulator gpu;
  auto &global = gpu.upload(std::vector<std::uint32_t>(32, 1000), "global");
  auto &out = gpu.upload(std::vector<std::uint32_t>(32, 0), "out");
  const Launched r = gpu.run(kernelText(".param .u64 g, .param .u64 out", std::string(threadIndex) + R"(
    .shared .align 4 .b8 tile[128]; .local .align 4 .b8 depot[8];
    mov.u32 %r3, %tid.x; shl.b32 %r4, %r3, 2;
    mov.u64 %rd1, tile; cvta.shared.u64 %rd1, %rd1; add.u64 %rd1, %rd1, %rd60;
    st.u32 [%rd1], 2000;
    mov.u64 %rd2, depot; cvta.local.u64 %rd2, %rd2; st.u32 [%rd2], 3000;
    ld.param.u64 %rd3, [g]; add.u64 %rd3, %rd3, %rd60;
    rem.u32 %r5, %r3, 3;
    setp.eq.u32 %p1, %r5, 0; setp.eq.u32 %p2, %r5, 1;
    selp.b64 %rd4, %rd1, %rd2, %p1; selp.b64 %rd4, %rd3, %rd4, %p2;
    ld.u32 %r6, [%rd4]; add.u32 %r6, %r6, %r3; st.u32 [%rd4], %r6; ld.u32 %r7, [%rd4];
    isspacep.shared %p3, %rd4; isspacep.local %p4, %rd4; isspacep.global %p5, %rd4;
    selp.u32 %r8, 1, 0, %p3; selp.u32 %r9, 2, 0, %p4; selp.u32 %r10, 4, 0, %p5;
    or.b32 %r8, %r8, %r9; or.b32 %r8, %r8, %r10; shl.b32 %r8, %r8, 16; add.u32 %r7, %r7, %r8;
    ld.param.u64 %rd5, [out]; add.u64 %rd5, %rd5, %rd60; st.global.u32 [%rd5], %r7;)"),
                             {1}, {32}, {global, out});
  ASSERT_TRUE(r.clean()) << r.text();
  const auto got = gpu.download<std::uint32_t>(out);
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], (l % 3 == 0 ? 2000 + (1 << 16) : l % 3 == 1 ? 1000 + (4 << 16) : 3000 + (2 << 16)) + l);
}

TEST(Memory, StructuredParameters) {
  Emulator gpu;
  auto &out = gpu.upload(std::vector<std::uint32_t>(4, 0), "out");
  const std::string text = kernelText(".param .align 8 .b8 s[16], .param .u64 out", R"(
    ld.param.u32 %r1, [s+4]; ld.param.v2.u32 {%r2, %r3}, [s+8]; ld.param.s8 %r4, [s+3];
    mov.b64 %rd2, s; cvta.param.u64 %rd3, %rd2; ld.u32 %r5, [%rd3+12];
    add.u32 %r3, %r3, %r5;
    ld.param.u64 %rd1, [out]; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};)");
  const Launched r =
      gpu.run(text, {1}, {1}, {std::uint64_t(0x11223344'FE000000u), std::uint64_t(0x00000007'55667788u), out});
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(gpu.download<std::uint32_t>(out), (std::vector<std::uint32_t>{0x11223344, 0x55667788, 14, 0xFFFFFFFE}));
}

TEST(Memory, ModuleVariablesWithInitialisers) {
  Emulator gpu;
  auto &out = gpu.upload(std::vector<std::uint64_t>(4, 0), "out");
  const Launched r = gpu.run(kernelText(".param .u64 out", R"(
    ld.param.u64 %rd1, [out];
    ld.global.u64 %rd2, [pointer]; ld.u32 %r1, [%rd2]; cvt.u64.u32 %rd3, %r1; st.global.u64 [%rd1], %rd3;
    ld.global.f32 %f1, [floats+4]; cvt.f64.f32 %fd1, %f1; st.global.f64 [%rd1+8], %fd1;
    ld.global.u8 %r2, [bytes+2]; cvt.u64.u32 %rd4, %r2; st.global.u64 [%rd1+16], %rd4;
    ld.global.u32 %r3, [zeros+12]; cvt.u64.u32 %rd5, %r3; st.global.u64 [%rd1+24], %rd5;)",
                                        "sm_90a", R"(
    .global .align 4 .u32 words[4] = {5, 6, 7, 8};
    .global .align 8 .u64 pointer = generic(words)+8;
    .global .align 4 .f32 floats[2] = {0f3F800000, 0f40200000};
    .global .align 1 .b8 bytes[4] = {1, 2, 250, 4};
    .global .align 4 .b8 zeros[16];)"),
                             {1}, {1}, {out});
  ASSERT_TRUE(r.clean()) << r.text();
  double half = 2.5;
  std::uint64_t bits;
  std::memcpy(&bits, &half, 8);
  EXPECT_EQ(gpu.download<std::uint64_t>(out), (std::vector<std::uint64_t>{7, bits, 250, 0}));
}

TEST(Memory, WideRegisterMoves) {
  Emulator gpu;
  auto &io = gpu.upload(std::vector<std::uint64_t>{1, 2, 3, 4, 0, 0}, "io");
  const Launched r = gpu.run(kernelText(".param .u64 io", R"(
    .reg .b128 %q<4>; ld.param.u64 %rd1, [io];
    ld.global.b128 %q1, [%rd1+16]; mov.b128 {%rd2, %rd3}, %q1; add.u64 %rd2, %rd2, 10; mov.b128 %q2, {%rd3, %rd2}; mov.b128 %q3, %q2;
    st.global.b128 [%rd1+32], %q3;)"),
                             {1}, {1}, {io});
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(gpu.download<std::uint64_t>(io), (std::vector<std::uint64_t>{1, 2, 3, 4, 4, 13}));
}

TEST(Memory, PackAndUnpack) {
  Emulator gpu;
  const auto got = lanesOf(gpu, R"(
    mov.b32 %r2, 0x12345678; mov.b32 {%h1, %h2}, %r2; mov.b32 %r3, {%h2, %h1};
    mov.b64 %rd2, {%r3, %r2}; mov.b64 {%h3, %h4, _, %h5}, %rd2; cvt.u32.u16 %r4, %h5; cvt.u32.u16 %r5, %h3;
    mov.b64 %rd3, {%h3, %h4, %h5, %h1}; mov.b64 {_, %r6}, %rd3;
    add.u32 %r1, %r4, %r5; xor.b32 %r1, %r1, %r6;)");
  for (std::uint32_t v : got)
    EXPECT_EQ(v, (0x1234u + 0x1234u) ^ 0x56781234u);
}
