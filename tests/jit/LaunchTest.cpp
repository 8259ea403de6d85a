// What a launch logs: KILN_LOG=launch=debug and KILN_LAUNCH_BLOCKING; and what it passes to the device.
#include "kiln/Tensor.h"
#include "tests/jit/JitFixture.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class LaunchTest : public JitTest {
protected:
  Status launch(JitOptions options, const KernelSource &source = addSource()) {
    options.log = [this](std::string_view line) { lines.emplace_back(line); };
    auto made = Jit::create(null, options);
    if (!made)
      return made.status();
    nullJit = std::move(*made);
    return kernelOf(*nullJit, source)
        ->launch({7, 2}, nullptr, std::uint64_t(256), std::uint64_t(260), std::uint64_t(512), 5);
  }
  NullDevice null;
  std::unique_ptr<Jit> nullJit;
  std::vector<std::string> lines;
};

TEST_F(LaunchTest, TheDeviceGetsPackedArgumentsBlockAndSharedMemory) {
  ASSERT_TRUE(launch(jitOptions(), addSource("warps 8\nbytes 3000\n")).ok());
  auto loaded =
      nullJit->compile(addSource("warps 8\nbytes 3000\n"),
                       std::vector<ArgumentFact>{ArgumentFact::divisible(16), {}, ArgumentFact::divisible(16), {}});
  ASSERT_TRUE(loaded.ok());
  auto &kernel = dynamic_cast<NullKernel &>((*loaded)->function());
  EXPECT_EQ(kernel.launches, 1u);
  EXPECT_EQ(kernel.last.grid, (Dim3{7, 2, 1}));
  EXPECT_EQ(kernel.last.block, (Dim3{256, 1, 1}));
  EXPECT_EQ(kernel.last.dynamicSharedBytes, 3000u);
  struct {
    std::uint64_t x, y, out;
    std::int32_t n;
  } expected{256, 260, 512, 5};
  EXPECT_EQ(std::memcmp(kernel.lastArguments, &expected, 28), 0);
}

TEST_F(LaunchTest, TensorsAndStreamsOfAnotherKindAreRefused) {
  auto x = floats(128, 0, 1), y = floats(128, 0, 1), out = floats(128, 0, 0);
  JitKernel *add = kernelOf(*jit, addSource());
  const auto tensorOf = [&](const Buffer &buffer, DType type) { return *Tensor::dense(*device, buffer, type, {64}); };
  const Tensor good = tensorOf(*x, DType::F32), half = tensorOf(*x, DType::BF16);
  EXPECT_TRUE(add->launch({1}, nullptr, good, *y, *out, 64).ok());
  const Status type = add->launch({1}, nullptr, half, *y, *out, 64);
  EXPECT_EQ(type.code(), StatusCode::InvalidArgument);
  EXPECT_NE(type.message().find("kernel 'add': argument 0 'x' is a pointer to f32, a tensor of bf16 was given"),
            std::string::npos)
      << type.message();
  auto other = openDevice("emulator:sm_80");
  auto own = device->createStream(), foreign = (*other)->createStream();
  EXPECT_TRUE(add->launch({1}, own->get(), good, *y, *out, 64).ok());
  for (Stream *stream : {foreign->get(), &(*other)->defaultStream()}) {
    const Status s = add->launch({1}, stream, good, *y, *out, 64);
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    EXPECT_NE(s.message().find("the stream belongs to another device"), std::string::npos) << s.message();
    EXPECT_FALSE(s.remedy().empty());
  }
}

TEST_F(LaunchTest, LaunchLogNamesVariantAndValues) {
  JitOptions options = jitOptions();
  options.knobs.log = "launch=debug";
  ASSERT_TRUE(launch(options).ok());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            "kiln: launch: add [x/16 out/16] grid (7, 2, 1) block 128 shared 0 x=0x100 y=0x104 out=0x200 n=5");
}

TEST_F(LaunchTest, CacheLogNamesMissesAndHits) {
  JitOptions options = jitOptions();
  options.knobs.log = "cache=info";
  ASSERT_TRUE(launch(options).ok());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "kiln: cache: add [x/16 out/16] miss: no entry of this key");
  lines.clear();
  ASSERT_TRUE(launch(options).ok());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "kiln: cache: add [x/16 out/16] hit");
}

TEST_F(LaunchTest, NothingIsLoggedUnasked) {
  ASSERT_TRUE(launch(jitOptions()).ok());
  EXPECT_TRUE(lines.empty());
  JitOptions options = jitOptions();
  options.knobs.log = "debug,launch=off";
  ASSERT_TRUE(launch(options).ok());
  for (const std::string &line : lines)
    EXPECT_EQ(line.find("launch:"), std::string::npos);
}

TEST_F(LaunchTest, WrongLogSettingsAreRefused) {
  JitOptions options = jitOptions();
  options.knobs.log = "launch=loud";
  EXPECT_NE(launch(options).message().find("'loud' is no level"), std::string::npos);
  options.knobs.log = "lunch=debug";
  EXPECT_NE(launch(options).message().find("'lunch' is no topic"), std::string::npos);
}

TEST_F(LaunchTest, BlockingWaitsAndNamesTheKernelThatFaulted) {
  JitOptions options = jitOptions();
  ASSERT_TRUE(launch(options).ok());
  EXPECT_EQ(null.stream.synchronized, 0u);
  options.knobs.launchBlocking = true;
  ASSERT_TRUE(launch(options).ok());
  EXPECT_EQ(null.stream.synchronized, 1u);
  null.stream.failure = Status(StatusCode::DeviceError, "an illegal address");
  const Status s = launch(options);
  EXPECT_EQ(s.code(), StatusCode::DeviceError);
  EXPECT_EQ(s.message(), "kernel 'add' [x/16 out/16] failed (KILN_LAUNCH_BLOCKING): an illegal address");
}

TEST_F(LaunchTest, BlockingLeavesACaptureAlone) {
  JitOptions options = jitOptions();
  options.knobs.launchBlocking = true;
  ASSERT_TRUE(launch(options).ok());
  null.stream.capturing = true;
  ASSERT_TRUE(kernelOf(*nullJit, addSource())
                  ->launch({1}, nullptr, std::uint64_t(256), std::uint64_t(260), std::uint64_t(512), 5)
                  .ok());
  EXPECT_EQ(null.stream.synchronized, 1u);
}

TEST_F(LaunchTest, AnEmulatorFindingComesThrough) {
  auto x = floats(10, 0, 1);
  const Status s = kernelOf(*jit, addSource())->launch({1}, nullptr, *x, *x, *x, 100); // past the end
  EXPECT_EQ(s.code(), StatusCode::DeviceError) << s.toString();
  EXPECT_NE(s.message().find("oob.global: kernel add"), std::string::npos) << s.message();
}

} // namespace
