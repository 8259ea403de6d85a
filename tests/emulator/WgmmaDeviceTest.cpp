// The products of WgmmaCases.h on a GPU: `kiln-wgmma-tests --device cuda:0`.  By default on the emulator.
#include "tests/emulator/WgmmaCases.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

std::string deviceName = "emulator:sm_90a";

class WgmmaDevice : public testing::Test {
protected:
  void SetUp() override {
    auto opened = kiln::openDevice(deviceName);
    ASSERT_TRUE(opened.ok()) << opened.status().toString();
    device = std::move(*opened);
  }
  std::unique_ptr<kiln::Device> device;
};

TEST_F(WgmmaDevice, EveryTypeMajorAndSwizzle) {
  kiln::test::wgmmaEveryTypeMajorAndSwizzle(*device);
}
TEST_F(WgmmaDevice, EveryWidth) {
  kiln::test::wgmmaEveryWidth(*device);
}
TEST_F(WgmmaDevice, AnyNumbers) {
  kiln::test::wgmmaAnyNumbers(*device);
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (argv[i] == std::string("--device") && i + 1 < argc) {
      deviceName = argv[++i];
    } else {
      std::fprintf(stderr, "usage: kiln-wgmma-tests [--device NAME] [GoogleTest flags]\n");
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
