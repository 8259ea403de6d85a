// One compile a key, whoever asks: threads of one Jit, Jits of one process, processes.
#include "tests/jit/JitFixture.h"

#include <barrier>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

class SingleFlightTest : public JitTest {
protected:
  /// Statuses of `threads` threads that all call at once.
  template <typename Call> std::vector<Status> together(unsigned threads, const Call &call) {
    std::vector<Status> out(threads);
    std::barrier start(static_cast<std::ptrdiff_t>(threads));
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        start.arrive_and_wait();
        out[t] = call(t);
      });
    for (std::thread &t : all)
      t.join();
    return out;
  }
};

TEST_F(SingleFlightTest, SixteenThreadsCompileOnce) {
  JitKernel *add = kernelOf(*jit, addSource("sleep 100\n"));
  auto x = floats(128, 0, 1);
  auto outputs = std::vector<std::unique_ptr<Buffer>>();
  for (unsigned t = 0; t < 16; ++t)
    outputs.push_back(floats(128, -1, 0));
  for (const Status &s : together(16, [&](unsigned t) { return add->launch({1}, nullptr, *x, *x, *outputs[t], 128); }))
    EXPECT_TRUE(s.ok()) << s.toString();
  EXPECT_EQ(compiles(), 1u);
  EXPECT_EQ(jit->counters().loads, 1u);
  for (const auto &out : outputs) {
    float last = 0;
    ASSERT_TRUE(out->copyToHost(4 * 127, std::as_writable_bytes(std::span(&last, 1))).ok());
    EXPECT_EQ(last, 254);
  }
}

TEST_F(SingleFlightTest, DifferentKeysCompileSideBySide) {
  const auto start = std::chrono::steady_clock::now();
  for (const Status &s : together(8, [&](unsigned t) {
         return jit->compile(addSource("sleep 300\nentry add\nwarps " + std::to_string(t + 1) + "\n")).status();
       }))
    EXPECT_TRUE(s.ok()) << s.toString();
  EXPECT_EQ(compiles(), 8u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(8 * 300));
}

TEST_F(SingleFlightTest, TwoJitsOfAProcessCompileOnce) {
  auto other = makeJit();
  for (const Status &s :
       together(8, [&](unsigned t) { return (t % 2 ? jit : other)->compile(addSource("sleep 100\n")).status(); }))
    EXPECT_TRUE(s.ok()) << s.toString();
  EXPECT_EQ(compiles(), 1u);
}

TEST_F(SingleFlightTest, AFailureReachesEveryWaiterAndIsTriedAgain) {
  const std::string marker = folder.path() + "/failed";
  const KernelSource source = addSource("sleep 100\nonce " + marker + "\nfail 3 no\n");
  const std::vector<Status> all = together(16, [&](unsigned) { return jit->compile(source).status(); });
  unsigned failed = 0;
  for (const Status &s : all)
    failed += s.code() == StatusCode::CompileError;
  EXPECT_GE(failed, 1u);
  // Those that came while the first compile ran got its failure; one that came later would have compiled again.
  EXPECT_EQ(compiles(), failed == 16 ? 1u : 2u);
  EXPECT_TRUE(jit->compile(source).ok());
  EXPECT_EQ(compiles(), 2u);
}

} // namespace
