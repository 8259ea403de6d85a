// The list of a call's options: what commands see of it, what a call's values are in the arguments, what is refused;
// for a struct with an option of each type, and for every family.
#include "kernels/support/CallOptions.h"
#include "kernels/support/Family.h"

#include <gtest/gtest.h>

#include <set>

using namespace kiln;
using namespace kiln::kernels;

namespace kiln::kernels {
enum class Shade : std::uint8_t { Light, Dark };
template <> inline constexpr std::array<std::string_view, 2> words<Shade> = {"light", "dark"};
} // namespace kiln::kernels

namespace {

constexpr std::string_view places[] = {"here", "there"};

struct Everything {
  bool flag = false;
  std::int64_t whole = 7;
  int narrow = -1;
  float number = 0.5f;
  std::optional<std::int64_t> offset = {};
  std::optional<float> scale = {};
  Shade shade = Shade::Dark;
  std::string_view place = {};
  int left = 1, right = 2;

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) {
    v(CallOption{"flag", "a flag"}, a.flag);
    v(CallOption{"whole", "a whole number"}, a.whole);
    v(CallOption{"narrow", "of 32 bits"}, a.narrow);
    v(CallOption{"number", "a float"}, a.number);
    v(CallOption{"offset", "a whole number or none", 45}, a.offset);
    v(CallOption{"scale", "a float or none"}, a.scale);
    v(CallOption{"shade", "an enumeration", "light"}, a.shade);
    v(CallOption{"place", "a word", {}, nullptr, places}, a.place);
    v(CallOption{"left", "L,R: a pair", {}, "sides"}, a.left);
    v(CallOption{"right", "", {}, "sides"}, a.right);
  }
};

struct Seeded {
  std::uint64_t seed = 3;
  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) {
    v(CallOption{"seed", "of 64 bits, without a sign"}, a.seed);
  }
};

using Kind = OptionInfo::Kind;

const OptionInfo &named(const std::vector<OptionInfo> &options, std::string_view name) {
  for (const OptionInfo &o : options)
    if (o.name == name)
      return o;
  ADD_FAILURE() << name;
  return options.front();
}

/// The arguments that a call with one option, written as on a command line, has.
Result<Everything> written(std::string_view name, std::string_view text) {
  const std::optional<OptionValue> value = named(optionsOf<Everything>(), name).parse(text);
  if (!value)
    return Status::invalid("no value");
  return readOptions<Everything>("op", {{std::string(name), *value}});
}

TEST(CallOptions, CommandsSeeTheListWithTheInitialisersForDefaults) {
  const std::vector<OptionInfo> all = optionsOf<Everything>();
  ASSERT_EQ(all.size(), 10u);
  const auto is = [&](const char *name, Kind kind, const std::optional<OptionValue> &standard) {
    const OptionInfo &o = named(all, name);
    EXPECT_EQ(o.kind, kind) << name;
    EXPECT_EQ(o.standard, standard) << name;
  };
  is("flag", Kind::Flag, false);
  is("whole", Kind::Whole, 7);
  is("narrow", Kind::Whole, -1);
  is("number", Kind::Float, 0.5);
  is("offset", Kind::Whole, {});
  is("scale", Kind::Float, {});
  is("shade", Kind::Choice, "dark");
  is("place", Kind::Choice, {});
  EXPECT_EQ(named(all, "shade").choices, (std::vector<std::string>{"light", "dark"}));
  EXPECT_EQ(named(all, "place").choices, (std::vector<std::string>{"here", "there"}));
  EXPECT_EQ(named(all, "left").word(), "sides");
  EXPECT_EQ(named(all, "whole").word(), "whole");
  EXPECT_EQ(optionsToTry<Everything>(), (std::vector<OptionValues>{{{"offset", 45}}, {{"shade", "light"}}}));
}

