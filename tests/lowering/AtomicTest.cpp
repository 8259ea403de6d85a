// Atomics: each element acts once whatever copies the layout makes, masks, order and scope in the PTX, results.
#include "tests/lowering/Text.h"

#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using layout::Encoding;
using layout::Sizes;
using layout::TileLayout;

/// Every element of a tile of `shape` adds its index + 1 to counter[index mod 8]; odd elements only where masked.
std::string histogram(const Sizes &shape, const Encoding &encoding, const std::string &element, const std::string &kind,
                      bool masked, unsigned warps) {
  const std::string i32 = tensorType(shape, "i32", encoding), t = tensorType(shape, element, encoding),
                    ptr = tensorType(shape, "!tile.ptr<" + element + ">", encoding),
                    bits = tensorType(shape, "i1", encoding);
  const bool real = element[0] != 'i';
  std::string body = "    %r = tile.range 0 to " + std::to_string(shape[0]) + " : " + i32 + "\n" +
                     "    %one = arith.constant dense<1> : " + i32 + "\n    %seven = arith.constant dense<7> : " + i32 +
                     "\n    %v32 = arith.addi %r, %one : " + i32 + "\n    %k = arith.andi %r, %seven : " + i32 +
                     "\n    %odd = arith.andi %r, %one : " + i32 + "\n    %m = arith.cmpi eq, %odd, %one : " + i32 +
                     "\n    %s = tile.splat %x : !tile.ptr<" + element + "> to " + ptr +
                     "\n    %p = tile.addptr %s, %k : " + ptr + ", " + i32 + "\n";
  std::string value = "%v32";
  if (real || element == "i64") {
    body += "    %v = arith." + std::string(real ? "sitofp" : "extsi") + " %v32 : " + i32 + " to " + t + "\n";
    value = "%v";
  }
  body += "    %old = tile.atomic_rmw " + kind + " %p, " + value + (masked ? " mask %m" : "") + " : " + ptr + "\n";
  return kernelModule("%x: !tile.ptr<" + element + ">", body, warps);
}

TEST(Atomic, EachElementActsOnce) {
  std::mt19937_64 random(31);
  for (unsigned round = 0, rounds = pick(14u, 100u); round < rounds; ++round) {
    const unsigned logWarps = static_cast<unsigned>(random() % 3);
    const Sizes shape = randomShape(random, 1, 7);
    const Encoding encoding = randomLayout(random, shape, logWarps);
    const auto layout = TileLayout::create(encoding, shape);
    if (!layout || layout->registers() > 64)
      continue;
    const bool masked = random() % 2;
    const char *target = loweringTargets[random() % 4];
    std::vector<std::int64_t> expected(8, 100);
    for (std::int64_t i = 0; i < shape[0]; ++i)
      if (!masked || i % 2)
        expected[static_cast<std::size_t>(i % 8)] += i + 1;
    Emulator gpu(target);
    for (const std::string element : {"i32", "i64", "f32", "f64"}) {
      const std::string text = histogram(shape, encoding, element, "add relaxed gpu", masked, 1u << logWarps);
      auto check = [&](auto zero) {
        using T = decltype(zero);
        Buffer &b = gpu.upload(std::vector<T>(8, T(100)));
        const KernelRun run = runKernel(gpu, target, text, 1u << logWarps, {b});
        ASSERT_EQ(run.error, "");
        const std::vector<T> out = gpu.download<T>(b);
        for (std::size_t k = 0; k < 8; ++k)
          ASSERT_EQ(static_cast<std::int64_t>(out[k]), expected[k]) << text << run.ptx;
        if (expected != std::vector<std::int64_t>(8, 100)) {
          EXPECT_NE(run.ptx.find("red.relaxed.gpu.global.add"), std::string::npos) << run.ptx;
        }
      };
      if (element == "i32")
        check(std::int32_t());
      else if (element == "i64")
        check(std::int64_t());
      else if (element == "f32")
        check(float());
      else
        check(double());
      if (HasFatalFailure())
        return;
    }
  }
}

