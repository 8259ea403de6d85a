// Pictures and tables say what the layout says, are well-formed, bounded, and own up to what they leave out.
#include "compiler/layout/LayoutPicture.h"
#include "compiler/layout/LayoutText.h"
#include "tests/layout/LayoutTestSupport.h"

#include <regex>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

TileLayout tileOf(const std::string &text) {
  return *lowerDistributed(*parseLayout(text));
}
SharedTile sharedOf(const std::string &text) {
  return *lowerShared(*parseLayout(text));
}

std::size_t count(const std::string &text, const std::string &what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

/// Tags open and close in order, and no stray '<' or '&' is left in the text.
::testing::AssertionResult wellFormed(const std::string &xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < xml.size(); ++at) {
    if (xml[at] == '&') {
      std::size_t end = xml.find(';', at);
      if (end == std::string::npos || end - at > 5)
        return ::testing::AssertionFailure() << "a bare & at " << at;
    }
    if (xml[at] != '<')
      continue;
    std::size_t end = xml.find('>', at);
    if (end == std::string::npos || xml.find('<', at + 1) < end)
      return ::testing::AssertionFailure() << "a bare < at " << at;
    std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1))
        return ::testing::AssertionFailure() << "</" << tag << " closes nothing";
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  if (!open.empty())
    return ::testing::AssertionFailure() << open.back() << " stays open";
  return ::testing::AssertionSuccess();
}

const char *const distributed[] = {
    "mma<version=2, warpsPerCTA=[2,2]> : 32x32",
    "dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[1,2]>> : 16x48",
    "slice<dim=1, parent=mma<version=2, warpsPerCTA=[4,1]>> : 48",
    "blocked<sizePerThread=[1,2,4], threadsPerWarp=[2,2,8], warpsPerCTA=[1,4,1]> : 2x4x16",
    "blocked<sizePerThread=[1,2], threadsPerWarp=[4,8], warpsPerCTA=[1,1], cta=<ctas=[2,1], split=[2,1]>> : 8x16",
    "slice<dim=0, parent=blocked<sizePerThread=[2], threadsPerWarp=[32], warpsPerCTA=[4]>> : scalar",
};

} // namespace

TEST(LayoutPicture, EveryHoverNamesAPlaceThatHoldsTheElement) {
  for (const char *text : distributed) {
    TileLayout layout = tileOf(text);
    std::string picture = svg(layout, text);
    EXPECT_TRUE(wellFormed(picture)) << text;
    std::size_t cells = 1;
    for (std::int64_t extent : layout.shape())
      cells *= std::size_t(extent);
    EXPECT_EQ(count(picture, "<title>"), cells) << text;
    EXPECT_EQ(picture.find("shown:"), std::string::npos);
    std::regex hover("<title>element \\(([0-9, ]*)\\): (?:block (\\d+), )?warp (\\d+), lane (\\d+), register (\\d+)"
                     "(?:; the owner of (\\d+) copies)?</title>.*?>(\\d+):(\\d+)</text>");
    std::size_t seen = 0;
    for (std::sregex_iterator it(picture.begin(), picture.end(), hover), end; it != end; ++it, ++seen) {
      const auto &m = *it;
      auto number = [&](int i) { return m[i].matched ? unsigned(std::stoul(m[i])) : 0u; };
      Coords at = layout.coords(number(5), number(4), number(3), number(2));
      std::string want;
      for (unsigned d = 0; d < at.size(); ++d)
        want += (d ? ", " : "") + std::to_string(at[d]);
      EXPECT_EQ(m[1].str(), want) << text;
      EXPECT_EQ(number(7), number(4)); // the label
      EXPECT_EQ(number(8), number(5));
    }
    EXPECT_EQ(seen, cells) << text;
  }
}

TEST(LayoutPicture, TablesAgreeWithTheLayout) {
  for (const char *text : distributed) {
    TileLayout layout = tileOf(text);
    std::string out = table(layout, {1000, 1000});
    EXPECT_EQ(out.find("shown:"), std::string::npos) << text;
    std::regex entry(layout.core().bits(InDim::Block) ? "(\\d+):(\\d+):(\\d+):(\\d+)" : "()(\\d+):(\\d+):(\\d+)");
    std::size_t seen = 0, cells = 1;
    for (std::int64_t extent : layout.shape())
      cells *= std::size_t(extent);
    for (std::sregex_iterator it(out.begin(), out.end(), entry), end; it != end; ++it, ++seen) {
      auto number = [&](int i) { return (*it)[i].length() ? unsigned(std::stoul((*it)[i])) : 0u; };
      Coords at = layout.coords(number(4), number(3), number(2), number(1));
      std::size_t flat = 0;
      for (unsigned d = 0; d < layout.dims(); ++d)
        flat = flat * layout.shape(d) + at[d];
      EXPECT_EQ(flat, seen) << text; // row-major order
    }
    EXPECT_EQ(seen, cells) << text;
  }
}