TEST(CallOptions, WhatIsWrittenIsInTheArguments) {
  EXPECT_TRUE(written("flag", "true")->flag);
  EXPECT_EQ(written("whole", "-12")->whole, -12);
  EXPECT_EQ(written("narrow", "2147483647")->narrow, 2147483647);
  EXPECT_EQ(written("number", "1e-3")->number, 1e-3f);
  EXPECT_EQ(written("number", "3")->number, 3.0f);
  EXPECT_EQ(written("offset", "0")->offset, 0);
  EXPECT_EQ(written("scale", "2")->scale, 2.0f);
  EXPECT_EQ(written("shade", "light")->shade, Shade::Light);
  EXPECT_EQ(written("place", "there")->place, "there");
  const auto none = readOptions<Everything>("op", {});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->whole, 7);
  EXPECT_EQ(none->shade, Shade::Dark);
  EXPECT_FALSE(none->offset || none->scale);
  EXPECT_TRUE(none->place.empty());
}

TEST(CallOptions, ValuesAreReadTogether) {
  const auto all = readOptions<Everything>(
      "op", {{"flag", true}, {"left", 8}, {"narrow", 5}, {"nothing of it", 3}, {"place", "here"}, {"right", 9}});
  ASSERT_TRUE(all.ok()) << all.status().toString();
  EXPECT_TRUE(all->flag);
  EXPECT_EQ(all->narrow, 5);
  EXPECT_EQ(all->place, "here");
  EXPECT_EQ(all->left, 8);
  EXPECT_EQ(all->right, 9);
  EXPECT_EQ(all->whole, 7);
}

struct Counted {
  static inline int walks = 0;
  std::int64_t a = 1, b = 2;
  template <typename Self, typename Visitor> static void options(Self &c, Visitor &&v) {
    ++walks;
    v(CallOption{"a", ""}, c.a);
    v(CallOption{"b", ""}, c.b);
  }
};

/// What a call costs goes by what it says, not by what it could say.
TEST(CallOptions, TheListIsWalkedForWhatIsGiven) {
  ASSERT_TRUE(readOptions<Counted>("op", {}).ok()); // where each stands is asked once
  Counted::walks = 0;
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(readOptions<Counted>("op", {{"another's", 1}, {"other", true}}).ok());
  EXPECT_EQ(Counted::walks, 0);
  const auto read = readOptions<Counted>("op", {{"another's", 1}, {"b", 5}});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->b, 5);
  EXPECT_EQ(Counted::walks, 1);
}

TEST(CallOptions, NamesAreFoundWhereTheyStand) {
  const std::string_view names[] = {"window_left", "q", "window_right", "k", "scale", "align", "", "alibi"};
  NamePlaces places;
  EXPECT_EQ(places.of("q"), NamePlaces::none);
  for (const std::string_view name : names)
    places.add(name);
  for (std::size_t i = 0; i < std::size(names); ++i)
    EXPECT_EQ(places.of(names[i]), i) << names[i];
  for (const char *other : {"w", "window_lefd", "window_left_", "alibj", "Q"})
    EXPECT_EQ(places.of(other), NamePlaces::none) << other;
}

