// Without libcuda everything answers with a Status that says so.
#include "kiln/Device.h"
#include "runtime/device/cuda/Driver.h"

#include <gtest/gtest.h>

using namespace kiln;

namespace {

TEST(CudaAbsentTest, AMissingLibraryIsNamed) {
  const auto driver = cuda::Driver::open("libkiln-there-is-no-such-driver.so.1");
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), StatusCode::DeviceError);
  EXPECT_EQ(driver.status().message(),
            "no CUDA driver: libkiln-there-is-no-such-driver.so.1: cannot open shared object "
            "file: No such file or directory");
  EXPECT_EQ(driver.status().remedy(), "install the NVIDIA driver, or use the emulator: --device emulator");
}

class WithoutDriver : public testing::Test {
  void SetUp() override {
    if (cuda::Driver::open().ok())
      GTEST_SKIP() << "this machine has a CUDA driver";
  }
};

TEST_F(WithoutDriver, AContextCannotBeAdopted) {
  EXPECT_NE(deviceOf(nullptr).status().message().find("no CUDA driver"), std::string::npos);
}

TEST_F(WithoutDriver, CudaDevicesFailWithTheReason) {
  for (const char *name : {"cuda", "cuda:0", "cuda:7"}) {
    const auto device = openDevice(name);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.status().exitCode(), 4);
    EXPECT_NE(device.status().message().find("no CUDA driver: libcuda.so.1"), std::string::npos);
  }
}

TEST_F(WithoutDriver, TheListSaysWhy) {
  std::vector<std::string> notes;
  const auto devices = listDevices(notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("no CUDA driver"), std::string::npos);
  EXPECT_EQ(devices.size(), allTargets().size());
}

} // namespace
