// Every atomic operation, against a sequential host reference: lanes go in lane order, blocks in block order.
#include "tests/emulator/PtxHarness.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

/// One cell; every thread of one warp applies the operation with its own operand and keeps the old value.
template <typename T>
void check(const std::string &operation, const std::string &type, const char *registers, const std::vector<T> &operands,
           T start, const std::function<T(T, T, unsigned)> &reference, const std::string &third = "") {
  for (const std::string space : {"global", "shared", "generic"}) {
    Emulator gpu;
    auto &in = gpu.upload(operands, "in");
    auto &cell = gpu.upload(std::vector<T>{start}, "cell");
    auto &old = gpu.upload(std::vector<T>(32), "old");
    const std::string s = sizeof(T) == 8 ? "b64" : sizeof(T) == 4 ? "b32" : "b16", r = registers;
    const std::string suffix = space == "generic" ? "" : "." + space;
    const std::string body = R"(
      .shared .align 16 .b8 sharedCell[16]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, )" +
                             std::to_string(sizeof(T)) + R"(;
      ld.param.u64 %rd2, [in]; ld.param.u64 %rd3, [cell]; ld.param.u64 %rd4, [old]; add.u64 %rd2, %rd2, %rd1; add.u64 %rd4, %rd4, %rd1;
      ld.global.)" + s + " " +
                             r + "1, [%rd2]; ld.global." + s + " " + r +
                             "2, [%rd3]; mov.u64 %rd5, sharedCell; st.shared." + s + " [%rd5], " + r + "2;\n" +
                             (space == "shared" ? "mov.u64 %rd6, %rd5;" : "mov.u64 %rd6, %rd3;") +
                             "bar.warp.sync -1; atom" + suffix + "." + operation + "." + type + " " + r +
                             "3, [%rd6], " + (third.empty() ? r + "1" : third + ", " + r + "1") + "; st.global." + s +
                             " [%rd4], " + r + "3; bar.warp.sync -1; ld." + (space == "shared" ? "shared." : "") + s +
                             " " + r + "4, [%rd6]; st.global." + s + " [%rd3], " + r + "4;";
    const Launched launched =
        gpu.run(kernelText(".param .u64 in, .param .u64 cell, .param .u64 old", body), {1}, {32}, {in, cell, old});
    ASSERT_TRUE(launched.clean()) << operation << type << launched.text();
    const std::vector<T> olds = gpu.download<T>(old);
    T value = start;
    for (unsigned l = 0; l < 32; ++l) {
      EXPECT_EQ(olds[l], value) << operation << "." << type << " " << space << " lane " << l;
      value = reference(value, operands[l], l);
    }
    EXPECT_EQ(gpu.download<T>(cell)[0], value) << operation << "." << type << " " << space;
    // red: the same without the old value.
    if (operation == "cas" || operation == "exch")
      continue;
    gpu.run(kernelText(".param .u64 cell", "mov.u32 %r1, 0;"), {1}, {1}, {cell});
    auto &again = gpu.upload(std::vector<T>{start}, "cell");
    std::string red =
        "ld.param.u64 %rd2, [in]; ld.param.u64 %rd3, [cell]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, " +
        std::to_string(sizeof(T)) + "; add.u64 %rd2, %rd2, %rd1; ld.global." + s + " " + r + "1, [%rd2]; red.global." +
        operation + "." + type + " [%rd3], " + r + "1;";
    if (space == "global") {
      const Launched l = gpu.run(kernelText(".param .u64 in, .param .u64 cell", red), {1}, {32}, {in, again});
      ASSERT_TRUE(l.clean()) << l.text();
      EXPECT_EQ(gpu.download<T>(again)[0], value) << "red " << operation << type;
    }
  }
}

template <typename T> std::vector<T> randomValues(unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> v(32);
  for (T &x : v)
    x = static_cast<T>(random());
  return v;
}

template <typename U, typename S>
void checkIntegers(const std::string &u, const std::string &s, const char *r, const std::string &b) {
  const auto values = randomValues<U>(sizeof(U));
  check<U>("add", u, r, values, 5, [](U a, U v, unsigned) { return a + v; });
  check<U>("min", u, r, values, U(~U(0)), [](U a, U v, unsigned) { return std::min(a, v); });
  check<U>("max", u, r, values, 0, [](U a, U v, unsigned) { return std::max(a, v); });
  check<U>("min", s, r, values, 17, [](U a, U v, unsigned) { return U(std::min(S(a), S(v))); });
  check<U>("max", s, r, values, 17, [](U a, U v, unsigned) { return U(std::max(S(a), S(v))); });
  check<U>("and", b, r, values, U(~U(0)), [](U a, U v, unsigned) { return a & v; });
  check<U>("or", b, r, values, 0, [](U a, U v, unsigned) { return a | v; });
  check<U>("xor", b, r, values, 0x55, [](U a, U v, unsigned) { return a ^ v; });
  check<U>("exch", b, r, values, 3, [](U, U v, unsigned) { return v; });
}

} // namespace

