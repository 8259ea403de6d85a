// Buffers in shared memory: random layouts of the tile and of the buffer, several buffers, another layout read back.
#include "tests/lowering/Text.h"

#include "tests/layout/RandomLayouts.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>
#include <map>

namespace kiln::test {
namespace {

using layout::Encoding;
using layout::Sizes;
using layout::TileLayout;

layout::SharedEncoding anyShared(std::mt19937_64 &random, const Sizes &shape, unsigned bits) {
  const Sizes orders[] = {{}, {1, 0}, {0, 1}};
  const Sizes order = orders[random() % 3];
  switch (random() % 4) {
  case 0:
    return layout::Padded{std::int64_t(4) << random() % 4, std::int64_t(1) << random() % 4, order};
  case 1:
    return layout::Tma{std::int64_t(16) << random() % 4, order};
  default: {
    Random draws(random());
    const auto core = layout::splitExtents(shape);
    return randomSharedEncoding(draws, core->core[0], core->core[1], bits);
  }
  }
}

TEST(Local, StoreAndLoadInRandomLayouts) {
  std::mt19937_64 random(21);
  std::map<std::string, unsigned> kinds;
  unsigned ran = 0;
  for (unsigned round = 0, rounds = pick(60u, 500u); round < rounds; ++round) {
    const unsigned logWarps = static_cast<unsigned>(random() % 3);
    const Sizes shape = randomShape(random, 2, 11);
    const Encoding from = randomLayout(random, shape, logWarps), to = randomLayout(random, shape, logWarps);
    const auto source = TileLayout::create(from, shape), destination = TileLayout::create(to, shape);
    if (!source || !destination || source->registers() > 128 || destination->registers() > 128)
      continue;
    const auto &element = elementTypes[random() % std::size(elementTypes)];
    const layout::SharedEncoding shared = anyShared(random, shape, element.bytes * 8);
    const auto buffer = layout::SharedTile::create(shared, shape, element.bytes * 8);
    if (!buffer || buffer->bytes() > 20 * 1024)
      continue; // three of them fit every target
    ++ran;
    ++kinds[std::string(shared.keyword())];
    const char *target = loweringTargets[random() % 4];
    const std::string a = tensorType(shape, element.name, from), b = tensorType(shape, element.name, to);
    const std::string tail = extents(shape) + "x" + element.name + ", " + attribute(shared) + ">";
    const std::string one = "!tile_gpu.buffer<" + tail, three = "!tile_gpu.buffer<[3] x " + tail;
    // Into buffer 2 of three; buffer 1 is filled with something else afterwards.
    const std::string text =
        kernelModule(twoPointers(element.name),
                     zeroConstant + "    %c1 = arith.constant 1 : i32\n    %c2 = arith.constant 2 : i32\n" +
                         loadView("a", "x", shape, element.name, a) + "    %all = tile_gpu.local_alloc : " + three +
                         "\n" + "    %two = tile_gpu.local_subview %all[%c2] : " + three + "\n" +
                         "    %other = tile_gpu.local_subview %all[%c1] : " + three + "\n" +
                         "    tile_gpu.local_store %a, %two : " + a + ", " + one + "\n" +
                         "    tile_gpu.barrier\n    %b = tile_gpu.local_load %two : " + one + " to " + b +
                         "\n    tile_gpu.local_store %b, %other : " + b + ", " + one + "\n" +
                         storeView("b", "y", shape, element.name, b),
                     1u << logWarps);
    const auto x = randomBytes(random, elementsOf(shape) * element.bytes);
    Emulator gpu(target);
    Buffer &bx = gpu.upload(x), &by = gpu.allocate(x.size());
    (void)by.poison(std::byte(0xCD));
    const KernelRun run = runKernel(gpu, target, text, 1u << logWarps, {bx, by}, {}, From::Expansion);
    ASSERT_EQ(run.error, "") << "round " << round;
    ASSERT_EQ(gpu.download<unsigned char>(by), x) << "round " << round << "\n" << text << run.ptx;
  }
  for (auto &[name, n] : kinds)
    std::printf("%s: %u\n", name.c_str(), n);
  EXPECT_GT(ran, pick(20u, 200u));
  EXPECT_GT(kinds["padded"], 0u);
  EXPECT_GT(kinds["tma"], 0u);
}

/// Tiles of m * 2^k in buffers of TMA, whose columns and repetitions lie further apart than in the core alone.
TEST(Local, TmaTilesWithRepetitions) {
  const struct {
    Sizes shape;
    unsigned swizzle;
    Sizes order;
    const char *element;
    unsigned bytes;
    std::size_t fields; ///< of the core's offsets
  } cases[] = {{{96, 64}, 128, {}, "f16", 2, 1},        {{64, 192}, 64, {}, "f16", 2, 1},
               {{96, 64}, 32, {}, "f16", 2, 2},         {{48, 80}, 32, {1, 0}, "f16", 2, 1},
               {{128, 24}, 64, {0, 1}, "f32", 4, 2},    {{32, 112}, 32, {}, "i16", 2, 1},
               {{24, 3 * 128}, 32, {}, "i8", 1, 2},     {{6, 24, 64}, 64, {}, "f16", 2, 3},
               {{2, 24, 32}, 0, {2, 1, 0}, "f32", 4, 2}};
  unsigned number = 0;
  for (const auto &c : cases) {
    const layout::SharedEncoding shared = layout::Tma{c.swizzle, c.order};
    const auto buffer = layout::SharedTile::create(shared, c.shape, c.bytes * 8);
    ASSERT_TRUE(buffer.ok()) << buffer.status().toString();
    EXPECT_EQ(buffer->fields().size(), c.fields) << number;
    const bool deep = c.shape.size() == 3;
    const Encoding from = deep ? Encoding(layout::Blocked{{1, 1, 2}, {1, 4, 8}, {2, 2, 1}, {2, 1, 0}})
                               : Encoding(layout::Blocked{{1, 4}, {8, 4}, {4, 1}, {1, 0}});
    const Encoding to = deep ? Encoding(layout::Blocked{{1, 4, 1}, {2, 1, 16}, {1, 1, 4}, {0, 2, 1}})
                             : Encoding(layout::Mma{2, {2, 2}});
    const std::string a = tensorType(c.shape, c.element, from), b = tensorType(c.shape, c.element, to);
    const std::string type = "!tile_gpu.buffer<" + extents(c.shape) + "x" + c.element + ", " + attribute(shared) + ">";
    const std::string text =
        kernelModule(twoPointers(c.element),
                     zeroConstant + loadView("a", "x", c.shape, c.element, a) +
                         "    %s = tile_gpu.local_alloc : " + type + "\n    tile_gpu.local_store %a, %s : " + a + ", " +
                         type + "\n    tile_gpu.barrier\n" + "    %b = tile_gpu.local_load %s : " + type + " to " + b +
                         "\n    tile_gpu.barrier\n" + "    tile_gpu.local_store %b, %s : " + b + ", " + type +
                         "\n    tile_gpu.barrier\n" + "    %c = tile_gpu.local_load %s : " + type + " to " + a + "\n" +
                         storeView("c", "y", c.shape, c.element, a),
                     4);
    std::mt19937_64 random(number);
    const auto x = randomBytes(random, elementsOf(c.shape) * c.bytes);
    const char *target = number++ % 2 ? "sm_90a" : "sm_80";
    Emulator gpu(target);
    Buffer &bx = gpu.upload(x), &by = gpu.allocate(x.size());
    (void)by.poison(std::byte(0xCD));
    const KernelRun run = runKernel(gpu, target, text, 4, {bx, by}, {}, From::Expansion);
    ASSERT_EQ(run.error, "") << text;
    ASSERT_EQ(gpu.download<unsigned char>(by), x) << text << run.ptx;
  }
}

TEST(Local, FragmentsUseMatrixInstructions) {
  const Sizes shape = {64, 64};
  const Encoding rows = layout::Blocked{{1, 8}, {4, 8}, {4, 1}, {1, 0}};
  const Encoding operand = layout::DotOperand{0, 2, Encoding(layout::Mma{2, {4, 1}})};
  const layout::SharedEncoding shared = layout::Swizzled{8, 1, 8};
  const std::string a = tensorType(shape, "f16", rows), b = tensorType(shape, "f16", operand);
  const std::string buffer = "!tile_gpu.buffer<64x64xf16, " + attribute(shared) + ">";
  const std::string text = kernelModule(
      twoPointers("f16"),
      zeroConstant + loadView("a", "x", shape, "f16", a) + "    %s = tile_gpu.local_alloc : " + buffer +
          "\n    tile_gpu.local_store %a, %s : " + a + ", " + buffer + "\n    tile_gpu.barrier\n" +
          "    %b = tile_gpu.local_load %s : " + buffer + " to " + b + "\n" + storeView("b", "y", shape, "f16", b),
      4);
  std::mt19937_64 random(5);
  const auto x = randomBytes(random, 64 * 64 * 2);
  for (const char *target : loweringTargets) {
    Emulator gpu(target);
    Buffer &bx = gpu.upload(x), &by = gpu.allocate(x.size());
    (void)by.poison(std::byte(0xCD));
    const KernelRun run = runKernel(gpu, target, text, 4, {bx, by}, {}, From::Expansion);
    ASSERT_EQ(run.error, "") << target;
    EXPECT_EQ(gpu.download<unsigned char>(by), x) << target;
    EXPECT_NE(run.ptx.find("ldmatrix.sync.aligned.m8n8.x4.shared.b16"), std::string::npos) << run.ptx;
    EXPECT_NE(run.ptx.find("st.shared.v4.b32"), std::string::npos) << run.ptx;
  }
}

TEST(Local, ABufferWithoutAPlaceIsRefused) {
  const std::string type = tensorType({32}, "f32", layout::Blocked{{1}, {32}, {1}, {0}});
  const std::string buffer = "!tile_gpu.buffer<32xf32, #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>>";
  const LoweredKernel k = lowered(kernelModule("%y: !tile.ptr<f32>",
                                               "    %s = tile_gpu.local_alloc : " + buffer +
                                                   "\n    %a = tile_gpu.local_load %s : " + buffer + " to " + type +
                                                   "\n    tile.print \"a\" %a : " + type + "\n",
                                               1),
                                  "sm_80");
  EXPECT_FALSE(k.ok);
  EXPECT_NE(k.errors.find("no place in shared memory"), std::string::npos) << k.errors;
}

} // namespace
} // namespace kiln::test
