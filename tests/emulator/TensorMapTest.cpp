// Tensor maps: the encoder's rules, the emulator's bytes, and where the elements of a box lie.
#include "runtime/device/emulator/async/TensorMap.h"
#include "runtime/device/emulator/async/BoxWalk.h"
#include "runtime/device/emulator/EmulatorDevice.h"
#include "tests/emulator/TensorReference.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

namespace kiln {
namespace {

using emulator::BoxPiece;
using emulator::BoxWalk;
using emulator::decodeMap;
using emulator::encodeMap;
using emulator::MapField;

TensorMapRecipe plain() {
  TensorMapRecipe r;
  r.type = TensorMapType::Bf16;
  r.rank = 2;
  r.address = 0x1000;
  r.dims = {64, 48};
  r.strides = {128};
  r.box = {32, 8};
  return r;
}

/// A change to plain() that breaks one rule, and what the refusal says.
struct Breach {
  std::function<void(TensorMapRecipe &)> change;
  std::vector<std::string> says;
};

const std::vector<Breach> breaches = {
    {[](auto &r) { r.rank = 0; }, {"rank 0", "1..5"}},
    {[](auto &r) { r.rank = 6; }, {"rank 6", "1..5"}},
    {[](auto &r) { r.type = static_cast<TensorMapType>(13); }, {"element type 13"}},
    {[](auto &r) { r.swizzle = static_cast<TensorMapSwizzle>(7); }, {"swizzle 7"}},
    {[](auto &r) { r.interleave = static_cast<TensorMapInterleave>(3); }, {"interleave 3"}},
    {[](auto &r) { r.promotion = static_cast<TensorMapPromotion>(4); }, {"L2 promotion 4"}},
    {[](auto &r) { r.fill = static_cast<TensorMapFill>(2); }, {"fill 2"}},
    {[](auto &r) { r.interleave = TensorMapInterleave::B16; }, {"rank 2", "interleave"}},
    {[](auto &r) { r.address += 8; }, {"0x1008", "multiple of 16"}},
    {[](auto &r) {
       r.rank = 3;
       r.dims[2] = r.box[2] = 1;
       r.strides[1] = 4096;
       r.interleave = TensorMapInterleave::B32;
       r.swizzle = TensorMapSwizzle::B32;
       r.address += 16;
     },
     {"0x1010", "multiple of 32"}},
    {[](auto &r) {
       r.rank = 3;
       r.dims[2] = r.box[2] = 1;
       r.strides = {144, 4096};
       r.interleave = TensorMapInterleave::B32;
       r.swizzle = TensorMapSwizzle::B32;
     },
     {"strides[0] = 144", "multiple of 32"}},
    {[](auto &r) {
       r.rank = 3;
       r.dims[2] = r.box[2] = 1;
       r.strides[1] = 4096;
       r.interleave = TensorMapInterleave::B32;
       r.swizzle = TensorMapSwizzle::B64;
     },
     {"swizzle 64B", "interleave 32B needs"}},
    {[](auto &r) { r.dims[1] = 0; }, {"dims[1] = 0", "1..2^32"}},
    {[](auto &r) { r.dims[0] = (std::uint64_t(1) << 32) + 1; }, {"dims[0] = 4294967297"}},
    {[](auto &r) { r.strides[0] = 120; }, {"strides[0] = 120", "multiple of 16"}},
    {[](auto &r) { r.strides[0] = std::uint64_t(1) << 40; }, {"1099511627776", "2^40"}},
    {[](auto &r) { r.box[1] = 0; }, {"box[1] = 0", "1..256"}},
    {[](auto &r) { r.box[1] = 257; }, {"box[1] = 257"}},
    {[](auto &r) { r.elementStrides[1] = 0; }, {"elementStrides[1] = 0", "1..8"}},
    {[](auto &r) { r.elementStrides[0] = 9; }, {"elementStrides[0] = 9"}},
    {[](auto &r) { r.box[0] = 12; }, {"box[0] = 12", "24 bytes", "multiple of 16"}},
    {[](auto &r) { r.swizzle = TensorMapSwizzle::B32; },
     {"64 bytes", "more than the 32", "swizzle 32B", "16 elements"}},
    {[](auto &r) {
       r.swizzle = TensorMapSwizzle::B128Atom64;
       r.box[0] = 128;
     },
     {"256 bytes", "more than the 128"}},
    {[](auto &r) {
       r.type = TensorMapType::U16;
       r.fill = TensorMapFill::Nan;
     },
     {"fill nan", "u16"}},
};

TEST(TensorMap, EveryRuleRefusesWithValueAndLimit) {
  ASSERT_TRUE(checkTensorMap(plain()).ok());
  for (const Breach &b : breaches) {
    TensorMapRecipe r = plain();
    b.change(r);
    const Status s = checkTensorMap(r);
    ASSERT_FALSE(s.ok()) << b.says[0];
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    for (const std::string &text : b.says)
      EXPECT_NE(s.toString().find(text), std::string::npos) << s.toString() << "\nlacks: " << text;
    EXPECT_FALSE(s.remedy().empty()) << s.message();
  }
}

TEST(TensorMap, TheLimitsThemselvesAreAccepted) {
  TensorMapRecipe r = plain();
  r.rank = 5;
  r.dims = {std::uint64_t(1) << 32, 1, 7, 1, std::uint64_t(1) << 32};
  r.strides = {(std::uint64_t(1) << 40) - 16, 16, 0, 32};
  r.box = {256, 256, 1, 256, 256};
  r.elementStrides = {8, 8, 8, 8, 1};
  EXPECT_TRUE(checkTensorMap(r).ok()) << checkTensorMap(r).toString();
  r.swizzle = TensorMapSwizzle::B128;
  r.box[0] = 64;
  EXPECT_TRUE(checkTensorMap(r).ok()) << checkTensorMap(r).toString();
}

TEST(TensorMap, TheDeviceRefusesWhatItCannotDo) {
  auto open = [](const char *target) {
    auto device = createEmulatorDevice(**findTarget(target));
    EXPECT_TRUE(device.ok());
    return std::move(*device);
  };
  TensorMapRecipe r = plain();
  EXPECT_TRUE(open("sm_90a")->encodeTensorMap(r).ok());
  auto old = open("sm_80")->encodeTensorMap(r);
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.status().code(), StatusCode::Unsupported);
  EXPECT_NE(old.status().toString().find("sm_90"), std::string::npos) << old.status().toString();
  r.rank = 3;
  r.dims[2] = r.box[2] = 1;
  r.strides[1] = 8192;
  r.interleave = TensorMapInterleave::B16;
  EXPECT_EQ(open("sm_90a")->encodeTensorMap(r).status().code(), StatusCode::Unsupported);
  TensorMapRecipe atoms = plain();
  atoms.swizzle = TensorMapSwizzle::B128Atom32;
  EXPECT_EQ(open("sm_90a")->encodeTensorMap(atoms).status().code(), StatusCode::Unsupported);
  EXPECT_TRUE(open("sm_100a")->encodeTensorMap(atoms).ok());
  r.box[1] = 1000;
  EXPECT_EQ(open("sm_90a")->encodeTensorMap(r).status().code(), StatusCode::InvalidArgument);
}

/// A recipe that the rules accept, with a small box.
TensorMapRecipe randomRecipe(std::mt19937_64 &random) {
  auto below = [&](std::uint64_t n) { return random() % n; };
  TensorMapRecipe r;
  r.type = static_cast<TensorMapType>(below(tensorMapTypes));
  r.swizzle = static_cast<TensorMapSwizzle>(below(tensorMapSwizzles));
  r.promotion = static_cast<TensorMapPromotion>(below(4));
  r.fill = isFloat(r.type) ? static_cast<TensorMapFill>(below(2)) : TensorMapFill::Zeros;
  r.rank = 1 + static_cast<unsigned>(below(5));
  r.address = 16 * (1 + below(1 << 20));
  const unsigned bytes = tensorMapTypeBytes(r.type), span = tensorMapSwizzleBytes(r.swizzle);
  std::uint32_t budget = 48;
  for (unsigned i = 0; i < r.rank; ++i) {
    r.dims[i] = below(8) ? 1 + below(60) : std::uint64_t(1) << 32;
    r.box[i] = i ? 1 + static_cast<std::uint32_t>(below(std::min(budget, 9u)))
                 : 16 / bytes * (1 + static_cast<std::uint32_t>(below(span ? span / 16 : 10)));
    if (i)
      budget = std::max(1u, budget / r.box[i]);
    if (r.box[i] > 256)
      r.box[i] = 256;
    r.elementStrides[i] = below(3) ? 1 : 1 + static_cast<std::uint32_t>(below(8));
    if (i + 1 < r.rank)
      r.strides[i] = 16 * below(100);
  }
  return r;
}

TEST(TensorMap, BytesSayWhatTheRecipeSaid) {
  std::mt19937_64 random(1);
  for (unsigned n = 0; n < 2000; ++n) {
    TensorMapRecipe r = randomRecipe(random), got;
    ASSERT_TRUE(checkTensorMap(r).ok()) << checkTensorMap(r).toString();
    const TensorMap map = encodeMap(r);
    std::string why;
    ASSERT_TRUE(decodeMap(map.bytes.data(), got, why)) << why;
    // Dimensions that the rank does not have come back as 1.
    for (unsigned i = r.rank; i < TensorMapRecipe::maxRank; ++i)
      r.dims[i] = r.box[i] = r.elementStrides[i] = 1;
    EXPECT_TRUE(r == got);
  }
}

TEST(TensorMap, AChangedBitIsNoMap) {
  const TensorMap map = encodeMap(plain());
  for (unsigned bit = 0; bit < 8 * TensorMap::size; ++bit) {
    TensorMap changed = map;
    changed.bytes[bit / 8] ^= std::byte(1u << bit % 8);
    TensorMapRecipe r;
    std::string why;
    EXPECT_FALSE(decodeMap(changed.bytes.data(), r, why)) << bit;
    EXPECT_NE(why.find("not a tensor map of this device"), std::string::npos) << why;
  }
  TensorMap zeros;
  TensorMapRecipe r;
  std::string why;
  EXPECT_FALSE(decodeMap(zeros.bytes.data(), r, why));
}

/// PTX's number of an element type, stated again.
unsigned ptxNumber(TensorMapType type) {
  static const std::map<TensorMapType, unsigned> numbers = {
      {TensorMapType::U8, 0},      {TensorMapType::U16, 1}, {TensorMapType::U32, 2},   {TensorMapType::S32, 3},
      {TensorMapType::U64, 4},     {TensorMapType::S64, 5}, {TensorMapType::F16, 6},   {TensorMapType::F32, 7},
      {TensorMapType::F32Ftz, 8},  {TensorMapType::F64, 9}, {TensorMapType::Bf16, 10}, {TensorMapType::Tf32, 11},
      {TensorMapType::Tf32Ftz, 12}};
  return numbers.at(type);
}

TEST(TensorMap, ReplacingEveryFieldOfZerosMakesTheMap) {
  std::mt19937_64 random(2);
  for (unsigned n = 0; n < 500; ++n) {
    TensorMapRecipe r = randomRecipe(random);
    r.promotion = TensorMapPromotion::None; // no field of the instruction
    for (std::uint64_t &d : r.dims)
      d = std::min<std::uint64_t>(d, 0xFFFFFFFF);
    for (unsigned i = r.rank; i < TensorMapRecipe::maxRank; ++i)
      r.dims[i] = r.box[i] = r.elementStrides[i] = 1;
    std::vector<std::function<bool(std::byte *, std::string &)>> steps;
    auto set = [&](MapField field, std::uint32_t ordinal, std::uint64_t value) {
      steps.push_back([=](std::byte *b, std::string &why) { return replaceMapField(b, field, ordinal, value, why); });
    };
    set(MapField::GlobalAddress, 0, r.address);
    set(MapField::Rank, 0, r.rank - 1);
    set(MapField::ElemType, 0, ptxNumber(r.type));
    set(MapField::InterleaveLayout, 0, 0);
    const unsigned swizzle = static_cast<unsigned>(r.swizzle);
    set(MapField::SwizzleMode, 0, std::min(swizzle, 3u));
    set(MapField::SwizzleAtomicity, 0, swizzle > 3 ? swizzle - 3 : 0);
    set(MapField::FillMode, 0, static_cast<unsigned>(r.fill));
    for (unsigned i = 0; i < TensorMapRecipe::maxRank; ++i) {
      set(MapField::GlobalDim, i, r.dims[i]);
      set(MapField::BoxDim, i, r.box[i]);
      set(MapField::ElementStride, i, r.elementStrides[i]);
      if (i + 1 < TensorMapRecipe::maxRank)
        set(MapField::GlobalStride, i, r.strides[i]);
    }
    std::shuffle(steps.begin(), steps.end(), random);
    TensorMap map;
    std::string why;
    for (const auto &step : steps)
      ASSERT_TRUE(step(map.bytes.data(), why)) << why;
    TensorMapRecipe got;
    ASSERT_TRUE(decodeMap(map.bytes.data(), got, why)) << why;
    EXPECT_TRUE(got == r);
    EXPECT_EQ(map.bytes, encodeMap(r).bytes);
  }
}

TEST(TensorMap, ReplaceRefusesWhatNoFieldHolds) {
  const std::vector<std::tuple<MapField, unsigned, std::uint64_t, const char *>> bad = {
      {MapField::Rank, 0, 5, "0..4"},        {MapField::BoxDim, 5, 1, "dimension 5"},
      {MapField::BoxDim, 0, 0, "1..256"},    {MapField::BoxDim, 0, 257, "1..256"},
      {MapField::GlobalDim, 0, 0, "1.."},    {MapField::GlobalStride, 4, 16, "dimension 4"},
      {MapField::GlobalStride, 0, 8, "16"},  {MapField::ElementStride, 0, 9, "1..8"},
      {MapField::ElemType, 0, 13, "0..12"},  {MapField::InterleaveLayout, 0, 3, "0..2"},
      {MapField::SwizzleMode, 0, 4, "0..3"}, {MapField::SwizzleAtomicity, 0, 4, "0..3"},
      {MapField::FillMode, 0, 2, "0..1"}};
  for (const auto &[field, ordinal, value, text] : bad) {
    TensorMap map = encodeMap(plain());
    std::string why;
    EXPECT_FALSE(replaceMapField(map.bytes.data(), field, ordinal, value, why)) << text;
    EXPECT_NE(why.find(text), std::string::npos) << why;
    EXPECT_EQ(map.bytes, encodeMap(plain()).bytes);
  }
  TensorMap garbage;
  garbage.bytes.fill(std::byte(0x5A));
  std::string why;
  EXPECT_FALSE(replaceMapField(garbage.bytes.data(), MapField::Rank, 0, 1, why));
}

TEST(TensorMap, RulesAreAskedAgainAfterAReplacement) {
  TensorMap map = encodeMap(plain());
  TensorMapRecipe r;
  std::string why;
  ASSERT_TRUE(replaceMapField(map.bytes.data(), MapField::SwizzleMode, 0, 1, why)); // a box of 64 bytes
  EXPECT_FALSE(decodeMap(map.bytes.data(), r, why));
  EXPECT_NE(why.find("more than the 32"), std::string::npos) << why;
  map = encodeMap(plain());
  ASSERT_TRUE(replaceMapField(map.bytes.data(), MapField::SwizzleAtomicity, 0, 1, why));
  EXPECT_FALSE(decodeMap(map.bytes.data(), r, why));
  EXPECT_NE(why.find("atomicity"), std::string::npos) << why;
}

// --- Boxes --------------------------------------------------------------------

TEST(BoxWalk, PiecesCoverTheBoxAsTheDefinitionSays) {
  std::mt19937_64 random(3);
  const unsigned cases = test::pick(1500u, 20000u);
  for (unsigned n = 0; n < cases; ++n) {
    const TensorMapRecipe r = randomRecipe(random);
    std::int32_t c[5] = {};
    for (unsigned i = 0; i < r.rank; ++i) {
      // Inside, across each edge, far away, and where 32-bit sums would wrap.
      const std::int64_t middles[] = {0,
                                      -std::int64_t(r.box[i]) / 2,
                                      std::int64_t(r.dims[i]) - r.box[i] / 2,
                                      std::int64_t(random() % 200) - 100,
                                      INT32_MIN,
                                      INT32_MAX};
      c[i] = static_cast<std::int32_t>(
          std::clamp<std::int64_t>(middles[random() % 16 < 14 ? random() % 4 : random() % 6], INT32_MIN, INT32_MAX));
    }
    const std::uint32_t destination = 128 * static_cast<std::uint32_t>(8 + random() % 64);
    const BoxWalk walk(r, c);
    std::map<std::uint32_t, std::uint64_t> got;
    walk.eachPiece(destination, [&](const BoxPiece &p) {
      ASSERT_GT(p.bytes, 0u);
      for (std::uint32_t b = 0; b < p.bytes; ++b)
        ASSERT_TRUE(got.emplace(p.shared + b, p.inside ? p.global + b : test::outsideTensor).second) << "twice";
    });
    const auto expected = test::boxBytes(r, c, destination);
    ASSERT_EQ(got, expected) << "case " << n << " swizzle " << tensorMapSwizzleName(r.swizzle);
    EXPECT_EQ(walk.denseBytes, expected.size());
    const std::uint32_t pitch = walk.pitch;
    EXPECT_EQ(walk.spanBytes, (expected.size() / walk.rowBytes - 1) * pitch + walk.rowBytes);
  }
}

TEST(BoxWalk, SwizzlesAreTheirOwnInverse) {
  for (unsigned s = 0; s < tensorMapSwizzles; ++s)
    for (std::uint32_t a = 0; a < 8192; ++a) {
      const auto swizzle = static_cast<TensorMapSwizzle>(s);
      ASSERT_EQ(emulator::swizzledAddress(swizzle, emulator::swizzledAddress(swizzle, a)), a);
      ASSERT_EQ(emulator::swizzledAddress(swizzle, a), test::placed(swizzle, a))
          << tensorMapSwizzleName(swizzle) << " " << a;
    }
}

TEST(BoxWalk, TheLargestBoxIsCountedWithoutWrapping) {
  TensorMapRecipe r;
  r.type = TensorMapType::F64;
  r.rank = 5;
  r.dims.fill(256);
  r.box.fill(256);
  const std::int32_t c[5] = {};
  const BoxWalk walk(r, c);
  EXPECT_EQ(walk.rows, std::uint64_t(1) << 32);
  EXPECT_EQ(walk.denseBytes, std::uint64_t(1) << 43);
}

} // namespace
} // namespace kiln
