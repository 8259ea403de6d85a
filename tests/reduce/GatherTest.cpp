// Gathers along a dimension, and results of atomic operations that other threads use.
#include "tests/reduce/SharedKernel.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using layout::Sizes;

template <typename Index> void gathers(const std::string &indexType, unsigned seed) {
  std::mt19937_64 random(seed);
  for (unsigned round = 0; round < pick(10u, 120u); ++round) {
    const TileCase c = randomCase(random, 10);
    Sizes shape = c.shape;
    shape[c.axis] = static_cast<std::int64_t>(1u << random() % 6);
    const layout::Encoding to = randomLayout(random, shape, c.logWarps);
    if (!layout::TileLayout::create(to, shape))
      continue;
    std::vector<std::uint16_t> x(volume(c.shape));
    std::vector<Index> index(volume(shape));
    for (auto &v : x)
      v = static_cast<std::uint16_t>(random());
    // Some outside: they give some element, and no fault.
    const auto extent = static_cast<Index>(c.shape[c.axis]);
    for (Index &i : index)
      i = random() % 16 == 0 ? static_cast<Index>(random())
                             : static_cast<Index>(random() % static_cast<unsigned>(extent));
    TileKernel kernel(c.logWarps);
    kernel.input("x", c.shape, "i16", c.encoding);
    kernel.input("i", shape, indexType, to);
    kernel.body("    %g = tile.gather %x[%i] {axis = " + std::to_string(c.axis) +
                " : i32} : " + tensorType(c.shape, "i16", c.encoding) + ", " + tensorType(shape, indexType, to) + "\n");
    kernel.output("g", shape, "i16", &to);
    Emulator gpu(c.target);
    Buffer &bx = gpu.upload(x), &bi = gpu.upload(index), &bo = gpu.allocate(index.size() * 2);
    (void)bo.poison(std::byte(0xCD));
    ASSERT_EQ(kernel.run(gpu, c.target, {bx, bi, bo}), "") << "round " << round;
    const auto out = gpu.download<std::uint16_t>(bo);
    std::vector<std::vector<std::size_t>> sources;
    eachLine(c.shape, c.axis, [&](const std::vector<std::size_t> &line) { sources.push_back(line); });
    std::size_t at = 0;
    eachLine(shape, c.axis, [&](const std::vector<std::size_t> &line) {
      for (std::size_t k : line)
        if (index[k] >= 0 && index[k] < extent)
          ASSERT_EQ(out[k], x[sources[at][static_cast<std::size_t>(index[k])]])
              << "round " << round << ", element " << k << "\n"
              << kernel.text();
      ++at;
    });
  }
}

TEST(Gather, ByI32) {
  gathers<std::int32_t>("i32", 21);
}
TEST(Gather, ByI64) {
  gathers<std::int64_t>("i64", 22);
}

/// A tile that every warp holds: one thread acts for each element, all threads see the old value.
TEST(AtomicResults, ReachEveryCopy) {
  const Sizes shape{16};
  const layout::Encoding copies = layout::Blocked{{1}, {32}, {4}, {0}};
  TileKernel kernel(2);
  kernel.input("v", shape, "i32", copies);
  const std::string i32 = tensorType(shape, "i32", copies), ptr = tensorType(shape, "!tile.ptr<i32>", copies);
  kernel.body("    %r = tile.range 0 to 16 : " + i32 + "\n    %b = tile.splat %por : !tile.ptr<i32> to " + ptr +
              "\n    %p = tile.addptr %b, %r : " + ptr + ", " + i32 +
              "\n    %old = tile.atomic_rmw add relaxed gpu %p, %v : " + ptr + "\n");
  // Another layout, so that warps other than the owner's give the elements away.
  const layout::Encoding far = layout::Linear{{}, {{1}, {2}, {0}, {0}, {0}}, {{4}, {8}}, {}, {16}};
  kernel.body("    %far = tile_gpu.convert_layout %old : " + i32 + " to " + tensorType(shape, "i32", far) + "\n");
  kernel.output("far", shape, "i32", &far);
  kernel.body("    %n = arith.constant 5 : i32\n    %one = tile.atomic_rmw add relaxed gpu %por, %n : !tile.ptr<i32>\n"
              "    %all = tile.splat %one : i32 to " +
              tensorType(shape, "i32", far) + "\n");
  kernel.output("all", shape, "i32", &far);
  std::string text = kernel.text();
  // The array that the operations work on is one more argument.
  const std::size_t at = text.find("@k(") + 3;
  text.insert(at, "%por: !tile.ptr<i32>, ");
  std::vector<std::int32_t> memory(16), values(16);
  for (int i = 0; i < 16; ++i) {
    memory[static_cast<std::size_t>(i)] = 100 + i;
    values[static_cast<std::size_t>(i)] = 3 * i + 1;
  }
  for (const char *target : {"sm_80", "sm_90a"}) {
    Emulator gpu(target);
    Buffer &bm = gpu.upload(memory), &bv = gpu.upload(values), &bf = gpu.allocate(64), &ba = gpu.allocate(64);
    (void)bf.poison(std::byte(0xCD));
    (void)ba.poison(std::byte(0xCD));
    const SharedStage stage = throughShared(text, target);
    ASSERT_EQ(stage.errors, "") << text;
    ASSERT_EQ(runKernel(gpu, target, stage.text, 4, {bm, bv, bf, ba}).error, "");
    EXPECT_EQ(gpu.download<std::int32_t>(bf), memory);
    // Thread 0 acts for the scalar after its own element's addition.
    EXPECT_EQ(gpu.download<std::int32_t>(ba), std::vector<std::int32_t>(16, memory[0] + values[0]));
    std::vector<std::int32_t> want(memory);
    for (std::size_t i = 0; i < 16; ++i)
      want[i] += values[i];
    want[0] += 5;
    EXPECT_EQ(gpu.download<std::int32_t>(bm), want);
  }
}

} // namespace
} // namespace kiln::test
