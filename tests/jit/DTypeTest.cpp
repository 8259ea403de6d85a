// The one list of element types: spellings, widths, and the front end's tags.
#include "runtime/io/DType.h"
#include "compiler/language/Types.h"
#include "kiln/KernelSource.h"

#include <gtest/gtest.h>

#include <set>

using namespace kiln;

namespace {

TEST(DTypes, EverySpellingIsRead) {
  std::set<std::string_view> names;
  for (unsigned i = 0; i < numDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    for (const std::string_view spelling : {dtypeName(t), dtypeNumpyName(t), elementName(t)}) {
      const Result<DType> read = parseDType(spelling);
      ASSERT_TRUE(read.ok()) << spelling;
      EXPECT_EQ(*read, t) << spelling;
    }
    EXPECT_TRUE(names.insert(dtypeName(t)).second) << dtypeName(t);
    // MLIR has no unsigned types of its own in kernels, and none without a meaning.
    if (dtypeKind(t) == DTypeKind::Raw)
      EXPECT_EQ(elementText(t), "");
    else
      EXPECT_EQ(dtypeOfText(elementText(t)), isUnsigned(t) ? kernelElement(t) : t) << dtypeName(t);
    if (!dtypeNpyCode(t).empty()) {
      const Result<DType> read = dtypeFromNpyCode(dtypeNpyCode(t));
      ASSERT_TRUE(read.ok());
      EXPECT_EQ(*read, t);
    }
  }
  for (const char *half : {"fp16", "half", "float16", "f16"})
    EXPECT_EQ(*parseDType(half), DType::F16);
  EXPECT_EQ(*parseDType("f8e5m2"), DType::F8E5M2);
  EXPECT_EQ(*parseDType("i1"), DType::I1);
  EXPECT_FALSE(parseDType("f33").ok());
  EXPECT_FALSE(parseDType("").ok());
  EXPECT_EQ(dtypeOfText("f8E4M3FN"), DType::F8E4M3);
  EXPECT_EQ(dtypeOfText(""), std::nullopt);
}

TEST(DTypes, WidthsAndKinds) {
  static_assert(bitsOf(DType::I1) == 1 && dtypeBytes(DType::I1) == 1 && dtypeKind(DType::I1) == DTypeKind::Unsigned);
  static_assert(!isInteger(DType::I1) && isInteger(DType::I8) && isInteger(DType::U64) && !isInteger(DType::Raw8));
  static_assert(isFloat(DType::F16) && isFloat(DType::F64) && !isFloat(DType::U64) && !isFloat(DType::Raw8));
  for (unsigned i = 0; i < numDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    // Names end in the width, but for "bool", "e4m3" and the like.
    if (isInteger(t) || t == DType::F16 || t == DType::BF16 || t == DType::F32 || t == DType::F64)
      EXPECT_TRUE(dtypeName(t).ends_with(std::to_string(bitsOf(t)))) << dtypeName(t);
    if (const FloatFormat *format = dtypeFloatFormat(t))
      EXPECT_EQ(format->bits(), bitsOf(t)) << dtypeName(t);
    EXPECT_EQ(dtypeBytes(kernelElement(t)), dtypeBytes(t)) << dtypeName(t);
    EXPECT_EQ(isFloat(kernelElement(t)), isFloat(t)) << dtypeName(t);
  }
}

TEST(DTypes, TagsAndArgumentsAreOfTheSameList) {
  using namespace language;
  static_assert(language::elementOf<f8e4m3> == kiln::DType::F8E4M3 && language::elementOf<i1> == kiln::DType::I1);
  static_assert(std::is_same_v<language::DType, kiln::DType>);
  for (const auto &[type, name] : {std::pair(ArgumentType::F32, "f32"),
                                   {ArgumentType::I1, "i1"},
                                   {ArgumentType::BF16, "bf16"},
                                   {ArgumentType::Pointer, "ptr"}}) {
    EXPECT_EQ(argumentTypeName(type), name);
    EXPECT_EQ(argumentBytes(type), type == ArgumentType::Pointer ? 8 : dtypeBytes(*parseDType(name)));
  }
  EXPECT_EQ(parseArgumentType("ptr<f8E5M2>")->elementType, kiln::DType::F8E5M2);
  EXPECT_FALSE(parseArgumentType("u32").ok());
}

} // namespace
