// Code made in the background: joined by launches, shared by threads, refused as a launch is, and never left hanging.
#include "kiln/Operation.h"
#include "tests/jit/JitFixture.h"

#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace kiln;
using namespace kiln::test;
using namespace std::chrono_literals;

namespace {

/// The kernel `add` with any number of launches, each compiled by itself.
struct PairArguments {
  Tensor x;
  std::string second; ///< lines of the second kernel's program
};
class Pair : public Operation<PairArguments> {
public:
  explicit Pair(Jit &jit) : Operation(jit) {}
  std::string_view name() const override { return "pair"; }
  Status check(const PairArguments &a) const override { return checkTensor("x", a.x).rank(1).dense().status(); }

protected:
  Status plan(const PairArguments &a, Plan &plan) const override {
    for (const std::string &lines : {std::string("sleep 100\n"), a.second}) {
      KILN_ASSIGN(JitKernel * add, jit().kernel(addSource(lines)));
      KILN_TRY(plan.launch(*add, {1}, named<"x">(a.x), named<"y">(a.x), named<"out">(a.x), named<"n">(1)));
    }
    return {};
  }
};

class FutureTest : public NullJitTest {
protected:
  CompileFuture later(Jit &of, const std::string &lines, std::uint64_t x = 256) {
    const ArgumentPack<std::uint64_t, std::uint64_t, std::uint64_t, int> pack(x, 256, 256, 1);
    return kernelOf(of, addSource(lines))->prepareAsync(pack.view());
  }
  Status launch(Jit &of, const std::string &lines) {
    return kernelOf(of, addSource(lines))
        ->launch({1}, nullptr, std::uint64_t(256), std::uint64_t(256), std::uint64_t(256), 1);
  }
};

TEST_F(FutureTest, ReturnsAtOnceAndALaunchJoins) {
  const auto begin = std::chrono::steady_clock::now();
  const CompileFuture code = later(*nullJit, "sleep 300\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 200ms);
  EXPECT_FALSE(code.isReady());
  EXPECT_FALSE(code.waitFor(1ms));
  EXPECT_FALSE(code.waitFor(-1h));
  EXPECT_TRUE(launch(*nullJit, "sleep 300\n").ok());
  EXPECT_TRUE(code.waitFor(std::chrono::nanoseconds::max()));
  EXPECT_TRUE(code.isReady());
  EXPECT_TRUE(code.wait().ok());
  EXPECT_EQ(compiles(), 1u);
}

TEST_F(FutureTest, KnownCodeIsReadyWithoutAThread) {
  ASSERT_TRUE(launch(*nullJit, "").ok());
  EXPECT_TRUE(later(*nullJit, "").isReady());
  EXPECT_TRUE(CompileFuture().isReady());
  EXPECT_TRUE(CompileFuture().wait().ok());
  EXPECT_TRUE(nullJit->compileAsync(addSource()).wait().ok()); // another class
  EXPECT_TRUE(nullJit->compileAsync(addSource()).isReady());
  EXPECT_EQ(compiles(), 2u);
}

TEST_F(FutureTest, AFailureHasItsMessageAndIsTriedAgain) {
  const std::string lines = "once " + folder.path() + "/failed\nfail 3 no luck\n";
  const CompileFuture code = later(*nullJit, lines), copy = code;
  EXPECT_EQ(code.wait().code(), StatusCode::CompileError);
  EXPECT_NE(copy.wait().message().find("no luck"), std::string::npos) << copy.wait().toString();
  EXPECT_TRUE(later(*nullJit, lines).wait().ok());
}

TEST_F(FutureTest, WrongArgumentsAreRefusedAtOnce) {
  JitKernel *add = kernelOf(*nullJit, addSource());
  const CompileFuture wrong = add->prepareAsync(nullptr, named<"x">(std::uint64_t(256)), named<"z">(5));
  ASSERT_TRUE(wrong.isReady());
  EXPECT_EQ(wrong.wait().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(nullJit->compileAsync(addSource(), std::vector<ArgumentFact>(9)).wait().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(compiles(), 0u);
}

TEST_F(FutureTest, OfManyThreadsOneCompiles) {
  std::vector<std::thread> all;
  std::atomic<unsigned> good = 0;
  for (unsigned t = 0; t < 16; ++t)
    all.emplace_back([&] { good += later(*nullJit, "sleep 100\n").wait().ok(); });
  for (std::thread &t : all)
    t.join();
  EXPECT_EQ(good, 16u);
  EXPECT_EQ(compiles(), 1u);
}

TEST_F(FutureTest, AJitThatGoesLeavesNothingWaiting) {
  std::vector<CompileFuture> all;
  for (unsigned i = 0; i < 40; ++i)
    all.push_back(later(*nullJit, "sleep 100\nwarps 4\nbytes " + std::to_string(i) + "\n"));
  nullJit.reset();
  unsigned done = 0, gone = 0;
  for (const CompileFuture &f : all) {
    ASSERT_TRUE(f.isReady());
    done += f.wait().ok();
    gone += f.wait().code() == StatusCode::NotReady;
  }
  EXPECT_EQ(done + gone, 40u);
  EXPECT_GE(gone, 24u); // at most 16 had begun
  EXPECT_EQ(compiles(), done);
}

TEST_F(FutureTest, AFutureThatIsDroppedIsCompiledAllTheSame) {
  (void)later(*nullJit, "sleep 50\n");
  EXPECT_TRUE(launch(*nullJit, "sleep 50\n").ok());
  EXPECT_EQ(compiles(), 1u);
}

TEST_F(FutureTest, InsideACaptureItIsRefusedAndWhatBeganGoesOn) {
  const CompileFuture before = later(*nullJit, "sleep 100\n");
  null.stream.capturing = true;
  const CompileFuture refused = later(*nullJit, "warps 2\n");
  ASSERT_TRUE(refused.isReady());
  EXPECT_EQ(refused.wait().code(), StatusCode::NotReady);
  EXPECT_EQ(nullJit->compileAsync(addSource()).wait().code(), StatusCode::NotReady);
  EXPECT_TRUE(before.wait().ok()) << before.wait().toString();
  EXPECT_TRUE(launch(*nullJit, "sleep 100\n").ok());
  EXPECT_EQ(compiles(), 1u);
}

TEST_F(FutureTest, AForkedChildIsToldAtOnce) {
  const CompileFuture ready = later(*nullJit, "");
  ASSERT_TRUE(ready.wait().ok());
  const CompileFuture running = later(*nullJit, "sleep 300\n");
  JitKernel *const other = kernelOf(*nullJit, addSource("warps 2\n"));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(10);
    int wrong = !ready.wait().ok();
    wrong += running.isReady() || running.waitFor(1h);
    wrong += running.wait().code() != StatusCode::Unsupported;
    const ArgumentPack<std::uint64_t, std::uint64_t, std::uint64_t, int> pack(256, 256, 256, 1);
    wrong += other->prepareAsync(pack.view()).wait().code() != StatusCode::Unsupported;
    wrong += nullJit->kernel(addSource("warps 4\n")).status().code() != StatusCode::Unsupported;
    nullJit.reset(); // has no threads to wait for
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(running.wait().ok());
}

TEST_F(FutureTest, AnOperationIsReadyWhenAllItsKernelsAre) {
  auto x = floats(1, 0, 0);
  const auto of = [&](const std::string &second) {
    const Tensor t = *Tensor::dense(*device, *x, DType::F32, {1});
    return Pair(*jit).prepareAsync({t, second}); // neither the operation nor the arguments are there any more
  };
  const CompileFuture good = of("sleep 100\nwarps 2\n"), bad = of("fail 3 not this one\n");
  EXPECT_FALSE(good.isReady());
  EXPECT_TRUE(good.wait().ok());
  const Status failed = bad.wait();
  EXPECT_EQ(failed.code(), StatusCode::CompileError);
  EXPECT_NE(failed.message().find("not this one"), std::string::npos) << failed.message();
  EXPECT_EQ(compiles(), 3u);
  EXPECT_EQ(Pair(*jit).prepareAsync({Tensor(), ""}).wait().code(), StatusCode::InvalidArgument);
}

} // namespace
