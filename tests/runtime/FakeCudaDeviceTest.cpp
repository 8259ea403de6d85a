#include "tests/runtime/FakeCudaFixture.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace kiln::test {
namespace {

using FakeCudaDeviceTest = FakeCudaTest;

TEST_F(FakeCudaDeviceTest, DescribesTheGpu) {
  open();
  const DeviceInfo &info = device->info();
  EXPECT_EQ(info.name, "cuda:0");
  EXPECT_EQ(info.description, "Fake GPU");
  EXPECT_EQ(info.sm, 90u);
  ASSERT_NE(info.target, nullptr);
  EXPECT_EQ(info.target->name, "sm_90a");
  EXPECT_EQ(info.multiprocessors, 132u);
  EXPECT_EQ(info.memoryBytes, 1ull << 37);
  EXPECT_EQ(info.driver, "CUDA 12.9");
}

TEST_F(FakeCudaDeviceTest, FactsForThoseWhoMeasure) {
  open();
  const auto facts = cuda::factsOf(*device);
  ASSERT_TRUE(facts.ok()) << facts.status().toString();
  EXPECT_EQ(facts->l2Bytes, 50u << 20);
  EXPECT_EQ(facts->pciBusId, "0000:19:00.0");
  fake->l2Bytes = 0;
  EXPECT_EQ(cuda::factsOf(*device).status().message(), "the driver names no L2 of cuda:0");
  fake->failures["cuDeviceGetPCIBusId"] = 1;
  fake->l2Bytes = 1;
  EXPECT_NE(cuda::factsOf(*device).status().message().find("cuDeviceGetPCIBusId on cuda:0"), std::string::npos);
  const auto emulator = openDevice("emulator:sm_90a");
  ASSERT_TRUE(emulator.ok());
  EXPECT_EQ(cuda::factsOf(**emulator).status().message(), "emulator:sm_90a is no GPU");
}

TEST_F(FakeCudaDeviceTest, AGpuThatIsNoTargetHasNone) {
  fake->major = 7;
  fake->minor = 2;
  open();
  EXPECT_EQ(device->info().target, nullptr);
  EXPECT_EQ(device->info().sm, 72u);
}

TEST_F(FakeCudaDeviceTest, ListsGpusAndSaysWhyThereIsNone) {
  auto driver = cuda::Driver::open(library);
  ASSERT_TRUE(driver.ok());
  std::vector<std::string> notes;
  fake->devices = 3;
  EXPECT_EQ(cuda::listCudaDevices(**driver, notes).size(), 3u);
  EXPECT_TRUE(notes.empty());
  fake->devices = 0;
  EXPECT_TRUE(cuda::listCudaDevices(**driver, notes).empty());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "the CUDA driver (CUDA 12.9) lists no GPU");
  fake->failures["cuDeviceGetCount"] = 999;
  EXPECT_TRUE(cuda::listCudaDevices(**driver, notes).empty());
  EXPECT_EQ(notes.back(), "cuDeviceGetCount: CUDA error 999");
}

TEST_F(FakeCudaDeviceTest, OpeningFailsWithTheDriversError) {
  fake->failures["cuInit"] = 100;
  auto driver = cuda::Driver::open(library);
  EXPECT_EQ(driver.status().message(),
            "the CUDA driver does not start (cuInit): CUDA_ERROR_NO_DEVICE (as the driver explains it)");
  fake->failures.clear();
  driver = cuda::Driver::open(library);
  ASSERT_TRUE(driver.ok());
  const Status missing = cuda::createCudaDevice(*driver, 1).status();
  EXPECT_EQ(missing.code(), StatusCode::NotFound);
  EXPECT_EQ(missing.message(), "there is no device cuda:1; the driver lists 1 GPU");
  for (const char *function : {"cuDeviceGet", "cuDeviceGetName", "cuDeviceTotalMem_v2", "cuDeviceGetAttribute",
                               "cuDevicePrimaryCtxRetain", "cuDeviceGetCount"}) {
    fake->failures = {{function, 1}};
    const Status s = cuda::createCudaDevice(*driver, 0).status();
    EXPECT_EQ(s.code(), StatusCode::DeviceError) << function;
    EXPECT_NE(s.message().find("CUDA_ERROR_INVALID_VALUE"), std::string::npos) << s.message();
  }
}

TEST_F(FakeCudaDeviceTest, ALibraryWithoutTheFunctionsIsNamed) {
  const Status s = cuda::Driver::open("libm.so.6").status();
  EXPECT_EQ(s.code(), StatusCode::DeviceError);
  EXPECT_EQ(s.message(), "the CUDA driver libm.so.6 has no function cuInit");
}

