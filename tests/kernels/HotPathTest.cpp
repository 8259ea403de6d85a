// A call of a known class takes no lock and allocates nothing, of every family, with a workspace of the caller's.
#include "kernels/support/bench/HostCalls.h"
#include "tests/jit/HotPathCounts.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::kernels;

namespace {

class HotPath : public testing::TestWithParam<std::string> {};

TEST_P(HotPath, ACallTakesNoLockAndAllocatesNothing) {
  if (!countsAllocations || !countsLocks)
    GTEST_SKIP() << "a sanitizer's own operator new and mutexes cannot be counted";
  const Result<const Family *> family = findFamily(GetParam());
  ASSERT_TRUE(family.ok());
  JitOptions options;
  options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
  options.diskCache = false;
  auto call = HostCall::create(**family, options);
  ASSERT_TRUE(call.ok()) << call.status().toString();
  ASSERT_GT((*call)->launches, 0u);
  const auto run = [&] { return (*call)->run(); };
  const Status first = run();
  ASSERT_TRUE(first.ok()) << first.toString();
  const std::uint64_t allocated = allocations, locked = locks;
  bool good = true;
  for (int n = 0; n < 1000; ++n)
    good &= run().ok();
  const std::uint64_t moreAllocations = allocations - allocated, moreLocks = locks - locked;
  EXPECT_EQ(moreAllocations, 0u);
  EXPECT_EQ(moreLocks, 0u);
  EXPECT_TRUE(good);
  EXPECT_GT(allocated, 0u); // making the call and its first run did, so the counters count
  EXPECT_GT(locked, 0u);
}

std::vector<std::string> all() {
  std::vector<std::string> out;
  for (const Family &family : families())
    out.emplace_back(family.name());
  return out;
}
INSTANTIATE_TEST_SUITE_P(Families, HotPath, testing::ValuesIn(all()), [](const auto &name) { return name.param; });

} // namespace
