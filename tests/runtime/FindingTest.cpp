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

TEST(FindingTest, WithoutLineInformation) {
  Finding f;
  f.id = "deadlock";
  f.kernel = "k";
  f.message = "no warp can run";
  EXPECT_EQ(f.toString(), "finding deadlock: kernel k block (0,0,0) warp 0 lanes 0x00000000: no warp can run");
}

} // namespace
