#include "tests/cli/Program.h"

namespace kiln::test {
namespace {

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(HelpCliTest, Version) {
  const Outcome o = kiln({"--version"});
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(o.out, "kiln 0.1.0\n");
}

TEST(HelpCliTest, HelpEverywhere) {
  const Outcome top = kiln({"--help"});
  EXPECT_EQ(top.status, 0);
  EXPECT_EQ(top.err, "");
  ASSERT_GE(kilnCommands().size(), 9u);
  for (const std::string &command : kilnCommands()) {
    EXPECT_TRUE(has(top.out, command));
    for (const char *flag : {"--help", "-h"}) {
      const Outcome o = kiln({command, flag});
      EXPECT_EQ(o.status, 0);
      EXPECT_EQ(o.err, "");
      EXPECT_TRUE(has(o.out, "Usage: kiln " + command)) << o.out;
      EXPECT_TRUE(has(o.out, "Examples:\n  kiln " + command)) << o.out;
    }
  }
}

TEST(HelpCliTest, WhatBelongsTogetherStandsInOneBracket) {
  EXPECT_TRUE(has(kiln({"run", "--help"}).out, "layer_norm --x FILE.npy [--weight FILE.npy --bias FILE.npy] --out"));
}

TEST(HelpCliTest, NothingIsAnError) {
  const Outcome o = kiln({});
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(o.out, "");
  EXPECT_TRUE(has(o.err, "Usage: kiln"));
}

TEST(HelpCliTest, UnknownWords) {
  Outcome o = kiln({"devcies"});
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(o.err, "kiln: unknown command 'devcies'; did you mean devices?\n");
  o = kiln({"zzz"});
  EXPECT_EQ(o.err, "kiln: unknown command 'zzz'; the commands are demo, run, compile, bench, explain, check, cache, "
                   "diff, tune, pack, warm, devices\n");
  o = kiln({"devices", "--colour"});
  EXPECT_EQ(o.status, 2);
  EXPECT_TRUE(has(o.err, "--colour") && has(o.err, "kiln devices --help")) << o.err;
  o = kiln({"--colour"});
  EXPECT_EQ(o.status, 2);
}

} // namespace
} // namespace kiln::test
