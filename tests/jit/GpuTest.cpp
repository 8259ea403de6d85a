// On a GPU: results, graph capture, and the host time of a launch.
#include "kiln/Tensor.h"
#include "runtime/jit/bench/NullDevice.h"
#include "tests/jit/JitFixture.h"

#include <chrono>
#include <dlfcn.h>

using namespace kiln;
using namespace kiln::test;

namespace {

class JitGpuTest : public JitTest {
protected:
  void SetUp() override {
    JitTest::SetUp();
    auto opened = openDevice("cuda:0");
    if (!opened)
      GTEST_SKIP() << opened.status().toString();
    jit.reset();
    device = std::move(*opened);
    JitOptions options = jitOptions();
    options.codeTarget = "sm_80";
    jit = makeJit(options);
    ASSERT_TRUE(jit);
    auto made = device->createStream();
    ASSERT_TRUE(made.ok());
    stream = std::move(*made);
    x = floats(n, 1, 0.5f);
    y = floats(n, -3, 2);
    out = floats(n, -7777, 0);
  }
  void TearDown() override { x.reset(), y.reset(), out.reset(), stream.reset(), jit.reset(); }
  Status launch(JitKernel &kernel, Stream *on) {
    return kernel.launch({(n + 127) / 128}, on, *x, *y, *out, static_cast<std::int32_t>(n));
  }
  void succeeds(JitKernel &kernel) {
    const Status s = launch(kernel, stream.get());
    ASSERT_TRUE(s.ok()) << s.toString();
  }
  void check() {
    std::vector<float> got(n);
    ASSERT_TRUE(stream->synchronize().ok());
    ASSERT_TRUE(out->copyToHost(0, std::as_writable_bytes(std::span(got))).ok());
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_EQ(got[i], (1 + 0.5f * static_cast<float>(i)) + (-3 + 2 * static_cast<float>(i))) << i;
  }
  template <typename F> static F driver(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    F out = library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
    EXPECT_NE(out, nullptr) << name;
    return out;
  }

  static constexpr std::size_t n = 10000;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Buffer> x, y, out;
};

TEST_F(JitGpuTest, LaunchesOnAStream) {
  ASSERT_NO_FATAL_FAILURE(succeeds(*kernelOf(*jit, addSource())));
  check();
}

TEST_F(JitGpuTest, AFirstCallInACaptureIsRefusedAndTheCaptureStaysValid) {
  auto *retain = driver<int (*)(void **, int)>("cuDevicePrimaryCtxRetain");
  auto *setCurrent = driver<int (*)(void *)>("cuCtxSetCurrent");
  auto *begin = driver<int (*)(void *, int)>("cuStreamBeginCapture_v2");
  auto *end = driver<int (*)(void *, void **)>("cuStreamEndCapture");
  auto *instantiate = driver<int (*)(void **, void *, unsigned long long)>("cuGraphInstantiateWithFlags");
  auto *run = driver<int (*)(void *, void *)>("cuGraphLaunch");
  ASSERT_TRUE(retain && setCurrent && begin && end && instantiate && run);
  void *context = nullptr, *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(retain(&context, 0), 0);
  ASSERT_EQ(setCurrent(context), 0);
  JitKernel *add = kernelOf(*jit, addSource());
  for (int mode : {0, 1, 2}) { // global, thread local, relaxed
    SCOPED_TRACE(mode);
    JitKernel *fresh = kernelOf(*jit, addSource("warps 4\nsleep " + std::to_string(mode) + "\n"));
    ASSERT_EQ(begin(stream->native(), mode), 0);
    EXPECT_TRUE(stream->isCapturing());
    EXPECT_EQ(launch(*fresh, stream.get()).code(), StatusCode::NotReady);
    EXPECT_EQ(end(stream->native(), &graph), 0); // not invalidated
    EXPECT_FALSE(stream->isCapturing());
    ASSERT_NO_FATAL_FAILURE(succeeds(*fresh));
    ASSERT_TRUE(stream->synchronize().ok());
  }
  ASSERT_NO_FATAL_FAILURE(succeeds(*add));
  ASSERT_TRUE(stream->synchronize().ok());
  ASSERT_TRUE(out->fill(std::byte{0xee}).ok());
  ASSERT_EQ(begin(stream->native(), 0), 0);
  EXPECT_TRUE(launch(*add, stream.get()).ok());
  ASSERT_EQ(end(stream->native(), &graph), 0);
  ASSERT_EQ(instantiate(&executable, graph, 0), 0);
  ASSERT_EQ(run(executable, stream->native()), 0);
  check();
}

TEST_F(JitGpuTest, ACompileThatBeganBeforeACaptureEndsInIt) {
  auto *retain = driver<int (*)(void **, int)>("cuDevicePrimaryCtxRetain");
  auto *setCurrent = driver<int (*)(void *)>("cuCtxSetCurrent");
  auto *begin = driver<int (*)(void *, int)>("cuStreamBeginCapture_v2");
  auto *end = driver<int (*)(void *, void **)>("cuStreamEndCapture");
  ASSERT_TRUE(retain && setCurrent && begin && end);
  void *context = nullptr, *graph = nullptr;
  ASSERT_EQ(retain(&context, 0), 0);
  ASSERT_EQ(setCurrent(context), 0);
  for (int mode : {0, 1, 2}) { // global, thread local, relaxed
    SCOPED_TRACE(mode);
    JitKernel *fresh = kernelOf(*jit, addSource("warps 4\nsleep " + std::to_string(200 + mode) + "\n"));
    LaunchArguments arguments;
    arguments.add(*x).add(*y).add(*out).add(static_cast<std::int32_t>(n));
    const CompileFuture code = fresh->prepareAsync(arguments.view(), stream.get());
    ASSERT_EQ(begin(stream->native(), mode), 0);
    EXPECT_FALSE(code.isReady());
    EXPECT_TRUE(code.wait().ok()) << code.wait().toString();
    EXPECT_TRUE(launch(*fresh, stream.get()).ok());
    EXPECT_EQ(end(stream->native(), &graph), 0); // not invalidated
    ASSERT_NO_FATAL_FAILURE(succeeds(*fresh));
    check();
  }
}

TEST_F(JitGpuTest, HostTimeOfALaunchOverTheBareOne) {
  JitKernel *add = kernelOf(*jit, addSource());
  ASSERT_NO_FATAL_FAILURE(succeeds(*add));
  LaunchArguments arguments;
  arguments.add(*x).add(*y).add(*out).add(static_cast<std::int32_t>(n));
  auto loaded = add->prepare(arguments.view());
  ASSERT_TRUE(loaded.ok());
  const ArgumentView view = arguments.view();
  LaunchConfig config;
  config.grid = {(n + 127) / 128};
  config.block = {128};
  config.stream = stream.get();
  const auto median = [&](const auto &call) {
    std::vector<double> samples;
    for (unsigned b = 0; b < 100; ++b) {
      const auto start = std::chrono::steady_clock::now();
      for (unsigned i = 0; i < 200; ++i)
        EXPECT_TRUE(call().ok());
      samples.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
                        200);
      EXPECT_TRUE(stream->synchronize().ok());
    }
    std::sort(samples.begin(), samples.end());
    return samples[50];
  };
  const double bare = median([&] { return (*loaded)->function().launch(config, {view.data, view.bytes}); });
  const double jitted = median([&] { return launch(*add, stream.get()); });
  std::printf("bare Kernel::launch %.0f ns, JitKernel::launch %.0f ns\nfirst call: %s\n", bare, jitted,
              (*loaded)->report().toString().c_str());
  EXPECT_LT(jitted - bare, 1000);
}

} // namespace
