#include "kiln/Device.h"

#include <gtest/gtest.h>

using namespace kiln;

namespace {

TEST(FindingTest, OneParagraph) {
  Finding f;
  f.id = "oob.global";
  f.kernel = "add";
  f.block = {3, 0, 1};
  f.warp = 2;
  f.lanes = 0x80000001;
  f.location = "add.cu:12";
  f.ptxLine = 40;
  f.opcode = "ld.global.f32";
  f.message = "4-byte ld at 0x1000 is 4 bytes past the end of 'x', 64 bytes";
  EXPECT_EQ(f.toString(),
            "finding oob.global: kernel add block (3,0,1) warp 2 lanes 0x80000001 at add.cu:12 (ptx line 40, "
            "ld.global.f32): 4-byte ld at 0x1000 is 4 bytes past the end of 'x', 64 bytes");
  f.count = 7;
  f.fatal = true;
  EXPECT_TRUE(f.toString().ends_with(" [7 times] [the launch ended here]"));
  f.note = true;
  EXPECT_TRUE(f.toString().starts_with("note oob.global: "));
}

TEST(FindingTest, GroupedBySourceLines) {
  Finding a;
  a.id = "race.shared";
  a.kernel = "k";
  a.location = "k.cu:10";
  a.ptxLine = 40;
  a.count = 3;
  a.message = "first";
  a.other = OtherAccess{{0, 0, 0}, 1, 1, "k.cu:20", 80, "st.shared.u32"};
  std::vector<Finding> all(3, a);
  all[1].ptxLine = 41; // another instruction of the same line
  all[1].message = "second";
  all[2].other->ptxLine = 81;
  auto add = [&](auto change) {
    all.push_back(a);
    change(all.back());
  };
  add([](Finding &f) { f.id = "race.global"; });
  add([](Finding &f) { f.other->location = "k.cu:21"; });
  add([](Finding &f) { f.location = "k.cu:11"; });
  add([](Finding &f) { f.other.reset(); });
  add([](Finding &f) { f.note = true; });
  add([](Finding &f) { f.fatal = true; });
  add([](Finding &f) { f.kernel = "other"; });
  add([](Finding &f) { f.location.clear(); });
  add([](Finding &f) { f.location.clear(), f.ptxLine = 41; });
  const std::vector<Finding> grouped = groupFindings(all);
  ASSERT_EQ(grouped.size(), 10u);
  EXPECT_EQ(grouped[0].message, "first");
  EXPECT_EQ(grouped[0].count, 9u);
  EXPECT_EQ(grouped[0].places, 3u);
  EXPECT_TRUE(grouped[0].toString().ends_with("first [9 times by 3 pairs of instructions]")) << grouped[0].toString();
  for (std::size_t i = 1; i < grouped.size(); ++i)
    EXPECT_EQ(grouped[i].places, 1u) << grouped[i].toString();
}

TEST(FindingTest, LongNamesAreCut) {
  Finding f;
  f.id = "deadlock";
  f.kernel = std::string(1500, 'a') + "_tail";
  f.message = "no warp can run";
  const std::string text = f.toString();
  EXPECT_LT(text.size(), 160u) << text;
  EXPECT_NE(text.find("kernel " + std::string(38, 'a') + "..." + std::string(14, 'a') + "_tail block"),
            std::string::npos)
      << text;
}

TEST(FindingTest, WithoutLineInformation) {
  Finding f;
  f.id = "deadlock";
  f.kernel = "k";
  f.message = "no warp can run";
  EXPECT_EQ(f.toString(), "finding deadlock: kernel k block (0,0,0) warp 0 lanes 0x00000000: no warp can run");
}

} // namespace
