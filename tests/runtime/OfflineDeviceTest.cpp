// A GPU that is not there: says what it stands for, gives addresses, and refuses by name what needs a GPU.
#include "kiln/Device.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

std::unique_ptr<Device> opened(const std::string &name) {
  auto device = openDevice(name);
  EXPECT_TRUE(device.ok()) << device.status().toString();
  return device ? std::move(*device) : nullptr;
}

TEST(OfflineDevice, SaysWhatItStandsFor) {
  const auto device = opened("offline:sm_90a");
  EXPECT_EQ(device->info().name, "offline:sm_90a");
  EXPECT_EQ(device->info().kind, DeviceKind::Cuda);
  EXPECT_EQ(device->info().target->name, "sm_90a");
  EXPECT_EQ(device->info().sm, 90u);
  EXPECT_EQ(device->info().multiprocessors, 132u);
  EXPECT_TRUE(device->info().driver.empty());
  EXPECT_EQ(opened("offline:sm_80:7")->info().multiprocessors, 7u);
  for (const auto &[name, part] : {std::pair("offline:sm_90a:0", "'0' is no number of multiprocessors"),
                                   {"offline:sm_90a:", "'' is no number of multiprocessors"},
                                   {"offline:sm_90a:132x", "'132x' is no number"},
                                   {"offline:sm_90a:99999", "from 1 to 4096"},
                                   {"offline:sm_1", "sm_1"},
                                   {"offline:", "''"}}) {
    const auto refused = openDevice(name);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_NE(refused.status().toString().find(part), std::string::npos) << refused.status().toString();
  }
}

TEST(OfflineDevice, MemoryIsAddressesAlone) {
  const auto device = opened("offline:sm_90a");
  DeviceAddress end = 0;
  for (const std::size_t bytes : {std::size_t(0), std::size_t(1), std::size_t(512), std::size_t(1) << 40}) {
    auto buffer = device->allocate(bytes, "x");
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ((*buffer)->size(), bytes);
    EXPECT_EQ((*buffer)->address() % 512, 0u);
    EXPECT_GE((*buffer)->address(), end); // after all that were there before, and what they hold
    end = (*buffer)->address() + bytes + 1;
    std::byte byte{};
    for (const Status &s :
         {(*buffer)->copyFromHost(0, std::span(&byte, 1)), (*buffer)->copyToHost(0, std::span(&byte, 1)),
          (*buffer)->fill(byte), (*buffer)->poison(byte)})
      EXPECT_NE(s.toString().find("offline:sm_90a compiles and has no memory"), std::string::npos) << s.toString();
  }
}

TEST(OfflineDevice, LoadsAndRunsNothing) {
  const auto device = opened("offline:sm_90a");
  auto module = device->loadCubin({});
  ASSERT_TRUE(module.ok());
  auto kernel = (*module)->kernel("k");
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ((*kernel)->info().name, "k");
  const Status s = (*kernel)->launch({}, {});
  EXPECT_EQ(s.code(), StatusCode::Unsupported);
  EXPECT_NE(s.toString().find("offline:sm_90a compiles and runs nothing (use a device that runs kernels"),
            std::string::npos)
      << s.toString();
  EXPECT_FALSE(device->createEvent().ok());
  EXPECT_FALSE(device->encodeTensorMap({}).ok());
  EXPECT_TRUE(device->createStream().ok());
  EXPECT_TRUE(device->defaultStream().synchronize().ok());
}

} // namespace
} // namespace kiln::test
