// Inline PTX from the front end to the emulator: every type of register, several results and statements, tiles and
// scalars, any layout; what a target lacks or the emulator does not know is refused at the author's line.
#include "compiler/language/Language.h"
#include "tests/lowering/Text.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

namespace lang = kiln::language;
using lang::Arg, lang::Pointer, lang::bf16, lang::f16, lang::f32, lang::f64, lang::i16, lang::i32, lang::i64, lang::u16,
    lang::u32, lang::u64;

constexpr int n = 256;

/// A number of each of its bits.
template <typename T> std::vector<T> randomWords(std::mt19937_64 &random) {
  std::vector<T> out(n);
  for (T &v : out)
    v = static_cast<T>(random());
  return out;
}

/// out[i] = the instruction of x[i] and y[i], both of `T`; x as a tile of 16 x 16, with its rows exchanged through
/// shared memory.
template <lang::Element T, lang::Element U, typename In, typename Out, typename F>
void elementwise(const char *target, const char *text, std::mt19937_64 &random, F expected) {
  SCOPED_TRACE(std::string(target) + ": " + text);
  const lang::Kernel k =
      lang::kernel("k", {.warps = 2}, [&](Arg<Pointer<T>, "x"> x, Arg<Pointer<T>, "y"> y, Arg<Pointer<U>, "out"> out) {
        const auto at = lang::expandDims(lang::range(0, 16) * 16, 1) + lang::expandDims(lang::range(0, 16), 0);
        const auto r =
            lang::inlinePtx<U(T, T)>(text, lang::load(x + at), lang::transpose(lang::load(y + lang::transpose(at))));
        lang::store(out + at, r);
      });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  const auto x = randomWords<In>(random), y = randomWords<In>(random);
  Emulator gpu(target);
  Buffer &bx = gpu.upload(x), &by = gpu.upload(y), &out = gpu.allocate(n * sizeof(Out));
  (void)out.poison(std::byte(0xCD));
  ASSERT_EQ(runKernel(gpu, target, k.text(), 2, {bx, by, out}, {}, From::Tile).error, "");
  const auto got = gpu.download<Out>(out);
  for (std::size_t i = 0; i < n; ++i)
    ASSERT_EQ(got[i], static_cast<Out>(expected(x[i], y[i]))) << "element " << i;
}

TEST(InlinePtx, EachTypeOfRegister) {
  std::mt19937_64 random(29);
  for (const char *target : loweringTargets) {
    elementwise<i32, i32, std::int32_t, std::int32_t>(
        target, "mul.hi.s32 $0, $1, $2;", random,
        [](std::int64_t a, std::int64_t b) { return static_cast<std::int32_t>((a * b) >> 32); });
    elementwise<u64, u64, std::uint64_t, std::uint64_t>(target, "sub.u64 $0, $1, $2;", random,
                                                        [](std::uint64_t a, std::uint64_t b) { return a - b; });
    elementwise<i16, i16, std::int16_t, std::int16_t>(target, "max.s16 $0, $1, $2;", random,
                                                      [](std::int16_t a, std::int16_t b) { return std::max(a, b); });
    elementwise<u16, u32, std::uint16_t, std::uint32_t>(target, "mul.wide.u16 $0, $1, $2;", random,
                                                        [](std::uint32_t a, std::uint32_t b) { return a * b; });
    // Bits of 16-bit floats: registers of type .b16.
    elementwise<f16, f16, std::uint16_t, std::uint16_t>(target, "xor.b16 $0, $1, $2;", random,
                                                        [](unsigned a, unsigned b) { return a ^ b; });
    elementwise<bf16, f32, std::uint16_t, std::uint32_t>(target, "mov.b32 $0, {$1, $2};", random,
                                                         [](std::uint32_t a, std::uint32_t b) { return a | b << 16; });
    // An operand is read after the first result register is written: none of them is the same.
    elementwise<i32, i32, std::int32_t, std::uint32_t>(
        target, "mov.b32 $0, $2; { .reg .b32 %t; sub.s32 %t, $1, $2; xor.b32 $0, $0, %t; }", random,
        [](std::uint32_t a, std::uint32_t b) { return b ^ (a - b); });
    elementwise<f32, f32, std::uint32_t, std::uint32_t>(target,
                                                        "{ .reg .b32 %a; mov.b32 %a, $1; and.b32 %a, %a, 255; mov.b32 "
                                                        "$0, %a; } ex2.approx.ftz.f32 $0, 0f00000000; mov.b32 $0, $2;",
                                                        random, [](std::uint32_t, std::uint32_t b) { return b; });
  }
}

