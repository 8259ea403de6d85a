#include "CodegenHarness.h"
#include "tests/support/TestTier.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

using namespace kiln;
using namespace kiln::test;

TEST(Determinism, PtxIsIdenticalOverCompilesOnFourThreads) {
  const int compiles = pick(10, 100);
  for (const char *name : {"add.mlir", "mirror.mlir"})
    for (bool lineInfo : {false, true}) {
      EmitOptions options;
      options.lineInfo = lineInfo;
      const std::string text = sample(name);
      const Emitted first = emit(text, "sm_90a", options);
      ASSERT_TRUE(first.ok) << first.text();
      std::atomic<int> next = 0, different = 0;
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
          while (next++ < compiles)
            different += emit(text, "sm_90a", options).ptx != first.ptx;
        });
      for (std::thread &thread : threads)
        thread.join();
      EXPECT_EQ(different, 0) << name << (lineInfo ? " with lines" : "");
    }
}