TEST(Atomic, EveryKindOfInteger) {
  const Encoding encoding = layout::Blocked{{1}, {32}, {1}, {0}};
  const Sizes shape = {32};
  struct {
    const char *kind;
    std::int32_t (*apply)(std::int32_t, std::int32_t);
  } kinds[] = {
      {"min", [](std::int32_t a, std::int32_t b) { return std::min(a, b); }},
      {"max", [](std::int32_t a, std::int32_t b) { return std::max(a, b); }},
      {"umin", [](std::int32_t a, std::int32_t b) { return static_cast<std::int32_t>(std::min<std::uint32_t>(a, b)); }},
      {"umax", [](std::int32_t a, std::int32_t b) { return static_cast<std::int32_t>(std::max<std::uint32_t>(a, b)); }},
      {"and", [](std::int32_t a, std::int32_t b) { return a & b; }},
      {"or", [](std::int32_t a, std::int32_t b) { return a | b; }},
      {"xor", [](std::int32_t a, std::int32_t b) { return a ^ b; }}};
  Emulator gpu("sm_80");
  for (const auto &kind : kinds)
    for (const char *order : {"relaxed", "acquire", "release", "acq_rel"})
      for (const char *scope : {"cta", "gpu", "sys"}) {
        const std::string how = std::string(kind.kind) + " " + order + " " + scope;
        Buffer &b = gpu.upload(std::vector<std::int32_t>(8, -77));
        const KernelRun run = runKernel(gpu, "sm_80", histogram(shape, encoding, "i32", how, false, 1), 1, {b});
        ASSERT_EQ(run.error, "") << how;
        std::vector<std::int32_t> expected(8, -77);
        for (std::int32_t i = 0; i < 32; ++i)
          expected[static_cast<std::size_t>(i % 8)] = kind.apply(expected[static_cast<std::size_t>(i % 8)], i + 1);
        ASSERT_EQ(gpu.download<std::int32_t>(b), expected) << how;
        EXPECT_NE(run.ptx.find(std::string(".") + order + "." + scope + ".global."), std::string::npos) << run.ptx;
      }
}

/// Float minimum and maximum and 16-bit additions that the hardware lacks are loops.
TEST(Atomic, LoopsAroundCompareAndSwap) {
  const Encoding encoding = layout::Blocked{{2}, {32}, {2}, {0}};
  const Sizes shape = {64};
  for (const char *target : loweringTargets) {
    Emulator gpu(target);
    for (const std::string kind : {"min", "max", "add"}) {
      Buffer &f = gpu.upload(std::vector<float>(8, 20.5f));
      KernelRun run =
          runKernel(gpu, target, histogram(shape, encoding, "f32", kind + " acq_rel gpu", false, 2), 2, {f});
      ASSERT_EQ(run.error, "") << target << kind;
      const std::vector<float> out = gpu.download<float>(f);
      for (int k = 0; k < 8; ++k) {
        float expected = 20.5f;
        for (int i = k; i < 64; i += 8)
          expected = kind == "min"   ? std::min(expected, i + 1.f)
                     : kind == "max" ? std::max(expected, i + 1.f)
                                     : expected + (i + 1.f);
        EXPECT_EQ(out[static_cast<std::size_t>(k)], expected) << target << kind;
      }
      // Sums of small integers are exact in both 16-bit types up to 256: values 1 .. 64 at 8 places give at most 288.
      for (const std::string element : {"f16", "bf16"}) {
        if (kind == "add" && element == "bf16")
          continue;                                                     // rounds: below
        const std::uint16_t start = element == "f16" ? 0x4D20 : 0x41A4; // 20.5
        Buffer &h = gpu.upload(std::vector<std::uint16_t>(8, start));
        run = runKernel(gpu, target, histogram(shape, encoding, element, kind + " relaxed gpu", false, 2), 2, {h});
        ASSERT_EQ(run.error, "") << target << kind << element;
        const auto halves = gpu.download<std::uint16_t>(h);
        for (int k = 0; k < 8; ++k) {
          float expected = 20.5f;
          for (int i = k; i < 64; i += 8)
            expected = kind == "min"   ? std::min(expected, i + 1.f)
                       : kind == "max" ? std::max(expected, i + 1.f)
                                       : expected + (i + 1.f);
          std::uint32_t bits;
          std::memcpy(&bits, &expected, 4);
          const float got = [&] {
            const std::uint16_t v = halves[static_cast<std::size_t>(k)];
            std::uint32_t wide = element == "bf16" ? std::uint32_t(v) << 16
                                                   : ((v & 0x7C00u) + ((127u - 15u) << 10)) << 13 | (v & 0x3FFu) << 13;
            float out;
            std::memcpy(&out, &wide, 4);
            return out;
          }();
          EXPECT_EQ(got, expected) << target << kind << element;
        }
      }
    }
    // bf16: 8 ones added to 1 are exact.
    Buffer &b = gpu.upload(std::vector<std::uint16_t>(1, 0x3F80));
    const std::string tile = tensorType({8}, "bf16", layout::Blocked{{1}, {32}, {1}, {0}}),
                      ptr = tensorType({8}, "!tile.ptr<bf16>", layout::Blocked{{1}, {32}, {1}, {0}});
    const KernelRun run =
        runKernel(gpu, target,
                  kernelModule("%x: !tile.ptr<bf16>",
                               "    %p = tile.splat %x : !tile.ptr<bf16> to " + ptr +
                                   "\n    %v = arith.constant dense<1.0> : " + tile +
                                   "\n    %o = tile.atomic_rmw add relaxed gpu %p, %v : " + ptr + "\n",
                               1),
                  1, {b});
    ASSERT_EQ(run.error, "") << target;
    EXPECT_EQ(gpu.download<std::uint16_t>(b)[0], 0x4110) << target; // 9
  }
}