TEST(InlinePtx, ArithmeticOfFloatsScalarsAndSeveralResults) {
  const lang::Kernel k = lang::kernel(
      "k", {.warps = 4},
      [](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "out"> out, Arg<Pointer<u32>, "parts"> parts, Arg<f32, "a"> a,
         Arg<f64, "d"> d) {
        const auto i = lang::range(0, n);
        const auto y = lang::inlinePtx<f32(f32, f32, f32)>("fma.rn.f32 $0, $1, $2, $3;", lang::load(x + i), a, 0.5);
        lang::store(out + i, y);
        const auto [q, r] =
            lang::inlinePtx<std::tuple<u32, u32>(i32, u32)>("div.u32 $0, $2, $3;\n rem.u32 $1, $2, $3;", i, 7);
        lang::store(parts + i, q);
        lang::store(parts + (i + n), r);
        // Scalars alone: one of each for the program; both halves of an f64.
        const auto [low, high] = lang::inlinePtx<std::tuple<u32, u32>(f64)>("mov.b64 {$0, $1}, $2;", d);
        lang::store(parts + 2 * n, low);
        lang::store(parts + (2 * n + 1), high);
        const auto size = lang::inlinePtx<u32()>("mov.u32 $0, %ntid.x;");
        lang::store(parts + (2 * n + 2), size);
      });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  std::mt19937_64 random(31);
  std::normal_distribution<float> normal;
  for (const char *target : loweringTargets) {
    std::vector<float> x(n);
    for (float &v : x)
      v = normal(random);
    const float a = normal(random);
    const double d = normal(random) / 3.0;
    Emulator gpu(target);
    Buffer &in = gpu.upload(x), &out = gpu.allocate(n * 4), &parts = gpu.allocate((2 * n + 3) * 4);
    (void)out.poison(std::byte(0xCD));
    (void)parts.poison(std::byte(0xCD));
    ASSERT_EQ(runKernel(gpu, target, k.text(), 4, {in, out, parts, a, d}, {}, From::Tile).error, "") << target;
    const auto got = gpu.download<float>(out);
    const auto words = gpu.download<std::uint32_t>(parts);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(got[i], std::fma(x[i], a, 0.5f));
      EXPECT_EQ(words[i], i / 7);
      EXPECT_EQ(words[n + i], i % 7);
    }
    const auto bits = std::bit_cast<std::uint64_t>(d);
    EXPECT_EQ(words[2 * n], static_cast<std::uint32_t>(bits));
    EXPECT_EQ(words[2 * n + 1], static_cast<std::uint32_t>(bits >> 32));
    EXPECT_EQ(words[2 * n + 2], 128u);
  }
}

std::size_t occurrences(const std::string &text, const std::string &word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

/// Two equal instructions without effects are one and go where they are not used; with effects both stay, in order.
TEST(InlinePtx, EffectsStay) {
  const lang::Kernel k = lang::kernel("k", {.warps = 1}, [](Arg<Pointer<u64>, "out"> out, Arg<i32, "n"> rounds) {
    const auto before = lang::inlinePtxWithEffects<u64()>("mov.u64 $0, %clock64;");
    (void)lang::inlinePtx<u32()>("mov.u32 $0, %warpid;");
    const auto a = lang::inlinePtx<u32()>("mov.u32 $0, %laneid;"), b = lang::inlinePtx<u32()>("mov.u32 $0, %laneid;");
    lang::loop(lang::over(0, rounds), [&](auto i) { lang::inlinePtxWithEffects<void(i32)>("nanosleep.u32 $0;", i); });
    const auto after = lang::inlinePtxWithEffects<u64()>("mov.u64 $0, %clock64;");
    lang::store(out, after - before);
    lang::store(out + 1, lang::cast<u64>(a - b));
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  Emulator gpu("sm_80");
  Buffer &out = gpu.allocate(16);
  (void)out.poison(std::byte(0xCD));
  const KernelRun run = runKernel(gpu, "sm_80", k.text(), 1, {out, std::int32_t(5)}, {}, From::Tile);
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(occurrences(run.ptx, "%clock64"), 2u);
  EXPECT_EQ(occurrences(run.ptx, "%warpid"), 0u);
  EXPECT_LE(occurrences(run.ptx, "%laneid"), 1u);
  EXPECT_GT(gpu.download<std::uint64_t>(out)[0], 0u);
  EXPECT_LT(gpu.download<std::uint64_t>(out)[0], 1u << 20);
  EXPECT_EQ(gpu.download<std::uint64_t>(out)[1], 0u);
}

lang::Kernel withText(const char *text) {
  return lang::kernel("k", {.warps = 1}, [&](Arg<Pointer<f32>, "x"> x) {
    const auto i = lang::range(0, 32);
    lang::store(x + i, lang::inlinePtx<f32(f32)>(text, lang::load(x + i)));
  });
}

/// An instruction that the target lacks is an error of the compile; one that nobody knows is one of the emulator's.
TEST(InlinePtx, WhatCannotBeIsRefused) {
  const lang::Kernel late = withText("redux.sync.min.s32 $0, $1, 0xffffffff;");
  ASSERT_TRUE(late.ok());
  EXPECT_TRUE(lowered(late.text(), "sm_80", false, From::Tile).ok);
  const LoweredKernel lacks = lowered(late.text(), "sm_75", false, From::Tile);
  EXPECT_FALSE(lacks.ok);
  EXPECT_NE(lacks.errors.find("'redux.sync.min.s32' needs redux.sync, which sm_75 lacks"), std::string::npos)
      << lacks.errors;
  Emulator gpu("sm_80");
  Buffer &x = gpu.upload(std::vector<float>(32, 1));
  const lang::Kernel unknown = withText("frobnicate.f32 $0, $1;");
  ASSERT_TRUE(unknown.ok());
  const std::string message = runKernel(gpu, "sm_80", unknown.text(), 1, {x}, {}, From::Tile).error;
  EXPECT_NE(message.find("unknown instruction 'frobnicate.f32'"), std::string::npos) << message;
}

} // namespace
} // namespace kiln::test
