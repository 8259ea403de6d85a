#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::cache;
using namespace kiln::cache::test;

namespace {

class Explain : public testing::Test {
protected:
  Explain() : cache(openCache(folder.path())) {}
  void store(const KeyText &key) { ASSERT_TRUE(cache->store(key, sampleEntry(1)).ok()); }
  Explanation explain(const KeyText &key) {
    auto out = cache->explain(key);
    EXPECT_TRUE(out.ok());
    return out.ok() ? *out : Explanation();
  }
  kiln::test::TemporaryDirectory folder;
  std::unique_ptr<KernelCache> cache;
  KeyText key = KeyText().set("program", "a\nb\nc\n").set("target", "sm_90a").set("knobs", "x=1").set("isa", "8.6");
};

} // namespace

TEST_F(Explain, AnEmptyCache) {
  const Explanation e = explain(key);
  EXPECT_FALSE(e.present);
  EXPECT_EQ(e.toString(), "no entry of this key; the cache holds 0 entries\n");
}

TEST_F(Explain, AnEntryThatIsThere) {
  store(key);
  const Explanation e = explain(key);
  EXPECT_TRUE(e.present);
  EXPECT_EQ(e.equalFields, 4u);
  EXPECT_EQ(e.toString(), "in the cache: " + e.nearest + "\n");
}

TEST_F(Explain, TheNearestEntryAndItsDifferences) {
  store(KeyText(key).set("target", "sm_80").set("knobs", "x=2").set("isa", "7.0"));
  store(KeyText(key).set("target", "sm_80").set("program", "a\nb changed\nc\n"));
  store(KeyText(key).set("target", "sm_80").set("knobs", "x=2").set("program", ""));
  const Explanation e = explain(key);
  EXPECT_EQ(e.entries, 3u);
  EXPECT_EQ(e.equalFields, 2u);
  EXPECT_EQ(e.totalFields, 4u);
  EXPECT_EQ(e.toString(), "no entry of this key; the cache holds 3 entries\n"
                          "nearest: " +
                              e.nearest +
                              ", 2 of 4 fields equal\n"
                              "  program: line 2: 'b', the entry has 'b changed'\n"
                              "  target: 'sm_90a', the entry has 'sm_80'\n");
}

TEST_F(Explain, TheNearestOtherEntryOfOneThatIsThere) {
  store(key);
  auto alone = cache->nearest(key);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->nearest, "");
  EXPECT_EQ(alone->differencesText(), "");
  store(KeyText(key).set("target", "sm_80"));
  store(KeyText(key).set("target", "sm_80").set("knobs", "x=2"));
  auto e = cache->nearest(key);
  ASSERT_TRUE(e.ok());
  EXPECT_EQ(e->equalFields, 3u);
  EXPECT_EQ(e->differencesText(),
            "nearest: " + e->nearest + ", 3 of 4 fields equal\n  target: 'sm_90a', the entry has 'sm_80'\n");
}

TEST_F(Explain, FieldsThatOnlyOneSideHas) {
  store(KeyText().set("program", "a\nb\nc\n").set("target", "sm_90a").set("knobs", "x=1").set("plugin", "p"));
  const Explanation e = explain(key);
  EXPECT_EQ(e.equalFields, 3u);
  EXPECT_EQ(e.totalFields, 5u);
  ASSERT_EQ(e.differences.size(), 2u);
  EXPECT_EQ(e.differences[0].field, "isa");
  EXPECT_EQ(e.differences[0].text, "the entry has no such field");
  EXPECT_EQ(e.differences[1].field, "plugin");
  EXPECT_EQ(e.differences[1].text, "only the entry has this field");
}

TEST_F(Explain, ATextThatEndsEarly) {
  store(KeyText(key).set("program", "a\nb\nc\n\nd"));
  EXPECT_EQ(explain(key).differences.at(0).text, "line 5: ends before it, the entry has 'd'");
  EXPECT_EQ(explain(KeyText(key).set("program", "a\nb\nc\n\nd\ne")).differences.at(0).text,
            "line 6: 'e', the entry ends before it");
}

TEST_F(Explain, TheSameFieldsInAnotherOrder) {
  store(KeyText().set("isa", "8.6").set("program", "a\nb\nc\n").set("target", "sm_90a").set("knobs", "x=1"));
  EXPECT_EQ(explain(key).differences.at(0).text, "the same fields in another order");
}

TEST_F(Explain, LongLinesAreCutAroundTheDifferenceAndMadePrintable) {
  const std::string line(500, 'l');
  store(KeyText(key).set("program", line + "\x1b[2J" + line));
  const std::string text = explain(KeyText(key).set("program", line + "!" + line)).differences.at(0).text;
  EXPECT_LT(text.size(), 250u);
  EXPECT_NE(text.find("...'llll"), std::string::npos) << text;
  EXPECT_NE(text.find("l!l"), std::string::npos) << text;
  EXPECT_NE(text.find("l\\x1b[2Jl"), std::string::npos) << text;
}

/// A difference after the end of the shorter line must be in view.
TEST_F(Explain, ADifferenceAtTheEndOfALongLineIsShown) {
  const std::string line(500, 'l');
  store(KeyText(key).set("program", line + "END"));
  const std::string text = explain(KeyText(key).set("program", line)).differences.at(0).text;
  EXPECT_NE(text.find("END"), std::string::npos) << text;
}

TEST_F(Explain, ADamagedEntry) {
  store(key);
  store(KeyText(key).set("isa", "7.0"));
  std::string bytes = readBytes(entryPathOf(key, folder.path()));
  bytes.back() ^= 1;
  writeBytes(entryPathOf(key, folder.path()), bytes);
  const Explanation e = explain(key);
  EXPECT_FALSE(e.present);
  EXPECT_EQ(e.damage, "its checksum does not hold");
  EXPECT_NE(e.toString().find("the entry of this key is not used: its checksum does not hold"), std::string::npos);
  EXPECT_EQ(e.equalFields, 3u); // of the other one
}

TEST_F(Explain, NothingInCommon) {
  store(KeyText().set("program", "other"));
  const Explanation e = explain(key);
  EXPECT_EQ(e.nearest, "");
  EXPECT_EQ(e.toString(), "no entry of this key; the cache holds 1 entry\n");
}
