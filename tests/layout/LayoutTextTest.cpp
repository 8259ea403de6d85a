// The text form of layouts: the canonical spelling, what it lowers to, and errors that help.
#include "compiler/layout/LayoutText.h"
#include "tests/layout/LayoutTestSupport.h"

#include <fstream>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

std::vector<std::string> corpus() {
  std::ifstream in(KILN_SOURCE_DIR "/tests/layout/data/layout_texts.txt");
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);)
    if (!line.empty())
      out.push_back(line);
  return out;
}

void expectError(const std::string &text, const std::vector<std::string> &mentions) {
  auto parsed = parseLayout(text);
  ASSERT_FALSE(parsed.ok()) << text;
  for (const std::string &m : mentions)
    EXPECT_NE(parsed.status().toString().find(m), std::string::npos)
        << "'" << m << "' is missing in: " << parsed.status().toString();
}

std::string canonical(const std::string &text) {
  auto parsed = parseLayout(text);
  return parsed.ok() ? print(*parsed) : parsed.status().toString();
}

} // namespace

TEST(LayoutText, CorpusRoundTripsAndLowers) {
  auto texts = corpus();
  ASSERT_GE(texts.size(), 30u);
  for (const std::string &text : texts) {
    auto parsed = parseLayout(text);
    ASSERT_TRUE(parsed.ok()) << text << "\n" << parsed.status().toString();
    std::string printed = print(*parsed);
    auto again = parseLayout(printed);
    ASSERT_TRUE(again.ok()) << printed << "\n" << again.status().toString();
    EXPECT_EQ(*again, *parsed);
    EXPECT_EQ(print(*again), printed);
    if (text.find("=[j") == std::string::npos && text.find("=[i") == std::string::npos)
      EXPECT_EQ(printed, text) << "the corpus is in canonical spelling, short bases aside";
    if (parsed->isShared()) {
      auto tile = lowerShared(*parsed);
      EXPECT_TRUE(tile.ok()) << text << "\n" << tile.status().toString();
      EXPECT_FALSE(lowerDistributed(*parsed).ok());
    } else {
      auto tile = lowerDistributed(*parsed);
      EXPECT_TRUE(tile.ok()) << text << "\n" << tile.status().toString();
      EXPECT_FALSE(lowerShared(*parsed).ok());
    }
  }
}

TEST(LayoutText, CanonicalSpelling) {
  EXPECT_EQ(canonical(" mma <\n warpsPerCTA = [ 4 , 1 ],instrN=8, version=2 >:64 x 64 x f16 "),
            "mma<version=2, warpsPerCTA=[4,1]> : 64x64xf16");
  EXPECT_EQ(canonical("linear<lane=[j4, j8, i1, i2, i4], register=[j1,j2]> : 8x16"),
            "linear<register=[[0,1],[0,2]], lane=[[0,4],[0,8],[1,0],[2,0],[4,0]]> : 8x16");
  EXPECT_EQ(canonical("linear<lane=[i1+j1, j1, 0]>"), "linear<lane=[[1,1],[0,1],[0,0]]>");
  EXPECT_EQ(canonical("linear<lane=[i1, 0]> : 2x1x1"), "linear<lane=[[1,0,0],[0,0,0]]> : 2x1x1");
  EXPECT_EQ(canonical("slice<dim=0, parent=linear<lane=[i1, 0]>> : 2"),
            "slice<dim=0, parent=linear<lane=[[1,0],[0,0]]>> : 2");
  EXPECT_EQ(canonical("tma<swizzle=128>:f16"), "tma<swizzle=128> : f16");
  EXPECT_EQ(canonical("tma<swizzle=-9223372036854775808>:scalar"), "tma<swizzle=-9223372036854775808> : scalar");
}

TEST(LayoutText, LowersToTheSameLayoutAsTheValues) {
  auto parsed = parseLayout("dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2]>> : 64x32xf16");
  ASSERT_TRUE(parsed.ok());
  TileLayout tile = *lowerDistributed(*parsed);
  EXPECT_EQ(tile.text(), "register: j1 i8 j8 j16 i32; lane: j2 j4 i1 i2 i4; warp: 0 i16");
  EXPECT_EQ(std::get<Encoding>(parsed->encoding), Encoding(DotOperand{0, 2, Encoding(Mma{2, {2, 2}})}));
  SharedTile shared = *lowerShared(*parseLayout("tma<swizzle=128> : 8x64xbf16"));
  EXPECT_EQ(shared.core().text(), "offset: j1 j2 j4 j8 j16 j32 i1+j8 i2+j16 i4+j32");
  EXPECT_EQ(shared.bits(), 16u);
  for (const auto &entry : golden().at("encodings")) {
    Encoding e = encodingFromJson(entry.at("enc"));
    auto again = parseLayout(print(e));
    ASSERT_TRUE(again.ok()) << print(e);
    EXPECT_EQ(std::get<Encoding>(again->encoding), e);
  }
  for (std::size_t i = 0; i < golden().at("layouts").size(); ++i) {
    LinearLayout layout = goldenLayout(i);
    auto again = parseLayout(print(asLinear(layout)));
    ASSERT_TRUE(again.ok());
    auto lowered = lowerDistributed(*again);
    ASSERT_TRUE(lowered.ok()) << lowered.status().toString();
    EXPECT_EQ(lowered->core(), layout);
  }
}

