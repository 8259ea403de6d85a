//===- SelfTest.cpp - The bench sees what it must see --------------------------===//
#include "tests/kernels/Bench.h"
#include "tests/kernels/Operand.h"

#include "runtime/io/Numbers.h"

#include <bit>
#include <cmath>
#include <gtest/gtest-spi.h>
#include <random>

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

/// The short ways of `rounded` against the encoding of files.
TEST(RoundedTest, IsTheNearestCode) {
  std::mt19937_64 random(3);
  for (const auto &[type, format] : {std::pair(DType::F16, formatF16), {DType::BF16, formatBf16}}) {
    const auto check = [&, type = type, format = format](double value) {
      const double got = rounded(value, type), wanted = decodeFloat(encodeFloat(value, format), format);
      ASSERT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(wanted)) << value;
    };
    for (std::uint32_t code = 0; code < 0x10000; ++code) {
      const double value = decodeFloat(code, format);
      if (std::isnan(value))
        continue;
      const double up = decodeFloat((code & 0x7fff) == format.largestFinite ? code : code + 1, format);
      for (const double x : {value, (value + up) / 2}) { // numbers of the type, and ties
        if (std::isnan(x) || std::isinf(x))
          continue;
        for (const double near : {x, std::nextafter(x, INFINITY), std::nextafter(x, -INFINITY)})
          check(near);
      }
      check(std::bit_cast<double>(random() & ~(std::uint64_t(1) << 62))); // any number below 2
    }
    for (const double x : {0.0, -0.0, 65519.999, 65520.0, -65520.0, 0x1.FEFFFFp127, 0x1.FFp127, 1e300})
      check(x);
    check(INFINITY);
    EXPECT_TRUE(std::isnan(rounded(NAN, type)));
  }
}

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
