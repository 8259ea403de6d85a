// Runs on a machine with a GPU; elsewhere every test is skipped with the reason.
#include "kiln/Device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

using namespace kiln;

namespace {

const char *addPtx = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n, .param .f32 a) {
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<6>;
  ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.param.u32 %r1, [n]; ld.param.f32 %f3, [a];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1; @%p1 bra DONE;
  mul.wide.u32 %d3, %r5, 4; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;
  ld.global.f32 %f1, [%d4]; fma.rn.f32 %f2, %f1, %f3, %f1; st.global.f32 [%d5], %f2;
DONE:
  ret;
}
)";

/// Reverses blockDim.x floats through dynamic shared memory of any size.
const char *sharedPtx = R"(
.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 tile[];
.visible .entry last(.param .u64 y, .param .u32 offset) {
  .reg .b32 %r<5>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [y]; ld.param.u32 %r1, [offset];
  mov.u32 %r2, tile; add.u32 %r2, %r2, %r1; mov.u32 %r3, 12345; st.shared.u32 [%r2], %r3;
  ld.shared.u32 %r4, [%r2]; st.global.u32 [%d1], %r4;
  ret;
}
.visible .entry fault(.param .u64 y) {
  .reg .b64 %d<2>; .reg .b32 %r<2>;
  ld.param.u64 %d1, [y]; mov.u32 %r1, 1; st.global.u32 [%d1], %r1;
  ret;
}
)";

class GpuTest : public testing::Test {
protected:
  void SetUp() override {
    auto made = openDevice("cuda:0");
    if (!made)
      GTEST_SKIP() << made.status().toString();
    device = std::move(*made);
  }
  template <typename... T> static std::vector<std::byte> pack(T... values) {
    std::vector<std::byte> out;
    const auto add = [&](const auto &v) {
      while (out.size() % sizeof v)
        out.push_back(std::byte{0});
      const auto *p = reinterpret_cast<const std::byte *>(&v);
      out.insert(out.end(), p, p + sizeof v);
    };
    (add(values), ...);
    return out;
  }
  std::unique_ptr<Device> device;
};

TEST_F(GpuTest, VectorAddOnAStream) {
  const unsigned n = 100003;
  std::vector<float> x(n), y(n);
  std::iota(x.begin(), x.end(), 0.0f);
  auto bx = device->allocate(n * 4, "x"), by = device->allocate(n * 4, "y");
  ASSERT_TRUE(bx.ok() && by.ok());
  ASSERT_TRUE((*bx)->copyFromHost(0, std::as_bytes(std::span(x))).ok());
  ASSERT_TRUE((*by)->fill(std::byte{0xcd}).ok());
  auto module = device->loadPtx(addPtx, "add.ptx");
  ASSERT_TRUE(module.ok()) << module.status().toString();
  auto kernel = (*module)->kernel("add");
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  const KernelInfo &info = (*kernel)->info();
  ASSERT_EQ(info.parameters.size(), 4u);
  EXPECT_EQ(info.parameters[3].offset, 20u);
  EXPECT_EQ(info.parameterBytes, 24u);
  EXPECT_GT(info.registersPerThread, 0u);
  auto stream = device->createStream();
  auto start = device->createEvent(), end = device->createEvent();
  ASSERT_TRUE((*start)->record(**stream).ok());
  const LaunchConfig config{{(n + 127) / 128, 1, 1}, {128, 1, 1}, {0, 0, 0}, 0, stream->get()};
  const Status launched = (*kernel)->launch(config, pack((*bx)->address(), (*by)->address(), n, 2.0f));
  ASSERT_TRUE(launched.ok()) << launched.toString();
  ASSERT_TRUE((*end)->record(**stream).ok());
  ASSERT_TRUE((*stream)->synchronize().ok());
  auto time = (*end)->millisecondsSince(**start);
  ASSERT_TRUE(time.ok()) << time.status().toString();
  EXPECT_GT(*time, 0.0);
  ASSERT_TRUE((*by)->copyToHost(0, std::as_writable_bytes(std::span(y))).ok());
  for (unsigned i = 0; i < n; ++i)
    ASSERT_EQ(y[i], 3.0f * x[i]) << i;
}

