// The page's programs are those of ReadmeExamples.h, and they work.
#include <cmath>
#include <iostream>

#include "tests/language/LanguageTesting.h"
#include "tests/language/ReadmeExamples.h"

#include <gtest/gtest.h>

#include <fstream>

namespace {

std::string read(const std::string &path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Readme, ProgramsAreThoseThatAreCompiledHere) {
  const std::string page = read(KILN_SOURCE_DIR "/compiler/language/README.md");
  const std::string examples = read(KILN_SOURCE_DIR "/tests/language/ReadmeExamples.h");
  if (page.empty() || examples.empty())
    GTEST_SKIP() << "the page is not in the source folder of the tests";
  unsigned found = 0;
  for (std::size_t at = page.find("```cpp\n"); at != std::string::npos; at = page.find("```cpp\n", at)) {
    at += 7;
    const std::size_t end = page.find("```", at);
    EXPECT_NE(examples.find(page.substr(at, end - at)), std::string::npos) << page.substr(at, end - at);
    at = end + 3;
    ++found;
  }
  EXPECT_GE(found, 8u);
}

TEST(Readme, ProgramsRecord) {
  std::vector<std::string> modules;
  for (const Kernel &k : {scale(DType::BF16, {}), rowMax(256), flip(), dropout(512), roots(64), turnBytes(128),
                          bestEight(64), sumOfTiles(), cappedAndSlope(128)}) {
    ASSERT_TRUE(k.ok()) << k.status().toString();
    testing::internal::CaptureStdout();
    EXPECT_TRUE(show(k));
    EXPECT_EQ(testing::internal::GetCapturedStdout().find(k.text()), 0u);
    modules.push_back(k.text());
  }
  testing::internal::CaptureStderr();
  EXPECT_FALSE(show(rowMax(17)));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("row_max"), std::string::npos);
  if (kiln::test::kilnOpt().empty())
    GTEST_SKIP() << "recorded, but kiln-opt was not built";
  EXPECT_EQ(kiln::test::complaintsOfKilnOpt(modules), "");
}

} // namespace
