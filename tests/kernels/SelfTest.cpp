//===- SelfTest.cpp - The bench sees what it must see --------------------------===//
#include "tests/kernels/Bench.h"

#include <gtest/gtest-spi.h>

namespace kiln::test {
namespace {

using namespace kernels;

class SelfTest : public testing::Test {
protected:
  void SetUp() override {
    on = openedDevice(deviceNames().front());
    ASSERT_TRUE(on);
    c.family = "softmax";
    c.inputs = randomInputs(familyOf("softmax"), {{"x", {DType::F32, {3, 70}}}}, 1);
  }
  static void overwrite(Buffer &out, std::size_t offset) {
    const std::byte value[4] = {std::byte(1), std::byte(2), std::byte(3), std::byte(4)};
    EXPECT_TRUE(out.copyFromHost(offset, value).ok());
  }
  Opened *on = nullptr;
  Case c;
};

TEST_F(SelfTest, GoodAsItIs) {
  runCase(*on, c);
}
TEST_F(SelfTest, SeesAWrongElement) {
  c.tamper = [](Buffer &out) { overwrite(out, 256 * 4 + 4 * 209); };
  EXPECT_NONFATAL_FAILURE(runCase(*on, c), "1 of 210 elements of 'out' are wrong; the worst is element 209");
}
TEST_F(SelfTest, SeesAWriteBeforeTheTensor) {
  c.tamper = [](Buffer &out) { overwrite(out, 256 * 4 - 4); };
  EXPECT_NONFATAL_FAILURE(runCase(*on, c), "written outside the tensor");
}
TEST_F(SelfTest, SeesAWriteBetweenRows) {
  c.places["out"] = Place::Padded;
  c.tamper = [](Buffer &out) { overwrite(out, 256 * 4 + 4 * 70); };
  EXPECT_NONFATAL_FAILURE(runCase(*on, c), "written outside the tensor");
}
TEST_F(SelfTest, SeesOneWrongBitOfACopy) {
  c.family = "copy";
  c.tamper = [](Buffer &out) {
    std::byte b[1];
    EXPECT_TRUE(out.copyToHost(256 * 4, b).ok());
    b[0] ^= std::byte(1);
    EXPECT_TRUE(out.copyFromHost(256 * 4, b).ok());
  };
  EXPECT_NONFATAL_FAILURE(runCase(*on, c), "elements whose bits differ; element 0");
}

} // namespace
} // namespace kiln::test
