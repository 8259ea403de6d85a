// A launch of a known class allocates nothing.
#include "tests/jit/HotPathCounts.h"
#include "tests/jit/JitFixture.h"

#include "kiln/Tensor.h"
#include "runtime/jit/VariantTable.h"

#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

class HotPathTest : public NullJitTest {
protected:
  void SetUp() override {
    NullJitTest::SetUp();
    add = kernelOf(*nullJit, addSource());
    ASSERT_TRUE(add);
    tensor.address = x.address();
  }
  /// 1,000 launches after the first, which may.
  template <typename Launch> void expectNoAllocation(Launch launch) {
    ASSERT_TRUE(launch(1));
    const std::uint64_t before = allocations;
    bool ok = true;
    for (int n = 0; n < 1000; ++n)
      ok &= launch(n);
    EXPECT_EQ(allocations, before);
    EXPECT_TRUE(ok);
  }
  JitKernel *add = nullptr;
  NullBuffer x{256}, y{256}, out{256};
  Tensor tensor;
};

TEST_F(HotPathTest, ALaunchAllocatesNothing) {
  if (!countsAllocations)
    GTEST_SKIP() << "ThreadSanitizer's operator new cannot be counted";
  expectNoAllocation([&](int n) {
    return add->launch({1}, nullptr, tensor, y, out, n).ok() &&
           add->launch({1}, nullptr, x.address() + 4, y, out, n).ok();
  });
  const std::uint64_t before = allocations;
  ASSERT_FALSE(add->launch({1}, nullptr, x).ok()); // the counter counts: a message is made
  EXPECT_GT(allocations, before);
}

TEST_F(HotPathTest, ALaunchByNameAllocatesNothing) {
  if (!countsAllocations)
    GTEST_SKIP() << "ThreadSanitizer's operator new cannot be counted";
  expectNoAllocation([&](int n) {
    return add->launch({1}, nullptr, named<"n">(n), named<"out">(out), named<"x">(tensor), named<"y">(y)).ok();
  });
}

/// Maps of tensors that were seen before are reused: four here, and two maps of each.
TEST_F(HotPathTest, ALaunchWithTensorMapsAllocatesAndLocksNothing) {
  if (!countsAllocations)
    GTEST_SKIP() << "ThreadSanitizer's operator new cannot be counted";
  const auto map = [](unsigned offset, unsigned address) {
    return R"({"kind": "tensor_map", "offset": )" + std::to_string(offset) +
           R"(, "bytes": 128, "element": "f32", "address": )" + std::to_string(address) +
           R"(, "extents": [["*", {"argument": 3}, 2], 4], "strides": [64], "box": [16, 4], "swizzle": "none", )" +
           R"("interleave": "none", "promotion": "none", "fill": "zeros"})";
  };
  JitKernel *mapped = kernelOf(*nullJit, addSource("field hidden = [" + map(64, 0) + ", " + map(192, 2) + "]\n"));
  const auto launch = [&](int n) { return mapped->launch({1}, nullptr, tensor, y, out, 1 + n % 4).ok(); };
  for (int n = 0; n < 4; ++n)
    ASSERT_TRUE(launch(n));
  const std::uint64_t before = locks;
  expectNoAllocation(launch);
  EXPECT_EQ(locks, before);
  EXPECT_EQ(null.tensorMaps, 8u);
}

/// No more does one that maps cannot be made for, where passes made them: the code without them is known.
TEST_F(HotPathTest, ALaunchWhoseMapsCannotBeMadeAllocatesAndLocksNothing) {
  if (!countsAllocations)
    GTEST_SKIP() << "ThreadSanitizer's operator new cannot be counted";
  JitKernel *mapped = kernelOf(
      *nullJit, addSource(R"(mapped hidden = [{"kind": "tensor_map", "offset": 64, "bytes": 128, "element": "f32", )"
                          R"("address": 0, "extents": [{"argument": 3}, 4], "strides": [64], "box": [16, 4], )"
                          R"("swizzle": "none", "interleave": "none", "promotion": "none", "fill": "zeros"}])"
                          "\n"));
  const auto launch = [&](int n) { return mapped->launch({1}, nullptr, tensor, y, out, -(n % 4)).ok(); };
  ASSERT_TRUE(launch(0));
  const std::uint64_t before = locks;
  expectNoAllocation(launch);
  EXPECT_EQ(locks, before);
  EXPECT_EQ(null.tensorMaps, 0u);
  EXPECT_EQ(nullJit->counters().compiles, 2u);
}

/// Readers go on while variants are added; each finds its own function or none.
TEST_F(HotPathTest, ReadersAndAWriterShareTheTable) {
  VariantTable table;
  constexpr std::uint64_t n = 4000;
  std::vector<LoadedKernel> kernels(n);
  const auto keyOf = [](std::uint64_t i) {
    ClassKey key;
    key.words[0] = i % 7;
    key.words[1] = i;
    return key;
  };
  std::atomic<bool> stop{false}, wrong{false};
  std::atomic<std::uint64_t> inserted{0};
  std::vector<std::thread> readers;
  for (unsigned r = 0; r < 3; ++r)
    readers.emplace_back([&, r] {
      std::uint64_t at = r;
      while (!stop) {
        const std::uint64_t known = inserted.load(std::memory_order_acquire);
        at = at * 6364136223846793005u + 1442695040888963407u;
        const std::uint64_t i = (at >> 33) % n;
        const LoadedKernel *found = table.find(keyOf(i));
        if ((found && found != &kernels[i]) || (i < known && !found))
          wrong = true;
      }
    });
  for (std::uint64_t i = 0; i < n; ++i) {
    table.insert(keyOf(i), &kernels[i]);
    inserted.store(i + 1, std::memory_order_release);
  }
  stop = true;
  for (std::thread &t : readers)
    t.join();
  EXPECT_FALSE(wrong);
  for (std::uint64_t i = 0; i < n; ++i)
    ASSERT_EQ(table.find(keyOf(i)), &kernels[i]);
  EXPECT_EQ(table.find(keyOf(n)), nullptr);
}

} // namespace
