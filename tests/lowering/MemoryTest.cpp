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

/// Elements picked through pointers in any order, some masked, with or without another value; copies written once.
TEST(Memory, GatherWithMasksInRandomLayouts) {
  std::mt19937_64 random(41);
  static const char *const caches[] = {"", "", " cache streaming", " cache global", " cache volatile"};
  for (unsigned round = 0, rounds = pick(40u, 300u); round < rounds; ++round) {
    const unsigned logWarps = static_cast<unsigned>(random() % 3), rank = 1 + static_cast<unsigned>(random() % 3);
    const layout::Sizes shape = randomShape(random, rank, 9);
    const layout::Encoding encoding = randomLayout(random, shape, logWarps);
    const auto layout = layout::TileLayout::create(encoding, shape);
    if (!layout || layout->registers() > 64)
      continue;
    const auto &element = elementTypes[random() % std::size(elementTypes)];
    const char *target = loweringTargets[random() % 4], *cache = caches[random() % 5];
    const std::size_t n = elementsOf(shape);
    const std::string name = element.name, value = tensorType(shape, name, encoding),
                      i32 = tensorType(shape, "i32", encoding), bits = tensorType(shape, "i1", encoding),
                      ptr = tensorType(shape, "!tile.ptr<" + name + ">", encoding);
    const unsigned masks = static_cast<unsigned>(random() % 3); // 0 none, 1 mask, 2 mask and other
    // %i: what each element reads; %j: its own place.  Elements with an odd index are masked.
    const std::string mask = masks ? " mask %m" : "", other = masks == 2 ? " other %u" : "";
    const std::string text = kernelModule(
        "%x: !tile.ptr<" + name + ">, %y: !tile.ptr<" + name +
            ">, %indices: !tile.ptr<i32>, %places: !tile.ptr<i32>, %o: "
            "!tile.ptr<" +
            name + ">",
        zeroConstant + loadView("i", "indices", shape, "i32", i32) + loadView("j", "places", shape, "i32", i32) +
            "    %one = arith.constant dense<1> : " + i32 + "\n    %odd = arith.andi %i, %one : " + i32 +
            "\n    %m = arith.cmpi ne, %odd, %one : " + i32 + "\n    %xs = tile.splat %x : !tile.ptr<" + name +
            "> to " + ptr + "\n    %xp = tile.addptr %xs, %i : " + ptr + ", " + i32 +
            "\n    %ys = tile.splat %y : !tile.ptr<" + name + "> to " + ptr +
            "\n    %yp = tile.addptr %ys, %j : " + ptr + ", " + i32 + "\n    %os = tile.splat %o : !tile.ptr<" + name +
            "> to " + ptr + "\n    %op = tile.addptr %os, %j : " + ptr + ", " + i32 +
            "\n    %u = tile.load %op : " + ptr + "\n    %v = tile.load %xp" + mask + other + cache + " : " + ptr +
            "\n    tile.store %yp, %v" + (masks == 2 ? mask : "") + cache + " : " + ptr + "\n",
        1u << logWarps);
    std::vector<std::int32_t> indices(n), places(n);
    for (std::size_t k = 0; k < n; ++k) {
      indices[k] = static_cast<std::int32_t>(random() % n);
      places[k] = static_cast<std::int32_t>(k);
    }
    std::shuffle(places.begin(), places.end(), random);
    const auto x = randomBytes(random, n * element.bytes), y = randomBytes(random, n * element.bytes);
    auto expected = y;
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t to = static_cast<std::size_t>(places[k]) * element.bytes,
                        from = static_cast<std::size_t>(indices[k]) * element.bytes;
      const bool reads = !masks || indices[k] % 2 == 0;
      if (!reads && masks == 2)
        continue;
      for (std::size_t b = 0; b < element.bytes; ++b)
        expected[to + b] = reads ? x[from + b] : 0;
    }
    Emulator gpu(target);
    Buffer &bx = gpu.upload(x, "x"), &by = gpu.upload(y, "y"), &bi = gpu.upload(indices, "indices"),
           &bp = gpu.upload(places, "places"), &bo = gpu.upload(y, "others");
    // Not from y itself: a warp that holds a copy of an element may read it after the warp that stores it has stored
    // it.
    const KernelRun run = runKernel(gpu, target, text, 1u << logWarps, {bx, by, bi, bp, bo});
    ASSERT_EQ(run.error, "") << "round " << round;
    ASSERT_EQ(gpu.download<unsigned char>(by), expected) << "round " << round << "\n" << text << run.ptx;
  }
}

/// i1 in memory is a byte, 0 or 1.
TEST(Memory, MasksLieAsBytes) {
  const layout::Encoding encoding = layout::Blocked{{4}, {32}, {1}, {0}};
  const std::string i8 = tensorType({128}, "i8", encoding), i1 = tensorType({128}, "i1", encoding),
                    i32 = tensorType({128}, "i32", encoding), pi1 = tensorType({128}, "!tile.ptr<i1>", encoding);
  const std::string text = kernelModule(
      "%x: !tile.ptr<i1>, %y: !tile.ptr<i1>",
      "    %r = tile.range 0 to 128 : " + i32 + "\n    %xs = tile.splat %x : !tile.ptr<i1> to " + pi1 +
          "\n    %p = tile.addptr %xs, %r : " + pi1 + ", " + i32 + "\n    %ys = tile.splat %y : !tile.ptr<i1> to " +
          pi1 + "\n    %q = tile.addptr %ys, %r : " + pi1 + ", " + i32 + "\n    %v = tile.load %p : " + pi1 +
          "\n    %t = arith.constant dense<true> : " + i1 + "\n    %n = arith.xori %v, %t : " + i1 +
          "\n    tile.store %q, %n : " + pi1 + "\n",
      1);
  std::vector<unsigned char> x(128), y(128);
  for (std::size_t k = 0; k < 128; ++k)
    x[k] = k % 3 == 0;
  Emulator gpu("sm_80");
  Buffer &bx = gpu.upload(x), &by = gpu.upload(y);
  const KernelRun run = runKernel(gpu, "sm_80", text, 1, {bx, by});
  ASSERT_EQ(run.error, "");
  const auto out = gpu.download<unsigned char>(by);
  for (std::size_t k = 0; k < 128; ++k)
    ASSERT_EQ(out[k], 1 - x[k]);
}

TEST(Memory, CacheHints) {
  const std::string layout = "#tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>";
  for (const auto &[hint, load, store] : {std::tuple("streaming", "ld.global.cs.v4.b32", "st.global.cs.v4.b32"),
                                          std::tuple("global", "ld.global.cg.v4.b32", "st.global.cg.v4.b32"),
                                          std::tuple("volatile", "ld.volatile.global.b32", "st.volatile.global.b32")}) {
    std::string text = addKernel(layout, 4, 1024, " {tile.divisibility = 16 : i32}");
    for (std::size_t at = 0; (at = text.find(" mask %m", at)) != std::string::npos; ++at)
      text.insert(at + 8, std::string(" cache ") + hint);
    const LoweredKernel k = lowered(text, "sm_80");
    ASSERT_TRUE(k.ok) << k.errors;
    EXPECT_NE(k.ptx.find(load), std::string::npos) << k.ptx;
    EXPECT_NE(k.ptx.find(store), std::string::npos) << k.ptx;
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
