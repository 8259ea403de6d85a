// Tensors with their memory: made from host data, given to launches and operations, read back.
#include "kiln/OwnedTensor.h"
#include "tests/jit/JitFixture.h"

#include <numeric>

using namespace kiln;
using namespace kiln::test;

namespace {

class OwnedTensorTest : public JitTest {
protected:
  static void expectMessage(const Status &s, const std::string &part) {
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    EXPECT_NE(s.message().find(part), std::string::npos) << s.message();
    EXPECT_FALSE(s.remedy().empty()) << s.message();
  }
  template <typename T> T take(Result<T> result) {
    EXPECT_TRUE(result.ok()) << result.status().toString();
    return std::move(*result);
  }
  static std::vector<float> counting(std::size_t n, float step = 1) {
    std::vector<float> out(n);
    for (std::size_t i = 0; i < n; ++i)
      out[i] = step * static_cast<float>(i);
    return out;
  }
};

TEST_F(OwnedTensorTest, HoldsWhatItWasMadeFrom) {
  const std::vector<float> values = counting(2 * 3 * 4);
  const OwnedTensor t = take(device->tensor({2, 3, 4}, values));
  EXPECT_EQ(t.dtype(), DType::F32);
  EXPECT_EQ(t.elements(), 24);
  EXPECT_EQ(t.view().rank, 3u);
  EXPECT_EQ(t.view().strides[0], 12);
  EXPECT_EQ(t.view().address, t.buffer()->address());
  EXPECT_EQ(take(t.toHost<float>()), values);
  const std::vector<std::int64_t> shape = {24};
  EXPECT_EQ(take(take(device->tensor(shape, std::span(values))).toHost<float>()), values);
  const std::array<std::uint8_t, 3> bytes = {7, 8, 255};
  EXPECT_EQ(take(take(device->tensor({3}, bytes)).toHost<std::uint8_t>()), std::vector<std::uint8_t>({7, 8, 255}));
}

TEST_F(OwnedTensorTest, FloatsAreRoundedOnceAndComeBackWider) {
  const std::vector<double> values = {1.0, 1.00390625, -3.14159, 1e-3};
  const OwnedTensor t = take(device->tensor({4}, DType::BF16, values));
  EXPECT_EQ(t.buffer()->size(), 8u);
  const std::vector<bfloat16> own = take(t.toHost<bfloat16>());
  const std::vector<float> wide = take(t.toHost<float>());
  const std::vector<double> wider = take(t.toHost<double>());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(own[i].bits(), bfloat16(values[i]).bits());
    EXPECT_EQ(wide[i], static_cast<float>(own[i]));
    EXPECT_EQ(wider[i], wide[i]);
  }
  EXPECT_EQ(own[1].bits(), 0x3f80u); // half way: the even one
  EXPECT_EQ(take(take(device->tensor({4}, own)).toHost<bfloat16>())[2].bits(), own[2].bits());
  EXPECT_EQ(take(take(device->tensor({1}, DType::F8E4M3, std::vector<float>{1000})).toHost<float>())[0], 448);
  EXPECT_EQ(take(take(device->tensor({1}, DType::F32, std::vector<float16>{float16(0.1)})).toHost<float>())[0],
            static_cast<float>(float16(0.1)));
}

TEST_F(OwnedTensorTest, WrongSizesAndTypesAreRefused) {
  const std::vector<float> values = counting(6);
  expectMessage(device->tensor({2, 4}, values, "q").status(), "the tensor 'q': 6 elements for f32[2, 4], which has 8");
  expectMessage(device->tensor({6}, DType::I32, values).status(), "a tensor: elements of f32 for i32[6]");
  expectMessage(device->tensor({-6}, values).status(), "the extent -6");
  expectMessage(device->empty({1LL << 40, 1LL << 40}, DType::F32, "big").status(), "'big' has more than 2^63 bytes");
  expectMessage(device->zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}, DType::F32).status(), "rank 9");
  OwnedTensor t = take(device->tensor({6}, values));
  expectMessage(t.toHost<std::int32_t>().status(), "f32[6] does not become elements of i32");
  expectMessage(t.toHost<float16>().status(), "f32[6] does not become elements of f16");
  expectMessage(t.copyFromHost(counting(5)), "5 elements for f32[6]");
  EXPECT_EQ(take(t.toHost<double>())[5], 5);
}

TEST_F(OwnedTensorTest, MovesAndFreesOnce) {
  OwnedTensor a = take(device->tensor({4}, counting(4)));
  const DeviceAddress address = a.view().address;
  OwnedTensor b = std::move(a);
  EXPECT_EQ(b.view().address, address);
  EXPECT_EQ(a.buffer(), nullptr);
  EXPECT_EQ(a.elements(), 0);
  EXPECT_EQ(a.view().address, 0u);
  b = take(device->zeros({2}, DType::I64));
  EXPECT_EQ(take(b.toHost<std::int64_t>()), std::vector<std::int64_t>(2, 0));
  EXPECT_TRUE(OwnedTensor().toHost<float>().ok());
  EXPECT_EQ(take(device->empty({0, 5}, DType::F32)).elements(), 0);
  EXPECT_EQ(take(device->tensor({}, std::vector<float>{3})).elements(), 1);
}

TEST_F(OwnedTensorTest, LaunchesTakeIt) {
  JitKernel *add = kernelOf(*jit, addSource());
  ASSERT_TRUE(add);
  const std::vector<float> values = counting(100);
  const OwnedTensor x = take(device->tensor({100}, values)), y = take(device->tensor({10, 10}, values));
  OwnedTensor out = take(device->empty({100}, DType::F32));
  ASSERT_TRUE(add->launch({1}, nullptr, x, y, out, 100).ok());
  EXPECT_EQ(take(out.toHost<float>()), counting(100, 2));
  out = take(device->zeros({100}, DType::F32));
  const Status named_ = add->launch({1}, nullptr, named<"x">(x), named<"y">(y), named<"out">(out), named<"n">(100));
  ASSERT_TRUE(named_.ok()) << named_.toString();
  EXPECT_EQ(take(out.toHost<float>()), counting(100, 2));
}

TEST_F(OwnedTensorTest, ATensorOfOtherElementsThanTheKernelsIsRefused) {
  JitKernel *add = kernelOf(*jit, addSource());
  ASSERT_TRUE(add);
  const OwnedTensor x = take(device->tensor({8}, counting(8))),
                    half = take(device->tensor({8}, DType::BF16, counting(8)));
  const OwnedTensor out = take(device->empty({8}, DType::F32));
  for (const Status &s : {add->launch({1}, nullptr, x, half, out, 8),
                          add->launch({1}, nullptr, named<"x">(x), named<"y">(half), named<"out">(out), named<"n">(8)),
                          add->launch({1}, nullptr, x, half.view(), out, 8)}) {
    expectMessage(s, "'y'");
    EXPECT_NE(s.message().find("bf16"), std::string::npos) << s.message();
    EXPECT_NE(s.message().find("f32"), std::string::npos) << s.message();
  }
}

TEST_F(OwnedTensorTest, WhatNobodyWroteIsReported) {
  JitKernel *add = kernelOf(*jit, addSource());
  ASSERT_TRUE(add);
  const OwnedTensor x = take(device->empty({8}, DType::F32)), out = take(device->empty({8}, DType::F32));
  ASSERT_TRUE(add->launch({1}, nullptr, x, x, out, 8).ok());
  const std::vector<Finding> findings = device->takeFindings();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].id, "uninit.global");
}

} // namespace
