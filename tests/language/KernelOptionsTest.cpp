// The table of a kernel's options: each row from KernelOptions to the text, or to a refusal.
#include "compiler/language/Language.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::language;

namespace {

Kernel recorded(const KernelOptions &options) {
  return kernel("k", options, [](Arg<i32, "n">) {});
}

std::string attributeOf(const KernelOptionInfo &option, int value) {
  return "tile." + std::string(option.attribute) + " = " + std::to_string(value) + " : i32";
}

TEST(KernelOptions, EveryRowIsInTheTextAndTheConfigurationWhereItIsNotTheDefault) {
  unsigned rows = 0;
#define KILN_KERNEL_OPTION(field, ...)                                                                                 \
  {                                                                                                                    \
    constexpr KernelOptionInfo option = kernelOption(#field);                                                          \
    const int value = option.most == option.standard ? option.least : option.most;                                     \
    KernelOptions options;                                                                                             \
    options.field = value;                                                                                             \
    const Kernel k = recorded(options), plain = recorded({});                                                          \
    ASSERT_TRUE(k.ok()) << #field << ": " << k.status().toString();                                                    \
    EXPECT_EQ(k.field(), value);                                                                                       \
    EXPECT_NE(k.text().find(attributeOf(option, value)), std::string::npos) << k.text();                               \
    EXPECT_NE(k.configText().find(#field " = " + std::to_string(value)), std::string::npos) << k.configText();         \
    const bool always = option.written == KernelOptionInfo::Written::Always;                                           \
    EXPECT_EQ(plain.text().find("tile." + std::string(option.attribute)) != std::string::npos, always) << #field;      \
    EXPECT_EQ(plain.configText().find(#field) != std::string::npos, always) << #field;                                 \
    ++rows;                                                                                                            \
  }
#include "compiler/target/KernelOptions.def"
  EXPECT_EQ(rows, std::size(kernelOptions));
}

TEST(KernelOptions, ValuesOutsideARowsRangeAreRefusedWithIt) {
#define KILN_KERNEL_OPTION(field, ...)                                                                                 \
  for (const int value : {kernelOption(#field).least - 1, kernelOption(#field).most + 1}) {                            \
    KernelOptions options;                                                                                             \
    options.field = value;                                                                                             \
    const Kernel k = recorded(options);                                                                                \
    EXPECT_EQ(k.ok(), value == kernelOption(#field).standard) << #field << " " << value;                               \
    if (!k.ok() && std::string_view(#field) != "warps") /* of which the front end takes powers of two */               \
      EXPECT_NE(k.status().toString().find(kernelOption(#field).rule()), std::string::npos) << k.status().toString();  \
  }
#include "compiler/target/KernelOptions.def"
}

TEST(KernelOptions, EveryRowOfExtentsIsInTheTextAndTheConfigurationWhereItIsNotOnes) {
  unsigned rows = 0;
#define KILN_KERNEL_OPTION3(field, attribute, most, ...)                                                               \
  {                                                                                                                    \
    KernelOptions options;                                                                                             \
    options.field = {2, 1, 1};                                                                                         \
    const Kernel k = recorded(options), plain = recorded({});                                                          \
    ASSERT_TRUE(k.ok()) << k.status().toString();                                                                      \
    EXPECT_EQ(k.field(), options.field);                                                                               \
    EXPECT_NE(k.text().find("tile." #attribute " = array<i32: 2, 1, 1>"), std::string::npos) << k.text();              \
    EXPECT_NE(k.configText().find(#field " = 2x1x1"), std::string::npos) << k.configText();                            \
    EXPECT_EQ(plain.text().find("tile." #attribute), std::string::npos);                                               \
    EXPECT_EQ(plain.configText().find(#field), std::string::npos);                                                     \
    using Extents = std::array<int, 3>;                                                                                \
    for (const Extents &wrong : {Extents{3, 1, 1}, Extents{0, 1, 1}, Extents{2 * most, 1, 1}, Extents{2, most, 1}}) {  \
      options.field = wrong;                                                                                           \
      const Kernel refused = recorded(options);                                                                        \
      EXPECT_NE(refused.status().toString().find(kernelExtents[rows].rule()), std::string::npos) << wrong[0];          \
    }                                                                                                                  \
    ++rows;                                                                                                            \
  }
#include "compiler/target/KernelOptions.def"
  EXPECT_EQ(rows, std::size(kernelExtents));
}

TEST(KernelOptions, EachHasADescription) {
  for (const KernelOptionInfo &option : kernelOptions)
    EXPECT_FALSE(option.text.empty()) << option.field;
  for (const KernelExtentsInfo &option : kernelExtents)
    EXPECT_FALSE(option.text.empty()) << option.field;
}

} // namespace