TEST_F(GpuTest, SharedMemoryAboveTheDefaultLimit) {
  auto module = device->loadPtx(sharedPtx, "shared.ptx");
  ASSERT_TRUE(module.ok()) << module.status().toString();
  EXPECT_EQ((*module)->kernelNames().size(), 2u);
  auto kernel = (*module)->kernel("last");
  ASSERT_TRUE(kernel.ok());
  auto y = device->allocate(4);
  const std::uint32_t bytes = 60000;
  LaunchConfig config{{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, bytes, nullptr};
  const Status s = (*kernel)->launch(config, pack((*y)->address(), bytes - 4));
  ASSERT_TRUE(s.ok()) << s.toString();
  std::uint32_t value = 0;
  ASSERT_TRUE((*y)->copyToHost(0, std::as_writable_bytes(std::span(&value, 1))).ok());
  EXPECT_EQ(value, 12345u);
  config.dynamicSharedBytes = 1u << 20;
  EXPECT_EQ((*kernel)->launch(config, pack((*y)->address(), 0u)).code(), StatusCode::InvalidArgument);
}

TEST_F(GpuTest, RefusedPtx) {
  const Status syntax =
      device->loadPtx(".version 7.0\n.target sm_75\n.address_size 64\nnonsense here;\n", "bad.ptx").status();
  EXPECT_EQ(syntax.code(), StatusCode::CompileError);
  EXPECT_NE(syntax.message().find("bad.ptx"), std::string::npos) << syntax.message();
  const Status newer =
      device->loadPtx(".version 8.7\n.target sm_120a\n.address_size 64\n.entry k() { ret; }\n", "new.ptx").status();
  if (device->info().sm != 120)
    EXPECT_EQ(newer.code(), StatusCode::CompileError) << newer.message();
  EXPECT_EQ(device->allocate(std::size_t{1} << 50).status().code(), StatusCode::OutOfMemory);
}

// Last: the fault ends the context, so the work happens in a child process.
TEST_F(GpuTest, AFaultNamesTheKernel) {
  device.reset();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        auto own = openDevice("cuda:0");
        auto module = (*own)->loadPtx(sharedPtx, "shared.ptx");
        auto kernel = (*module)->kernel("fault");
        const Status launched =
            (*kernel)->launch({{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0, nullptr}, pack(DeviceAddress{64}));
        const Status s = (*own)->defaultStream().synchronize();
        std::fprintf(stderr, "%s\n", s.message().c_str());
        std::_Exit(launched.ok() && !s.ok() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "after kernel 'fault' was launched: CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(GpuTest, StreamsAndContextsOfSomebodyElse) {
  // Another Device's are somebody else's.
  ASSERT_NE(device->native(), nullptr);
  auto theirs = device->createStream();
  ASSERT_TRUE(theirs.ok());
  auto adopted = deviceOf(device->native());
  ASSERT_TRUE(adopted.ok()) << adopted.status().toString();
  EXPECT_EQ((*adopted)->info().name, device->info().name);
  EXPECT_EQ((*adopted)->native(), device->native());
  auto stream = (*adopted)->streamOf((*theirs)->native());
  ASSERT_TRUE(stream.ok()) << stream.status().toString();
  EXPECT_TRUE((*adopted)->streamOf(nullptr).ok());

  const std::uint32_t n = 1000;
  auto x = (*adopted)->allocate(4 * n), y = (*adopted)->allocate(4 * n);
  auto memory = (*adopted)->allocateHost(8 * n);
  auto module = (*adopted)->loadPtx(addPtx);
  ASSERT_TRUE(x.ok() && y.ok() && memory.ok() && module.ok());
  const std::span<std::byte> in = (*memory)->bytes().first(4 * n), out = (*memory)->bytes().last(4 * n);
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  std::memcpy(in.data(), values.data(), in.size());
  // All of it in the stream's order, and no wait before the end.
  ASSERT_TRUE((*x)->copyFromHostAsync(0, in, **stream).ok());
  LaunchConfig config{{8}, {128}};
  config.stream = stream->get();
  ASSERT_TRUE((*(*module)->kernel("add"))->launch(config, pack((*x)->address(), (*y)->address(), n, 2.0f)).ok());
  ASSERT_TRUE((*y)->copyToHostAsync(0, out, **stream).ok());
  ASSERT_TRUE((*theirs)->synchronize().ok());
  std::memcpy(values.data(), out.data(), out.size());
  for (std::uint32_t i = 0; i < n; ++i)
    ASSERT_EQ(values[i], 3.0f * static_cast<float>(i + 1)) << i;
  stream->reset();
  EXPECT_TRUE((*theirs)->synchronize().ok()); // it was not ours to destroy
  module->reset();
  x->reset();
  y->reset();
  memory->reset();
  adopted->reset();
  EXPECT_TRUE((*theirs)->synchronize().ok());
  EXPECT_TRUE(device->allocate(16).ok());
}

} // namespace
