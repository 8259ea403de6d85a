#include "kiln/Tensor.h"
#include "runtime/jit/bench/NullDevice.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

using namespace kiln;

namespace {

class TensorTest : public testing::Test {
protected:
  Tensor tensor(DType dtype, std::vector<std::int64_t> shape, std::size_t offset = 0) {
    auto made = Tensor::dense(device, buffer, dtype, shape, offset);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return *made;
  }
  static void expectMessage(const Status &s, const std::string &part) {
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    EXPECT_NE(s.message().find(part), std::string::npos) << s.message();
    EXPECT_FALSE(s.remedy().empty()) << s.message();
  }
  NullDevice device, other;
  NullBuffer buffer{4096};
};

TEST_F(TensorTest, DenseTensorsHaveTheLastDimensionFastest) {
  const Tensor t = tensor(DType::F32, {4, 3, 5}, 16);
  EXPECT_EQ(t.strides[0], 15);
  EXPECT_EQ(t.strides[1], 5);
  EXPECT_EQ(t.strides[2], 1);
  EXPECT_EQ(t.address, buffer.address() + 16);
  EXPECT_EQ(t.elements(), 60);
  EXPECT_TRUE(t.isDense());
  EXPECT_FALSE(t.transposed(0, 2).isDense());
  EXPECT_TRUE(tensor(DType::F32, {}).isDense());
}

TEST_F(TensorTest, WindowsOutsideTheirBufferAreRefused) {
  const auto at = [&](std::vector<std::int64_t> shape, std::vector<std::int64_t> strides, std::size_t offset) {
    return Tensor::strided(device, buffer, DType::F32, shape, strides, offset).status();
  };
  EXPECT_TRUE(at({1024}, {1}, 0).ok());
  EXPECT_TRUE(at({1024}, {-1}, 4092).ok());
  EXPECT_TRUE(at({0, 5}, {7, 1 << 20}, 4096).ok());
  expectMessage(at({1025}, {1}, 0), "takes bytes 0 to 4100 of a buffer of 4096");
  expectMessage(at({1024}, {1}, 1), "takes bytes 1 to 4097");
  expectMessage(at({1024}, {-1}, 4088), "takes bytes -4 to 4092");
  expectMessage(at({-1}, {1}, 0), "extent -1 of dimension 0");
  expectMessage(at({1LL << 62, 2}, {2, 1}, 0), "more than 2^63 bytes");
  expectMessage(at({2}, {INT64_MIN}, 0), "more than 2^63 bytes");
  expectMessage(at({1}, {}, 0), "1 extents and 0 strides");
  expectMessage(at(std::vector<std::int64_t>(9, 1), std::vector<std::int64_t>(9, 1), 0), "rank 9: the limit is 8");
  expectMessage(Tensor::dense(device, buffer, DType::F32, {1LL << 40, 1LL << 40}).status(), "more than 2^63 elements");
}

TEST_F(TensorTest, EveryRuleNamesArgumentValueLimitAndRemedy) {
  const Tensor t = tensor(DType::F32, {4, 6});
  EXPECT_TRUE(checkTensor("x", t)
                  .on(device)
                  .dtype({DType::F16, DType::F32})
                  .rank(2)
                  .shape({4, 6})
                  .stride(1, 1)
                  .aligned(16)
                  .dense()
                  .writable()
                  .status()
                  .ok());
  expectMessage(checkTensor("x", t).on(other).status(), "argument 'x' is on null:0, the operation runs on null:0");
  expectMessage(checkTensor("x", t).dtype({DType::F16, DType::BF16}).status(),
                "argument 'x' has dtype f32, allowed: f16, bf16");
  expectMessage(checkTensor("x", t).rank(3).status(), "has rank 2 (shape [4, 6]), the operation takes 3");
  expectMessage(checkTensor("x", t).rankBetween(3, 4).status(), "the operation takes 3 to 4");
  expectMessage(checkTensor("x", t).extent(1, 7, "head dim").status(),
                "has extent 6 in dimension 1, it must be 7 (head dim)");
  expectMessage(checkTensor("x", t).extent(2, 7).status(), "has rank 2 and no dimension 2");
  expectMessage(checkTensor("x", t).extentAtMost(0, 3).status(), "the limit is 3");
  expectMessage(checkTensor("x", t).shape({4, 5}).status(), "has extent 6 in dimension 1, it must be 5");
  expectMessage(checkTensor("x", t.transposed(0, 1)).stride(1, 1).status(),
                "has stride 6 in dimension 1, it must be 1");
  expectMessage(checkTensor("x", t.transposed(0, 1)).dense().status(), "is not dense");
  expectMessage(checkTensor("x", tensor(DType::F32, {4}, 4)).aligned(16).status(), "no multiple of 16 bytes");
  expectMessage(checkTensor("x", t).dtypeOf("y", tensor(DType::F16, {1})).status(), "'y' has f16");
  expectMessage(checkTensor("x", t).shapeOf("y", tensor(DType::F16, {1})).status(), "has shape [4, 6], 'y' has [1]");
  Tensor broadcast = t;
  broadcast.strides[0] = 0;
  expectMessage(checkTensor("out", broadcast).writable().status(), "stride in dimension 0 is 0");
  broadcast.shape[0] = 1;
  EXPECT_TRUE(checkTensor("out", broadcast).writable().status().ok());
}

TEST_F(TensorTest, NullAndMisalignedPointersAreAlwaysRefused) {
  Tensor t = tensor(DType::F32, {4});
  t.address += 2;
  expectMessage(checkTensor("x", t).status(), "no multiple of the 4 bytes of f32");
  t.address = 0;
  expectMessage(checkTensor("x", t).status(), "argument 'x' is a null pointer, its shape is [4]");
  t.shape[0] = 0;
  EXPECT_TRUE(checkTensor("x", t).status().ok());
  t.shape[0] = -3;
  expectMessage(checkTensor("x", t).status(), "has extent -3 in dimension 0");
  t.rank = 9;
  expectMessage(checkTensor("x", t).rank(9).status(), "has rank 9, the limit is 8");
}

TEST_F(TensorTest, TheFirstBrokenRuleIsReported) {
  const Tensor t = tensor(DType::F32, {4, 6});
  expectMessage(checkTensor("x", t).rank(1).dtype({DType::F16}).status(), "has rank 2");
}

TEST_F(TensorTest, OverlapIsRefusedExceptForTheSameWindow) {
  const Tensor a = tensor(DType::F32, {8}), b = tensor(DType::F32, {8}, 16), c = tensor(DType::F32, {8}, 32);
  EXPECT_TRUE(checkTensor("out", a).notOverlapping("x", a).status().ok());
  EXPECT_TRUE(checkTensor("out", a).notOverlapping("x", c).status().ok());
  EXPECT_TRUE(checkTensor("out", c).notOverlapping("x", a).status().ok());
  expectMessage(checkTensor("out", a).notOverlapping("x", b).status(), "overlaps 'x'");
  expectMessage(checkTensor("out", b).notOverlapping("x", a).status(), "overlaps 'x'");
}

/// Every byte of a tensor, as often as an element has it.
std::multiset<DeviceAddress> bytesOf(const Tensor &t) {
  std::multiset<DeviceAddress> out;
  const std::function<void(unsigned, DeviceAddress)> visit = [&](unsigned d, DeviceAddress at) {
    if (d == t.rank)
      for (unsigned i = 0; i < static_cast<unsigned>(dtypeBytes(t.dtype)); ++i)
        out.insert(at + i);
    else
      for (std::int64_t i = 0; i < t.shape[d]; ++i)
        visit(d + 1, at + static_cast<DeviceAddress>(i * t.strides[d] * dtypeBytes(t.dtype)));
  };
  visit(0, t.address);
  return out;
}

/// q, k and v cut from one buffer, however it is packed, lie apart; a row too many, and it is seen.
TEST_F(TensorTest, TensorsCutFromOneBufferLieApart) {
  constexpr std::int64_t B = 2, S = 3, H = 4, D = 8;
  using Words = std::vector<std::int64_t>;
  struct Cut {
    const char *name;
    Words strides;      // batch, row, head, column
    std::int64_t apart; // elements from one to the next
  };
  for (const Cut &c :
       {Cut{"bs3hd", {S * 3 * H * D, 3 * H * D, D, 1}, H * D}, Cut{"sb3hd", {3 * H * D, B * 3 * H * D, D, 1}, H * D},
        Cut{"bsh3d", {S * 3 * H * D, 3 * H * D, 3 * D, 1}, D}, Cut{"b3shd", {3 * S * H * D, H * D, D, 1}, S * H * D},
        Cut{"batches padded by 5", {S * 3 * H * D + 5, 3 * H * D, D, 1}, H * D},
        Cut{"rows backwards", {S * 3 * H * D, -3 * H * D, D, 1}, H * D}}) {
    Tensor q = tensor(DType::F16, {B, S, H, D}, 1024);
    std::copy(c.strides.begin(), c.strides.end(), q.strides.begin());
    Tensor k = q, v = q;
    k.address += static_cast<DeviceAddress>(2 * c.apart);
    v.address += static_cast<DeviceAddress>(4 * c.apart);
    for (const auto &[one, other] : {std::pair(&q, &k), std::pair(&k, &q), std::pair(&v, &q), std::pair(&v, &k)})
      EXPECT_TRUE(checkTensor("out", *one).apartFrom("x", *other).writable().status().ok()) << c.name;
    k.address += 2;
    expectMessage(checkTensor("out", v).apartFrom("x", k).status(), "overlaps 'x'");
    expectMessage(checkTensor("out", k).apartFrom("x", v).status(), "overlaps 'x'");
  }
}

/// What is said to lie apart, and to have elements of their own, does, byte by byte; most of what does is said to.
TEST_F(TensorTest, WhatLiesApartByEveryByte) {
  std::mt19937 random(7);
  const auto pick = [&](const std::vector<std::int64_t> &of) { return of[random() % of.size()]; };
  unsigned apart = 0, said = 0, own = 0, saidOwn = 0;
  for (unsigned n = 0; n < 4000; ++n) {
    const auto make = [&] {
      Tensor t = tensor(n % 2 ? DType::F32 : DType::F16, {1}, 2048);
      t.rank = 1 + random() % 3;
      for (unsigned d = 0; d < t.rank; ++d) {
        t.shape[d] = pick({1, 2, 3, 4});
        t.strides[d] = pick({0, 1, 2, 3, 4, 6, 8, 12, 24, -4, -6, -24, 5});
      }
      t.address += static_cast<DeviceAddress>(random() % 16) * 4;
      return t;
    };
    const Tensor a = make(), b = make();
    const auto ofA = bytesOf(a), ofB = bytesOf(b);
    const bool share = std::any_of(ofA.begin(), ofA.end(), [&](DeviceAddress at) { return ofB.count(at); });
    const bool ok = checkTensor("a", a).apartFrom("b", b).status().ok();
    ASSERT_FALSE(ok && share) << a.toString() << " and " << b.toString();
    ASSERT_EQ(ok, checkTensor("b", b).apartFrom("a", a).status().ok()) << a.toString() << " and " << b.toString();
    apart += !share, said += ok;
    const bool distinct = std::set<DeviceAddress>(ofA.begin(), ofA.end()).size() == ofA.size();
    const bool writable = checkTensor("a", a).writable().status().ok();
    ASSERT_FALSE(writable && !distinct) << a.toString();
    own += distinct, saidOwn += writable;
  }
  EXPECT_GT(said, apart * 3 / 4) << "of " << apart;
  EXPECT_GT(saidOwn, own * 3 / 4) << "of " << own;
  Tensor overlapping = tensor(DType::F32, {4, 6});
  overlapping.strides[0] = 5;
  expectMessage(checkTensor("out", overlapping).writable().status(), "its stride in dimension 0 is 5");
}

} // namespace