TEST(Atomics, Integers32) {
  checkIntegers<std::uint32_t, std::int32_t>("u32", "s32", "%r1", "b32");
  check<std::uint32_t>("add", "s32", "%r1", randomValues<std::uint32_t>(9), 5,
                       [](std::uint32_t a, std::uint32_t v, unsigned) { return a + v; });
  std::vector<std::uint32_t> small(32, 5);
  check<std::uint32_t>("inc", "u32", "%r1", small, 3,
                       [](std::uint32_t a, std::uint32_t b, unsigned) { return a >= b ? 0 : a + 1; });
  check<std::uint32_t>("dec", "u32", "%r1", small, 9,
                       [](std::uint32_t a, std::uint32_t b, unsigned) { return a == 0 || a > b ? b : a - 1; });
}

TEST(Atomics, Integers64) {
  checkIntegers<std::uint64_t, std::int64_t>("u64", "s64", "%rd1", "b64");
}

TEST(Atomics, CompareAndSwap) {
  std::vector<std::uint32_t> values(32);
  for (unsigned l = 0; l < 32; ++l)
    values[l] = l % 3 == 0 ? 7 : l;
  check<std::uint32_t>(
      "cas", "b32", "%r1", values, 7, [](std::uint32_t a, std::uint32_t c, unsigned) { return a == 7 ? c : a; }, "7");
  std::vector<std::uint64_t> wide(32, 7);
  wide[5] = 8;
  check<std::uint64_t>(
      "cas", "b64", "%rd1", wide, 7, [](std::uint64_t a, std::uint64_t c, unsigned) { return a == 7 ? c : a; }, "7");
  std::vector<std::uint16_t> narrow(32, 7);
  narrow[9] = 1234;
  check<std::uint16_t>(
      "cas", "b16", "%h", narrow, 7, [](std::uint16_t a, std::uint16_t c, unsigned) { return a == 7 ? c : a; }, "7");
}

TEST(Atomics, Wide) {
  Emulator gpu;
  auto &io = gpu.upload(std::vector<std::uint64_t>{1, 2, 1, 2, 9, 8, 0, 0, 0, 0}, "io");
  const Launched r = gpu.run(kernelText(".param .u64 io", R"(
    .reg .b128 %q<6>; ld.param.u64 %rd1, [io]; ld.global.b128 %q1, [%rd1+16]; ld.global.b128 %q2, [%rd1+32];
    atom.global.cas.b128 %q3, [%rd1], %q1, %q2; st.global.b128 [%rd1+48], %q3; atom.global.exch.b128 %q4, [%rd1], %q1; st.global.b128 [%rd1+64], %q4;)"),
                             {1}, {1}, {io});
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(gpu.download<std::uint64_t>(io), (std::vector<std::uint64_t>{1, 2, 1, 2, 9, 8, 1, 2, 9, 8}));
}

TEST(Atomics, FloatsFlushInGlobalMemoryOnly) {
  Emulator gpu;
  const float tiny = std::ldexp(1.0f, -140), normal = std::ldexp(1.0f, -126);
  auto &cells = gpu.upload(std::vector<float>{tiny, normal, -tiny, 1.5f}, "cells");
  auto &out = gpu.upload(std::vector<float>(4), "out");
  const Launched r = gpu.run(kernelText(".param .u64 cells, .param .u64 out", R"(
    .shared .align 4 .f32 c; ld.param.u64 %rd1, [cells]; ld.param.u64 %rd2, [out];
    ld.global.f32 %f1, [%rd1]; st.shared.f32 [c], %f1; atom.shared.add.f32 %f2, [c], %f1; ld.shared.f32 %f3, [c]; st.global.f32 [%rd2], %f3;
    atom.global.add.f32 %f4, [%rd1], %f1; mov.f32 %f5, 0f80000000; red.global.add.f32 [%rd1+8], %f5;
    neg.f32 %f6, %f1; atom.global.add.f32 %f7, [%rd1+4], %f6; mov.f32 %f8, 0f3f800000; atom.add.f32 %f9, [%rd1+12], %f8; st.global.f32 [%rd2+4], %f9;)"),
                             {1}, {1}, {cells, out});
  ASSERT_TRUE(r.clean()) << r.text();
  const auto values = gpu.download<float>(cells), got = gpu.download<float>(out);
  EXPECT_EQ(got[0], 2 * tiny);
  EXPECT_EQ(values[0], 0.0f);
  EXPECT_EQ(values[1], normal);
  EXPECT_EQ(values[2], 0.0f);
  EXPECT_TRUE(std::signbit(values[2]));
  EXPECT_EQ(values[3], 2.5f);
  EXPECT_EQ(got[1], 1.5f);
}

