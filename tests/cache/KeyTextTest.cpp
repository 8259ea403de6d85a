#include "runtime/cache/KeyText.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using kiln::cache::KeyText;

TEST(KeyText, SerialisesAsDocumented) {
  KeyText key;
  key.set("code target", "sm_90a").set("program", "a\nb\n").set("", "");
  EXPECT_EQ(key.serialise(), "11 6\ncode target\nsm_90a\n7 4\nprogram\na\nb\n\n0 0\n\n\n");
}

TEST(KeyText, SetReplacesInPlace) {
  KeyText key;
  key.set("a", "1").set("b", "2").set("a", "3");
  ASSERT_EQ(key.fields().size(), 2u);
  EXPECT_EQ(key.fields()[0], (KeyText::Field{"a", "3"}));
  EXPECT_EQ(*key.find("b"), "2");
  EXPECT_EQ(key.find("c"), nullptr);
}

TEST(KeyText, OrderCounts) {
  EXPECT_NE(KeyText().set("a", "1").set("b", "2").serialise(), KeyText().set("b", "2").set("a", "1").serialise());
}

/// Texts of digits, spaces and newlines look like the framing itself.
static KeyText randomKey(std::mt19937 &random) {
  const std::string letters("01 2\na\0", 7);
  const auto text = [&](int limit) {
    std::string out(random() % limit, ' ');
    for (char &c : out)
      c = letters[random() % letters.size()];
    return out;
  };
  KeyText key;
  for (unsigned n = random() % 4; n; --n) {
    const std::string name = text(4);
    key.set(name, text(8));
  }
  return key;
}

TEST(KeyText, ParseGivesBackWhatWasSerialised) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const KeyText key = randomKey(random);
    const auto back = KeyText::parse(key.serialise());
    ASSERT_TRUE(back.has_value()) << key.serialise();
    EXPECT_EQ(*back, key);
  }
}

TEST(KeyText, EveryTextThatParsesIsCanonical) {
  std::mt19937 random(2);
  const std::string letters("001 1\n\n2a");
  int parsed = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string text = randomKey(random).serialise();
    if (text.empty())
      continue;
    for (unsigned n = 1 + random() % 2; n; --n)
      switch (random() % 3) {
      case 0:
        text[random() % text.size()] = letters[random() % letters.size()];
        break;
      case 1:
        text.insert(random() % text.size(), 1, letters[random() % letters.size()]);
        break;
      default:
        text.resize(text.size() - 1 - random() % text.size() / 4);
        text += '\n';
      }
    if (const auto key = KeyText::parse(text)) {
      ++parsed;
      ASSERT_EQ(key->serialise(), text);
    }
  }
  EXPECT_GT(parsed, 1000); // the mutations do reach accepted texts
}

TEST(KeyText, MalformedTextsAreRefused) {
  for (const char *text : {"x", "\n", "1", "1 1", "1 1\n", "1 1\na\nb", "1 1\na\nbc", "01 1\na\nb\n", "1  1\na\nb\n",
                           "-1 1\na\nb\n", "+1 1\na\nb\n", "1 1\na\nb\n1 1\na\nb\n", "1 99999999999999999999\na\nb\n",
                           "1 18446744073709551615\na\nb\n", "18446744073709551615 1\na\nb\n", "1 1\na\nb\n\n"})
    EXPECT_FALSE(KeyText::parse(text).has_value()) << text;
  EXPECT_TRUE(KeyText::parse("1 1\na\nb\n").has_value());
}