TEST(CallOptions, WholeNumbersAreExactIn64Bits) {
  for (const std::int64_t whole : {(std::int64_t(1) << 53) + 1, std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_EQ(written("whole", std::to_string(whole))->whole, whole);
    EXPECT_EQ(textOf(whole), std::to_string(whole));
  }
}

/// Values of calls have 63 bits, and no sign where the field has none.
TEST(CallOptions, UnsignedWholeNumbers) {
  const auto seed = [](std::int64_t value) { return readOptions<Seeded>("f", {{"seed", value}}); };
  EXPECT_EQ(readOptions<Seeded>("f", {})->seed, 3u);
  EXPECT_EQ(seed(std::numeric_limits<std::int64_t>::max())->seed, 0x7FFFFFFFFFFFFFFFu);
  EXPECT_NE(seed(-1).status().message().find("seed = -1"), std::string::npos) << seed(-1).status().message();
}

TEST(CallOptions, TextsOfAnotherTypeAreNoValues) {
  for (const auto &[name, text] : {std::pair("flag", "1"),
                                   {"flag", ""},
                                   {"whole", "1.5"},
                                   {"whole", "3x"},
                                   {"whole", ""},
                                   {"whole", "9223372036854775808"},
                                   {"number", "x"},
                                   {"number", ""},
                                   {"shade", "1"},
                                   {"shade", "Light"},
                                   {"place", ""}})
    EXPECT_FALSE(named(optionsOf<Everything>(), name).parse(text)) << name << " " << text;
}

TEST(CallOptions, ValuesOfAnotherTypeAreRefusedByName) {
  const auto refused = [](const char *name, const OptionValue &value, const std::string &message,
                          const std::string &remedy) {
    const auto read = readOptions<Everything>("op", {{name, value}});
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_EQ(read.status().code(), StatusCode::InvalidArgument);
    EXPECT_EQ(read.status().message(), message);
    EXPECT_NE(read.status().remedy().find(remedy), std::string::npos) << read.status().remedy();
  };
  refused("flag", 1, "op: flag = 1", "true or false");
  refused("whole", 2.5, "op: whole = 2.5", "give a whole number");
  refused("offset", true, "op: offset = true", "give a whole number");
  refused("narrow", std::int64_t(1) << 31, "op: narrow = 2147483648", "from -2147483648 to 2147483647");
  refused("number", 1e39, "op: number = 1e+39", "a number that fp32 holds");
  refused("number", 1e-50, "op: number = 1e-50", "a number that fp32 holds");
  refused("scale", "light", "op: scale = light", "give a number");
  refused("shade", "grey", "op: shade = grey", "light, dark");
  refused("shade", 1, "op: shade = 1", "light, dark");
  refused("place", "nowhere", "op: place = nowhere", "here, there");
}

TEST(CallOptions, OfEveryFamily) {
  for (const Family &family : families()) {
    SCOPED_TRACE(family.name());
    const Callable &callable = *family.callable;
    std::set<std::string> names, words;
    for (const TensorParameter &p : callable.tensors())
      words.insert(p.name);
    std::string before;
    for (const OptionInfo &o : callable.options()) {
      EXPECT_TRUE(names.insert(o.name).second) << o.name;
      EXPECT_TRUE(words.insert(o.word()).second || o.word() == before) << o.word() << " is there twice";
      EXPECT_FALSE(o.text.empty() && o.word() != before) << o.name;
      EXPECT_EQ(o.kind == Kind::Choice, !o.choices.empty()) << o.name;
      for (const auto &value : {o.standard, o.tried})
        if (value) {
          EXPECT_TRUE(o.takes(*value)) << o.name;
          EXPECT_TRUE(o.parse(textOf(*value))) << o.name;
        }
      before = o.word();
    }
    for (const DType type : callable.dtypes())
      for (const SampleUse use : {SampleUse::Demo, SampleUse::Bench, SampleUse::Check})
        for (const Sample &sample : family.samples->calls(type, use, false)) {
          const Status s = checkOptions(callable, sample.options);
          EXPECT_TRUE(s.ok()) << s.toString();
        }
  }
}

TEST(CallOptions, ACallWithAnOptionThatIsNotThereIsRefused) {
  const auto refused = [](const char *family, const OptionValues &options, const char *message) {
    const auto found = findFamily(family);
    ASSERT_TRUE(found.ok());
    const Status s = checkOptions(*(*found)->callable, options);
    EXPECT_NE(s.message().find(message), std::string::npos) << s.toString();
    EXPECT_FALSE(s.remedy().empty());
  };
  refused("softmax", {{"scale", 1.0}}, "kernel 'softmax' has no option 'scale'");
  refused("attention", {{"causal", 1}}, "attention: causal = 1: a value of another type");
  refused("attention", {{"lse", 1}}, "attention: lse = 1: a value of another type");
  refused("attention", {{"o", true}}, "no option 'o'");
  refused("attention", {{"layout", "bshd"}}, "attention: layout = bshd");
  refused("iplr", {{"safe_gate", true}}, "kernel 'iplr' has no option 'safe_gate'");
}

} // namespace