TEST(Atomics, DoublesAndHalves) {
  Emulator gpu;
  auto &d = gpu.upload(std::vector<double>{0.5}, "d");
  auto &h = gpu.upload(std::vector<std::uint16_t>{0x3C00, 0x4000, 0x3F80, 0x4000, 0x3C00, 0x7E01},
                       "h"); // 1, 2, bf16 1, 2, f16 1, NaN
  const Launched r = gpu.run(kernelText(".param .u64 d, .param .u64 h", R"(
    ld.param.u64 %rd1, [d]; ld.param.u64 %rd2, [h]; mov.f64 %fd1, 0d3FD0000000000000; red.global.add.f64 [%rd1], %fd1;
    mov.b32 %r1, 0x42003C00; atom.global.add.noftz.f16x2 %r2, [%rd2], %r1;
    mov.b32 %r3, 0x40403F80; red.global.add.noftz.bf16x2 [%rd2+4], %r3;
    mov.b16 %h1, 0x1400; red.global.add.noftz.f16 [%rd2+8], %h1;)"),
                             {1}, {32}, {d, h});
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(gpu.download<double>(d)[0], 0.5 + 32 * 0.25);
  const auto got = gpu.download<std::uint16_t>(h);
  EXPECT_EQ(got[0], 0x5020); // 1 + 32 * 1 = 33
  EXPECT_EQ(got[1], 0x5620); // 2 + 32 * 3 = 98
  EXPECT_EQ(got[2], 0x4204); // bf16 33
  EXPECT_EQ(got[3], 0x42C4); // bf16 98
  EXPECT_EQ(got[4], 0x3C20); // 1 + 32 * 2^-10
  EXPECT_EQ(got[5], 0x7E01);
}

TEST(Atomics, VectorForms) {
  Emulator gpu;
  auto &f = gpu.upload(std::vector<float>{1, 2, 3, 4}, "f");
  auto &h = gpu.upload(std::vector<std::uint16_t>(8, 0x3C00), "h");
  const Launched r = gpu.run(kernelText(".param .u64 f, .param .u64 h", R"(
    ld.param.u64 %rd1, [f]; ld.param.u64 %rd2, [h]; mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f40000000;
    atom.global.v4.f32.add {%f3, %f4, _, %f6}, [%rd1], {%f1, %f2, %f1, %f2}; red.global.add.v2.f32 [%rd1], {%f3, %f4};
    mov.b16 %h1, 0x4000; red.global.add.noftz.v8.f16 [%rd2], {%h1,%h1,%h1,%h1,%h1,%h1,%h1,%h1};
    mov.b32 %r1, 0x48003800; red.global.v2.f16x2.max.noftz [%rd2], {%r1, %r1};)"),
                             {1}, {1}, {f, h});
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(gpu.download<float>(f), (std::vector<float>{3, 6, 4, 6}));
  const auto got = gpu.download<std::uint16_t>(h);
  for (unsigned i = 0; i < 8; ++i)
    EXPECT_EQ(got[i], i < 4 && i % 2 ? 0x4800 : 0x4200) << i;
}

TEST(Atomics, ReductionOverManyBlocksOnSeveralThreads) {
  EmulatorOptions options;
  options.hostThreads = 4;
  Emulator gpu("sm_90a", options);
  auto &cells = gpu.upload(std::vector<std::uint32_t>(16, 0), "cells");
  const Launched r = gpu.run(kernelText(".param .u64 cells", std::string(threadIndex) + R"(
    ld.param.u64 %rd1, [cells]; and.b32 %r1, %r60, 15; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; red.global.add.u32 [%rd1], %r60;
    atom.global.max.u32 %r5, [%rd1], 3;)"),
                             {64}, {256}, {cells});
  ASSERT_TRUE(r.clean()) << r.text();
  const auto got = gpu.download<std::uint32_t>(cells);
  for (std::uint32_t c = 0; c < 16; ++c) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = c; i < 64 * 256; i += 16)
      sum += i;
    EXPECT_EQ(got[c], sum);
  }
}

TEST(Atomics, ReadsUndefinedMemory) {
  Emulator gpu;
  auto &cell = gpu.allocate(4, "cell");
  EXPECT_EQ(
      gpu.run(kernelText(".param .u64 c", "ld.param.u64 %rd1, [c]; red.global.add.u32 [%rd1], 1;"), {1}, {1}, {cell})
          .ids(),
      "uninit.global");
}
