// A call through the door that is like the last one but for addresses adds no allocation and no lock to the operation's
// own.
#include "runtime/door/bench/NullCall.h"
#include "tests/jit/HotPathCounts.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::door;
using namespace kiln::kernels;

namespace {

struct DoorHotPath : NullCall, testing::TestWithParam<std::string> {
  void make() {
    JitOptions options;
    options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
    options.diskCache = false;
    ASSERT_EQ(NullCall::make(GetParam(), std::move(options)).toString(), "");
  }
};

TEST_P(DoorHotPath, TheDoorAllocatesNothingAndTakesNoLock) {
  if (!countsAllocations || !countsLocks)
    GTEST_SKIP() << "a sanitizer's own operator new and mutexes cannot be counted";
  ASSERT_NO_FATAL_FAILURE(make());
  ASSERT_EQ(direct().toString(), "");
  ASSERT_EQ(throughDoor().toString(), "");
  struct Cost {
    std::uint64_t allocated = allocations, locked = locks;
    bool good = true;
  };
  const auto cost = [&](auto call) {
    Cost out;
    for (int i = 0; i < 100; ++i)
      out.good &= call();
    out.allocated = allocations - out.allocated, out.locked = locks - out.locked;
    return out;
  };
  const Cost own = cost([&] { return direct().ok(); });
  const Cost door = cost([&] { return throughDoor().kind.empty(); });
  EXPECT_TRUE(own.good && door.good);
  EXPECT_EQ(door.allocated, own.allocated);
  EXPECT_EQ(door.locked, own.locked);
}

TEST_P(DoorHotPath, WhatChangedIsLookedAtAgain) {
  ASSERT_NO_FATAL_FAILURE(make());
  ASSERT_EQ(throughDoor().toString(), "");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const FfiTensor before = tensors[i];
    tensors[i].code = 6, tensors[i].bits = 8; // truth values: no operation takes or gives them
    EXPECT_NE(throughDoor().kind, "") << i;
    EXPECT_NE(throughDoor().kind, "") << i << ", again";
    tensors[i] = before;
    EXPECT_EQ(throughDoor().toString(), "") << i;
    std::vector<std::int64_t> shape(before.shape, before.shape + before.rank);
    if (shape.empty() || !outputs[i])
      continue;
    shape[0] += 1;
    tensors[i].shape = shape.data();
    // The door's own words: the operation would say others.
    for (int time = 0; time < 2; ++time)
      EXPECT_NE(throughDoor().message.find("it must be"), std::string::npos) << i;
    tensors[i] = before;
  }
}

// One of each kind of table: without options, with optional tensors, with options of every kind.
INSTANTIATE_TEST_SUITE_P(Families, DoorHotPath,
                         testing::Values("copy", "add", "reduce_sum", "attention", "attention_decode", "matmul",
                                         "rwkv7_step"),
                         [](const auto &name) { return name.param; });

} // namespace
