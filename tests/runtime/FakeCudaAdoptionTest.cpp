// Streams and contexts of somebody else, and copies that do not wait.
#include "tests/runtime/FakeCudaFixture.h"

#include <algorithm>

namespace kiln::test {
namespace {

class FakeCudaAdoption : public FakeCudaTest {
protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    auto get = reinterpret_cast<void *(*)()>(dlsym(dlopen(library, RTLD_NOW), "fakeForeignContext"));
    ASSERT_NE(get, nullptr);
    foreign = static_cast<cuda::ContextHandle>(get());
  }
  void openOver(cuda::ContextHandle context) {
    auto driver = cuda::Driver::open(library);
    ASSERT_TRUE(driver.ok());
    auto made = cuda::createCudaDevice(*driver, context);
    ASSERT_TRUE(made.ok()) << made.status().toString();
    device = std::move(*made);
  }
  bool called(const std::string &name) const {
    return std::find(fake->calls.begin(), fake->calls.end(), name) != fake->calls.end();
  }
  cuda::ContextHandle current() {
    auto driver = cuda::Driver::open(library);
    cuda::ContextHandle context = nullptr;
    EXPECT_EQ((*driver)->ctxGetCurrent(&context), 0);
    return context;
  }
  void makeCurrent(cuda::ContextHandle context) {
    auto driver = cuda::Driver::open(library);
    EXPECT_EQ((*driver)->ctxSetCurrent(context), 0);
  }
  cuda::ContextHandle foreign = nullptr;
};

TEST_F(FakeCudaAdoption, AnAdoptedStreamIsUsedAndNotDestroyed) {
  load();
  char theirs;
  {
    auto stream = device->streamOf(&theirs);
    ASSERT_TRUE(stream.ok()) << stream.status().toString();
    EXPECT_EQ((*stream)->native(), &theirs);
    std::byte arguments[20] = {};
    LaunchConfig config{{1}, {32}};
    config.stream = stream->get();
    ASSERT_TRUE(kernel->launch(config, arguments).ok());
    EXPECT_EQ(fake->launches.back().stream, &theirs);
    ASSERT_TRUE((*stream)->synchronize().ok());
  }
  EXPECT_FALSE(called("cuStreamDestroy_v2"));
}

TEST_F(FakeCudaAdoption, TheDefaultStreamIsNobodys) {
  open();
  fake->failures = {{"cuStreamGetCtx", 1}};
  auto stream = device->streamOf(nullptr);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ((*stream)->native(), nullptr);
}

TEST_F(FakeCudaAdoption, AStreamOfAnotherContextIsRefused) {
  open();
  char theirs;
  fake->streamContext = foreign;
  const Status s = device->streamOf(&theirs).status();
  EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(s.message(), "the given stream belongs to another context than cuda:0 of this Device");
  EXPECT_FALSE(s.remedy().empty());
  fake->failures = {{"cuStreamGetCtx", 1}};
  EXPECT_NE(device->streamOf(&theirs).status().message().find("(cuStreamGetCtx)"), std::string::npos);
}

TEST_F(FakeCudaAdoption, AnAdoptedContextIsUsedAndNotReleased) {
  fake->devices = 2;
  openOver(foreign);
  EXPECT_EQ(device->native(), foreign);
  EXPECT_EQ(device->info().name, "cuda:1"); // the context's GPU
  EXPECT_EQ(current(), nullptr);            // what was current before
  auto buffer = device->allocate(4);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(current(), nullptr);
  buffer->reset();
  device.reset();
  EXPECT_FALSE(called("cuDevicePrimaryCtxRetain"));
  EXPECT_FALSE(called("cuDevicePrimaryCtxRelease_v2"));
}

TEST_F(FakeCudaAdoption, WithoutAContextTheCurrentOneIsTaken) {
  makeCurrent(foreign);
  openOver(nullptr);
  EXPECT_EQ(device->native(), foreign);
  EXPECT_EQ(current(), foreign);
  makeCurrent(nullptr);
  auto driver = cuda::Driver::open(library);
  const Status s = cuda::createCudaDevice(*driver, nullptr).status();
  EXPECT_EQ(s.message(), "the calling thread has no current CUDA context");
  EXPECT_FALSE(s.remedy().empty());
}

TEST_F(FakeCudaAdoption, AdoptingFailsWithTheDriversError) {
  auto driver = cuda::Driver::open(library);
  ASSERT_TRUE(driver.ok());
  for (const char *function : {"cuCtxGetDevice", "cuCtxSetCurrent", "cuDeviceGetCount", "cuDeviceGetName"}) {
    fake->failures = {{function, 1}};
    const Status s = cuda::createCudaDevice(*driver, foreign).status();
    EXPECT_EQ(s.code(), StatusCode::DeviceError) << function;
  }
  fake->failures.clear();
  EXPECT_EQ(current(), nullptr);
}

TEST_F(FakeCudaAdoption, AsyncCopiesGoToTheirStreamAndDoNotWait) {
  open();
  auto stream = device->createStream();
  auto buffer = device->allocate(16, "x");
  auto memory = device->allocateHost(16);
  ASSERT_TRUE(stream.ok() && buffer.ok() && memory.ok());
  const std::span<std::byte> bytes = (*memory)->bytes();
  ASSERT_EQ(bytes.size(), 16u);
  for (std::size_t i = 0; i < 16; ++i)
    bytes[i] = static_cast<std::byte>(i);
  fake->calls.clear();
  ASSERT_TRUE((*buffer)->copyFromHostAsync(4, bytes.first(8), **stream).ok());
  EXPECT_EQ(fake->copyStream, (*stream)->native());
  fake->copyStream = nullptr;
  ASSERT_TRUE((*buffer)->copyToHostAsync(4, bytes.last(8), **stream).ok());
  EXPECT_EQ(fake->copyStream, (*stream)->native());
  EXPECT_EQ(bytes[8], std::byte{0});
  EXPECT_EQ(bytes[15], std::byte{7});
  EXPECT_FALSE(called("cuStreamSynchronize"));
  EXPECT_EQ((*buffer)->copyFromHostAsync(9, bytes.first(8), **stream).message(),
            "a copy to buffer 'x' of 8 bytes at offset 9 does not fit its 16 bytes");
  EXPECT_FALSE((*buffer)->copyToHostAsync(17, bytes.first(0), **stream).ok());
  fake->failures = {{"cuMemcpyHtoDAsync_v2", 1}, {"cuMemcpyDtoHAsync_v2", 1}};
  EXPECT_NE((*buffer)->copyFromHostAsync(0, bytes, **stream).message().find("(cuMemcpyHtoDAsync)"), std::string::npos);
  EXPECT_NE((*buffer)->copyToHostAsync(0, bytes, **stream).message().find("(cuMemcpyDtoHAsync)"), std::string::npos);
}

TEST_F(FakeCudaAdoption, PageLockedMemoryThatIsNotThere) {
  open();
  const Status s = device->allocateHost(1ull << 40).status();
  EXPECT_EQ(s.code(), StatusCode::OutOfMemory);
  EXPECT_NE(s.message().find("page-locked host memory of 1099511627776 bytes"), std::string::npos) << s.message();
  EXPECT_TRUE((*device->allocateHost(0))->bytes().empty());
}

} // namespace
} // namespace kiln::test
