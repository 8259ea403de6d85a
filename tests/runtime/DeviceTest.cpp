#include "kiln/Device.h"

#include <gtest/gtest.h>

#include <set>

using namespace kiln;

namespace {

TEST(DeviceTest, UnknownNamesListWhatExists) {
  for (const char *name : {"gpu", "CUDA", "cuda0", "emulator/sm_90a", "sm_99"}) {
    const auto device = openDevice(name);
    ASSERT_FALSE(device.ok()) << name;
    EXPECT_EQ(device.status().exitCode(), 2);
    EXPECT_NE(device.status().message().find("unknown device '" + std::string(name) + "'"), std::string::npos);
    EXPECT_NE(device.status().remedy().find("emulator:TARGET with TARGET one of sm_75"), std::string::npos);
  }
  EXPECT_EQ(openDevice("sm_80").status().remedy(), "to emulate it use emulator:sm_80");
}

TEST(DeviceTest, BadNumbersAndTargets) {
  for (const char *name : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999"})
    EXPECT_NE(openDevice(name).status().message().find("is not the number of a GPU"), std::string::npos) << name;
  const Status s = openDevice("emulator:sm_90b").status();
  EXPECT_EQ(s.code(), StatusCode::NotFound);
  EXPECT_NE(s.message().find("unknown target 'sm_90b'; known targets: sm_75"), std::string::npos);
  EXPECT_NE(s.remedy().find("sm_90"), std::string::npos);
}

TEST(DeviceTest, EveryTargetIsListedOnce) {
  std::vector<std::string> notes;
  std::set<std::string> names;
  for (const DeviceInfo &d : listDevices(notes))
    EXPECT_TRUE(names.insert(d.name).second) << d.name;
  for (const Target &t : allTargets())
    EXPECT_TRUE(names.count("emulator:" + std::string(t.name)));
}

} // namespace