TEST(LayoutText, ErrorsSayWhereWhatAndWhatNearby) {
  expectError("bloked<sizePerThread=[1]> : 64",
              {"L00", "column 1", "'bloked'", "blocked, mma", "did you mean 'blocked'"});
  expectError("blocked<sizePerThred=[1]> : 64",
              {"column 9", "'sizePerThred'", "threadsPerWarp", "did you mean 'sizePerThread'"});
  expectError("blocked<sizePerThread=[1]> : 64", {"column 26", "threadsPerWarp", "ends without"});
  expectError("blocked<sizePerThread=[1,], threadsPerWarp=[32]>", {"column 26", "']'", "a number"});
  expectError("blocked<sizePerThread=[1 2]>", {"column 26", "'2'", "',' or ']'"});
  expectError("blocked<sizePerThread=4>", {"column 23", "'4'", "'['"});
  expectError("mma<version=2, version=3>", {"column 16", "'version'", "twice"});
  expectError("mma<version=99999999999999999999>", {"column 13", "64 bits"});
  expectError("mma<version=-9223372036854775809>", {"64 bits"});
  expectError("mma<version=2, warpsPerCTA=[4,1]> ; 64x64", {"column 35", "';'", "':'"});
  expectError("mma<version=2, warpsPerCTA=[4,1]> : 64x", {"column 40", "the end of the text", "extent"});
  expectError("mma<version=2, warpsPerCTA=[4,1]> : 64xf17", {"column 40", "'f17'", "did you mean 'f16'"});
  expectError("mma<version=2, warpsPerCTA=[4,1]> : 64x64 and", {"column 43", "'and'"});
  expectError("mma<version=2,\n  warpsPerCTA=[4,1],\n  instrn=8>", {"line 3, column 3", "'instrn'", "'instrN'"});
  expectError("slice<dim=0, parent=tma<swizzle=128>> : 64", {"column 21", "'tma'", "shared-memory"});
  expectError("linear<lane=[q1]>", {"column 14", "'q1'", "j4"});
  expectError("linear<lane=[j]>", {"column 14", "letter and a number"});
  expectError("linear<lane=[j1+j2]>", {"column 17", "once"});
  expectError("", {"L00", "column 1", "the end of the text"});
  expectError("mma<\x01\xff", {"'\\x01'"});
  expectError("blocked<sizePerThread=[" + std::string(200, '1'), {"64 bits"});
  std::string manyEntries = "blocked<sizePerThread=[1";
  for (int i = 0; i < 100; ++i)
    manyEntries += ",1";
  expectError(manyEntries + "]>", {"64 entries"});
  expectError("tma<swizzle=0> : 1x1x1x1x1x1x1x1x1", {"at most 8"});
  std::string deep;
  for (int i = 0; i < 3000; ++i)
    deep += "slice<dim=0, parent=";
  expectError(deep, {"L00", "16"});
  expectError(std::string(maxLayoutText + 1, ' '), {"65537", "65536"});
}

TEST(LayoutText, WhatIsMissingToLower) {
  auto message = [](const std::string &text, bool shared) {
    auto parsed = parseLayout(text);
    if (!parsed.ok())
      return parsed.status().toString();
    return shared ? lowerShared(*parsed).status().toString() : lowerDistributed(*parsed).status().toString();
  };
  EXPECT_NE(message("mma<version=2, warpsPerCTA=[4,1]>", false).find("no shape"), std::string::npos);
  EXPECT_NE(message("tma<swizzle=128>", true).find("no shape"), std::string::npos);
  EXPECT_NE(message("tma<swizzle=128> : 64x64", true).find("no element type"), std::string::npos);
  EXPECT_NE(message("tma<swizzle=128> : 64x16xf16", true).find("L14"), std::string::npos);
  EXPECT_NE(message("mma<version=2, warpsPerCTA=[4,1]> : 64x17", false).find("L01"), std::string::npos);
  // `linear` with its own shape needs no other.
  auto bound = parseLayout("linear<lane=[i1,i2,i4,i8,i16], shape=[32]>");
  ASSERT_TRUE(bound.ok());
  EXPECT_TRUE(lowerDistributed(*bound).ok());
}
