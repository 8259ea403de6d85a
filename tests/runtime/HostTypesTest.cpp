#include "kiln/HostTypes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

using namespace kiln;

namespace {

template <typename T> class HostTypes : public testing::Test {};
using SmallFloats = testing::Types<float16, bfloat16, float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(HostTypes, SmallFloats);

TYPED_TEST(HostTypes, AreTheirBits) {
  static_assert(std::is_trivially_copyable_v<TypeParam> && std::is_standard_layout_v<TypeParam>);
  EXPECT_EQ(sizeof(TypeParam), dtypeBytes(dtypeOf<TypeParam>));
  const FloatFormat &format = *dtypeFloatFormat(dtypeOf<TypeParam>);
  for (std::uint32_t code = 0; code < 1u << format.bits(); ++code) {
    const auto x = TypeParam::fromBits(static_cast<typename TypeParam::Bits>(code));
    ASSERT_EQ(x.bits(), code);
    const float value = x;
    if (std::isnan(value))
      continue;
    ASSERT_EQ(value, decodeFloat(code, format));
    if (!std::isinf(value) || !format.saturates) {
      ASSERT_EQ(TypeParam(value).bits(), code) << value;
    }
  }
}

/// The neighbours of every finite number and the point half way: nearest, and the even code of two that are as near.
TYPED_TEST(HostTypes, RoundToNearestEven) {
  const FloatFormat &format = *dtypeFloatFormat(dtypeOf<TypeParam>);
  using Bits = typename TypeParam::Bits;
  for (std::uint32_t code = 0; code < format.largestFinite; ++code) {
    const double low = TypeParam::fromBits(static_cast<Bits>(code)),
                 high = TypeParam::fromBits(static_cast<Bits>(code + 1)), middle = (low + high) / 2;
    ASSERT_EQ(TypeParam(middle).bits(), code % 2 ? code + 1 : code) << middle;
    ASSERT_EQ(TypeParam(std::nextafter(middle, low)).bits(), code) << middle;
    ASSERT_EQ(TypeParam(std::nextafter(middle, high)).bits(), code + 1) << middle;
    ASSERT_EQ(static_cast<float>(TypeParam(-middle)), -static_cast<float>(TypeParam(middle)));
  }
}

TEST(HostTypes, OutOfRange) {
  const float large = 1e30f, infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float16(large), infinity);
  EXPECT_EQ(bfloat16(infinity), infinity);
  EXPECT_EQ(float8_e4m3(large), 448.0f);
  EXPECT_EQ(float8_e5m2(-infinity), -57344.0f);
  EXPECT_TRUE(std::isnan(bfloat16(NAN)) && std::isnan(float16(NAN)) && std::isnan(float8_e4m3(NAN)) &&
              std::isnan(float8_e5m2(NAN)));
}

TEST(HostTypes, EveryHostTypeHasAnElementType) {
  static_assert(dtypeOf<float> == DType::F32 && dtypeOf<double> == DType::F64);
  static_assert(dtypeOf<std::int8_t> == DType::I8 && dtypeOf<std::uint8_t> == DType::U8);
  static_assert(dtypeOf<long> == DType::I64 && dtypeOf<long long> == DType::I64 && dtypeOf<unsigned> == DType::U32);
  static_assert(!HostElement<bool> && !HostElement<char> && !HostElement<void *> && !HostElement<std::string>);
  static_assert(std::is_same_v<decltype(bfloat16() + bfloat16()), float>);
}

} // namespace