TEST_F(FakeCudaDeviceTest, BuffersCopyAndCheckTheirRange) {
  open();
  auto made = device->allocate(16, "x");
  ASSERT_TRUE(made.ok());
  Buffer &b = **made;
  EXPECT_NE(b.address(), 0u);
  ASSERT_TRUE(b.fill(std::byte{0xcd}).ok());
  const std::byte data[4] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  ASSERT_TRUE(b.copyFromHost(4, data).ok());
  std::byte back[16];
  ASSERT_TRUE(b.copyToHost(0, back).ok());
  EXPECT_EQ(back[3], std::byte{0xcd});
  EXPECT_EQ(std::memcmp(back + 4, data, 4), 0);
  EXPECT_EQ(b.copyFromHost(13, data).message(),
            "a copy to buffer 'x' of 4 bytes at offset 13 does not fit its 16 bytes");
  EXPECT_FALSE(b.copyFromHost(~std::size_t{0}, data).ok());
  EXPECT_FALSE(b.copyToHost(17, {}).ok());
  EXPECT_TRUE(b.copyToHost(16, {}).ok());
}

TEST_F(FakeCudaDeviceTest, EmptyBuffersNeedNoDriver) {
  open();
  fake->failures["cuMemAlloc_v2"] = 1;
  auto made = device->allocate(0);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->address(), 0u);
  EXPECT_TRUE((*made)->fill(std::byte{0}).ok());
  EXPECT_TRUE((*made)->copyFromHost(0, {}).ok());
}

TEST_F(FakeCudaDeviceTest, MemoryFailuresSayWhatWasDone) {
  open();
  const Status large = device->allocate(1ull << 40, "k cache").status();
  EXPECT_EQ(large.code(), StatusCode::OutOfMemory);
  EXPECT_EQ(large.message(), "allocating buffer 'k cache' of 1099511627776 bytes (cuMemAlloc) on cuda:0: "
                             "CUDA_ERROR_OUT_OF_MEMORY (as the driver explains it)");
  auto b = device->allocate(8);
  ASSERT_TRUE(b.ok());
  std::byte data[8] = {};
  fake->failures = {{"cuMemcpyHtoD_v2", 1}};
  EXPECT_NE((*b)->copyFromHost(0, data).message().find("copying to buffer, 8 bytes (cuMemcpyHtoD)"), std::string::npos);
  fake->failures = {{"cuStreamSynchronize", 1}};
  EXPECT_FALSE((*b)->copyFromHost(0, data).ok());
  EXPECT_FALSE((*b)->fill(std::byte{0}).ok());
  fake->failures = {{"cuMemcpyDtoH_v2", 1}};
  EXPECT_FALSE((*b)->copyToHost(0, data).ok());
  fake->failures = {{"cuMemsetD8_v2", 1}};
  EXPECT_FALSE((*b)->fill(std::byte{0}).ok());
  fake->failures = {{"cuCtxSetCurrent", 1}};
  EXPECT_NE(device->allocate(8).status().message().find("making the context current"), std::string::npos);
  fake->failures.clear();
}

TEST_F(FakeCudaDeviceTest, ABufferIsCopiedOnTheDevice) {
  open();
  auto from = device->allocate(8, "from"), to = device->allocate(4, "to");
  ASSERT_TRUE(from.ok() && to.ok());
  const std::byte data[8] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::byte back[4] = {};
  ASSERT_TRUE((*from)->copyFromHost(0, data).ok());
  ASSERT_TRUE((*to)->copyFrom(**from).ok());
  ASSERT_TRUE((*to)->copyToHost(0, back).ok());
  EXPECT_TRUE(std::equal(back, back + 4, data));
  EXPECT_NE((*from)->copyFrom(**to).message().find("the source has 4 bytes"), std::string::npos);
  fake->failures = {{"cuMemcpyDtoDAsync_v2", 1}};
  EXPECT_NE((*to)->copyFrom(**from).message().find("cuMemcpyDtoDAsync"), std::string::npos);
  fake->failures.clear();
}

TEST_F(FakeCudaDeviceTest, TheCallersContextComesBack) {
  open();
  auto set = reinterpret_cast<int (*)(void *)>(dlsym(dlopen(library, RTLD_NOW), "cuCtxSetCurrent"));
  auto get = reinterpret_cast<int (*)(void **)>(dlsym(dlopen(library, RTLD_NOW), "cuCtxGetCurrent"));
  char foreign;
  set(&foreign);
  auto b = device->allocate(8);
  ASSERT_TRUE(b.ok());
  void *now = nullptr;
  get(&now);
  EXPECT_EQ(now, &foreign);
  std::thread([&] { EXPECT_TRUE((*b)->fill(std::byte{1}).ok()); }).join(); // a thread with no context
  set(nullptr);
}

