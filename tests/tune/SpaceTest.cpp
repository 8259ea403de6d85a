#include "runtime/tune/Space.h"

#include <gtest/gtest.h>

#include <set>

namespace kiln::tune {
namespace {

TEST(SpaceTest, EveryCombinationOnce) {
  const auto space = Space::create({{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}});
  ASSERT_TRUE(space.ok());
  EXPECT_EQ(space->size(), 6u);
  std::set<Configuration> seen;
  for (std::size_t i = 0; i < space->size(); ++i) {
    seen.insert(space->at(i));
    EXPECT_EQ(space->numberOf(space->at(i)), i);
  }
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_EQ(space->text(space->at(5)), "a=2, b=z");
  EXPECT_FALSE(space->numberOf({"3", "x"}));
  EXPECT_FALSE(space->numberOf({"1"}));
}

TEST(SpaceTest, NeighboursDifferInOnePlace) {
  const auto space = Space::create({{"a", {"1", "2", "3"}}, {"b", {"x", "y"}}});
  ASSERT_TRUE(space.ok());
  const auto textsOf = [&](const Configuration &c) {
    std::set<std::string> out;
    for (const std::size_t n : space->neighbours(*space->numberOf(c)))
      out.insert(space->text(space->at(n)));
    return out;
  };
  EXPECT_EQ(textsOf({"2", "x"}), (std::set<std::string>{"a=1, b=x", "a=3, b=x", "a=2, b=y"}));
  EXPECT_EQ(textsOf({"3", "y"}), (std::set<std::string>{"a=2, b=y", "a=3, b=x"}));
}

TEST(SpaceTest, OneConfigurationMayBeAdded) {
  Space space = *Space::create({{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}});
  const std::size_t number = space.add({"0", "x"});
  EXPECT_EQ(number, 6u);
  EXPECT_EQ(space.size(), 7u);
  EXPECT_EQ(space.at(number), (Configuration{"0", "x"}));
  EXPECT_EQ(space.numberOf({"0", "x"}), number);
  EXPECT_EQ(space.numberOf({"0", "y"}), std::nullopt);
  EXPECT_EQ(space.at(5), (Configuration{"2", "z"}));
  EXPECT_TRUE(space.neighbours(number).empty());
  for (std::size_t n = 0; n < number; ++n)
    for (const std::size_t other : space.neighbours(n))
      EXPECT_LT(other, number);
}

TEST(SpaceTest, RefusesWhatIsNoSpace) {
  const auto message = [](std::vector<Parameter> p) { return Space::create(std::move(p)).status().toString(); };
  EXPECT_NE(message({}).find("no parameters"), std::string::npos);
  EXPECT_NE(message({{"warps", {}}}).find("'warps' has no values"), std::string::npos);
  EXPECT_NE(message({{"warps", {"4", "8", "4"}}}).find("the value 4 twice"), std::string::npos);
  EXPECT_NE(message({{"warps", {"4"}}, {"warps", {"8"}}}).find("'warps' is there twice"), std::string::npos);
  std::vector<std::string> many;
  for (int i = 0; i < 1000; ++i)
    many.push_back(std::to_string(i));
  EXPECT_NE(message({{"a", many}, {"b", many}}).find("1000000 configurations"), std::string::npos);
}

} // namespace
} // namespace kiln::tune