/// Results: all copies of an element see the one old value, inside warps by shuffles, across warps through shared
/// memory.
TEST(Atomic, ResultsReachEveryCopy) {
  std::mt19937_64 random(33);
  for (unsigned round = 0, rounds = pick(30u, 150u); round < rounds; ++round) {
    const unsigned logWarps = static_cast<unsigned>(random() % 3);
    const Sizes shape = randomShape(random, 1, 8);
    const Encoding encoding = randomLayout(random, shape, logWarps), out = randomLayout(random, shape, logWarps);
    const auto layout = TileLayout::create(encoding, shape), other = TileLayout::create(out, shape);
    if (!layout || layout->registers() > 64 || !other || other->registers() > 64)
      continue;
    const char *target = loweringTargets[random() % 4];
    const std::string i32 = tensorType(shape, "i32", encoding), to = tensorType(shape, "i32", out),
                      ptr = tensorType(shape, "!tile.ptr<i32>", encoding);
    // Each element exchanges its own word; the old values are written through another layout.
    const bool cas = random() % 2;
    const std::string text = kernelModule(
        twoPointers("i32"),
        zeroConstant + "    %r = tile.range 0 to " + std::to_string(shape[0]) + " : " + i32 +
            "\n    %s = tile.splat %x : !tile.ptr<i32> to " + ptr + "\n    %p = tile.addptr %s, %r : " + ptr + ", " +
            i32 + "\n    %k = arith.constant dense<1000> : " + i32 + "\n    %old = tile.atomic_" +
            (cas ? "cas acq_rel gpu %p, %k, %r" : "rmw xchg acq_rel gpu %p, %r") + " : " + ptr +
            "\n    %b = tile_gpu.convert_layout %old : " + i32 + " to " + to + "\n" +
            storeView("b", "y", shape, "i32", to),
        1u << logWarps);
    std::vector<std::int32_t> x;
    for (std::int64_t i = 0; i < shape[0]; ++i)
      x.push_back(random() % 2 ? 1000 : static_cast<std::int32_t>(random()));
    Emulator gpu(target);
    Buffer &bx = gpu.upload(x), &by = gpu.allocate(x.size() * 4);
    (void)by.poison(std::byte(0xCD));
    const KernelRun run = runKernel(gpu, target, text, 1u << logWarps, {bx, by}, {}, From::Expansion);
    ASSERT_EQ(run.error, "") << "round " << round;
    ASSERT_EQ(gpu.download<std::int32_t>(by), x) << "round " << round << "\n" << text << run.ptx;
    const auto after = gpu.download<std::int32_t>(bx);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(after[i], cas && x[i] != 1000 ? x[i] : static_cast<std::int32_t>(i));
  }
}

/// A scalar atomic is one thread's; its result reaches all.
TEST(Atomic, ScalarActsOnceABlock) {
  Emulator gpu("sm_90a");
  Buffer &counter = gpu.upload(std::vector<std::int32_t>{0}), &out = gpu.allocate(8 * 128 * 4);
  (void)out.poison(std::byte(0xCD));
  const std::string type = tensorType({128}, "i32", layout::Blocked{{1}, {32}, {4}, {0}}),
                    ptr = tensorType({128}, "!tile.ptr<i32>", layout::Blocked{{1}, {32}, {4}, {0}});
  const KernelRun run = runKernel(
      gpu, "sm_90a",
      kernelModule(twoPointers("i32"),
                   "    %one = arith.constant 1 : i32\n    %n = arith.constant 128 : i32\n"
                   "    %t = tile.atomic_rmw add acq_rel gpu %x, %one : !tile.ptr<i32>\n"
                   "    %o = arith.muli %t, %n : i32\n"
                   "    %os = tile.splat %o : i32 to " +
                       type + "\n    %r = tile.range 0 to 128 : " + type + "\n    %at = arith.addi %r, %os : " + type +
                       "\n    %p = tile.splat %y : !tile.ptr<i32> to " + ptr +
                       "\n    %q = tile.addptr %p, %at : " + ptr + ", " + type + "\n    %v = tile.splat %t : i32 to " +
                       type + "\n    tile.store %q, %v : " + ptr + "\n",
                   4),
      4, {counter, out}, {8}, From::Expansion);
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(gpu.download<std::int32_t>(counter)[0], 8);
  const auto values = gpu.download<std::int32_t>(out);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], static_cast<std::int32_t>(i / 128));
}

} // namespace
} // namespace kiln::test