TEST_F(FakeCudaDeviceTest, StreamsAndEvents) {
  open();
  EXPECT_EQ(device->defaultStream().native(), nullptr);
  EXPECT_TRUE(device->defaultStream().synchronize().ok());
  auto stream = device->createStream();
  ASSERT_TRUE(stream.ok());
  EXPECT_NE((*stream)->native(), nullptr);
  auto start = device->createEvent(), end = device->createEvent();
  ASSERT_TRUE(start.ok() && end.ok());
  ASSERT_TRUE((*start)->record(**stream).ok());
  ASSERT_TRUE((*end)->record(**stream).ok());
  ASSERT_TRUE((*end)->synchronize().ok());
  auto time = (*end)->millisecondsSince(**start);
  ASSERT_TRUE(time.ok());
  EXPECT_EQ(*time, 1.5);
  fake->failures = {{"cuEventElapsedTime", 600}};
  EXPECT_EQ((*end)->millisecondsSince(**start).status().message(), "an event has not completed yet");
  for (const char *function :
       {"cuStreamCreate", "cuEventCreate", "cuStreamSynchronize", "cuEventRecord", "cuEventSynchronize"}) {
    fake->failures = {{function, 1}};
    const Status s = std::string(function) == "cuStreamCreate"        ? device->createStream().status()
                     : std::string(function) == "cuEventCreate"       ? device->createEvent().status()
                     : std::string(function) == "cuStreamSynchronize" ? (*stream)->synchronize()
                     : std::string(function) == "cuEventRecord"       ? (*start)->record(**stream)
                                                                      : (*start)->synchronize();
    EXPECT_NE(s.message().find(function), std::string::npos) << s.message();
  }
  fake->failures.clear();
}

TEST_F(FakeCudaDeviceTest, AnEventOfAnotherDeviceIsRefused) {
  open();
  auto driver = cuda::Driver::open(library);
  auto other = cuda::createCudaDevice(*driver, 0);
  auto a = device->createEvent(), b = (*other)->createEvent();
  EXPECT_FALSE((*a)->millisecondsSince(**b).ok());
}

TEST_F(FakeCudaDeviceTest, AStreamSaysWhetherItCaptures) {
  open();
  auto a = device->createStream(), b = device->createStream();
  EXPECT_NE((*a)->id(), (*b)->id());
  EXPECT_FALSE((*a)->isCapturing());
  for (int status : {1, 2}) { // active, invalidated
    fake->captureStatus = status;
    EXPECT_TRUE((*a)->isCapturing());
  }
  fake->captureStatus = 0;
  fake->failures = {{"cuStreamIsCapturing", 906}}; // the default stream while another one captures
  EXPECT_TRUE(device->defaultStream().isCapturing());
  fake->failures = {{"cuStreamIsCapturing", 1}};
  EXPECT_FALSE((*a)->isCapturing());
  fake->failures.clear();
}

TEST_F(FakeCudaDeviceTest, TensorMapsAreTheDrivers) {
  open();
  TensorMapRecipe r;
  r.type = TensorMapType::Bf16;
  r.rank = 2;
  r.address = 0x5000;
  r.dims = {64, 48};
  r.strides = {144};
  r.box = {32, 8};
  r.elementStrides[1] = 2;
  r.swizzle = TensorMapSwizzle::B64;
  r.promotion = TensorMapPromotion::B256;
  r.fill = TensorMapFill::Nan;
  auto map = device->encodeTensorMap(r);
  ASSERT_TRUE(map.ok()) << map.status().toString();
  std::uint64_t words[16];
  std::memcpy(words, map->bytes.data(), sizeof words);
  EXPECT_EQ(words[0], 0x5000u);
  EXPECT_EQ(words[1], 9u | 2u << 16 | 3u << 20 | 1u << 24); // cuda.h's numbers
  EXPECT_EQ(words[2], 2u);
  EXPECT_EQ(words[3], 64u);
  EXPECT_EQ(words[4], 144u);
  EXPECT_EQ(words[5], std::uint64_t(1) << 32 | 32);
  EXPECT_EQ(words[6], 48u);
  EXPECT_EQ(words[8], std::uint64_t(2) << 32 | 8);

  fake->failures["cuTensorMapEncodeTiled"] = 1;
  auto refused = device->encodeTensorMap(r);
  ASSERT_FALSE(refused.ok());
  for (const char *text : {"cuTensorMapEncodeTiled", "CUDA_ERROR_INVALID_VALUE", "bf16", "64B"})
    EXPECT_NE(refused.status().toString().find(text), std::string::npos) << refused.status().toString();

  // Rules are checked before the driver is asked.
  fake->calls.clear();
  r.box[0] = 12;
  EXPECT_EQ(device->encodeTensorMap(r).status().code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(fake->calls.empty());
}

TEST_F(FakeCudaDeviceTest, OldGpusHaveNoTensorMaps) {
  fake->major = 8;
  open();
  TensorMapRecipe r;
  r.dims[0] = 64;
  r.box[0] = 32;
  EXPECT_EQ(device->encodeTensorMap(r).status().code(), StatusCode::Unsupported);
}

} // namespace
} // namespace kiln::test