TEST(LayoutPicture, SharedLayouts) {
  for (const char *text : {"tma<swizzle=128> : 16x64xf16", "swizzled<vec=2, perPhase=1, maxPhase=4> : 8x8xf32",
                           "padded<interval=16, pad=4> : 8x16xi8", "tma<swizzle=32> : 24x32xe4m3"}) {
    SharedTile layout = sharedOf(text);
    std::string picture = svg(layout, text);
    EXPECT_TRUE(wellFormed(picture)) << text;
    std::regex hover("element \\((\\d+), (\\d+)\\): byte (\\d+), bank (\\d+), 128-byte line (\\d+)<");
    std::size_t seen = 0;
    for (std::sregex_iterator it(picture.begin(), picture.end(), hover), end; it != end; ++it, ++seen) {
      std::uint64_t at = layout.byteOffset(Coords{unsigned(std::stoul((*it)[1])), unsigned(std::stoul((*it)[2]))});
      EXPECT_EQ(std::stoull((*it)[3]), at);
      EXPECT_EQ(std::stoull((*it)[4]), at / 4 % 32);
      EXPECT_EQ(std::stoull((*it)[5]), at / 128);
    }
    EXPECT_EQ(seen, layout.tile().extent(0) * layout.tile().extent(1));
  }
  EXPECT_EQ(table(sharedOf("swizzled<vec=1, perPhase=1, maxPhase=2> : 2x2xf32")),
            "2x2 of 32-bit elements in shared memory, 16 bytes\noffset: j1 i1+j1\nentries: offset in elements\n"
            "  | 0 1\n--+----\n0 | 0 1\n1 | 3 2\n");
}

TEST(LayoutPicture, LargeTensorsAreCutAndSaySo) {
  TileLayout layout = tileOf("blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1]> : 1024x512");
  std::string picture = svg(layout, "large & <wide>");
  EXPECT_TRUE(wellFormed(picture));
  EXPECT_NE(picture.find("shown: 64 of 1024 rows, 64 of 512 columns"), std::string::npos);
  EXPECT_NE(picture.find("large &amp; &lt;wide&gt;"), std::string::npos);
  EXPECT_LT(picture.size(), 1u << 20);
  std::string text = table(layout);
  EXPECT_NE(text.find("shown: 32 of 1024 rows, 16 of 512 columns"), std::string::npos);
  EXPECT_LT(text.size(), 1u << 14);
  EXPECT_TRUE(wellFormed(svg(layout, std::string("\0\x01\xff]]>", 6))));
  // A million rows of a tensor of rank 8 cost no more than what is shown.
  TileLayout deep = tileOf("slice<dim=0, parent=blocked<sizePerThread=[1,1,1], threadsPerWarp=[1,32,1], "
                           "warpsPerCTA=[1,1,1]>> : 65536x8");
  EXPECT_LT(svg(deep, "deep").size(), 1u << 20);
  EXPECT_TRUE(wellFormed(svg(layout, "none", {0, 0})));
}

TEST(LayoutPicture, BareLinearLayouts) {
  LinearLayout layout = tileOf(distributed[0]).core();
  EXPECT_EQ(svg(layout, "same"), svg(tileOf(distributed[0]), "same"));
  LinearLayout shared = sharedOf("tma<swizzle=64> : 8x32xf16").core();
  EXPECT_NE(svg(shared, "shared", 16).find("bank 31"), std::string::npos);
  // Bases that are no bijection are drawn as the diagnostic, not as nonsense.
  LinearLayout broken = *LinearLayout::create({2, 2}, {.offsets = Columns{1}});
  EXPECT_NE(svg(broken, "broken").find("L17"), std::string::npos);
  LinearLayout holes = *LinearLayout::create({2, 2}, {.registers = Columns{1}});
  EXPECT_NE(svg(holes, "holes").find("nobody holds it"), std::string::npos);
}
