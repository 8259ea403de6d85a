#include "runtime/tune/Search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace kiln::tune {
namespace {

std::vector<std::string> numbers(int n) {
  std::vector<std::string> out;
  for (int i = 0; i < n; ++i)
    out.push_back(std::to_string(i));
  return out;
}

/// 16 x 16 configurations; the time is a bowl whose lowest point is at (11, 4), and the model thinks that it is at
/// (8, 8).
struct Bowl {
  Space space = *Space::create({{"x", numbers(16)}, {"y", numbers(16)}});
  std::vector<Candidate> kept;
  Bowl() {
    for (std::size_t i = 0; i < space.size(); ++i)
      kept.push_back({i, at(i, 8, 8)});
  }
  double at(std::size_t number, double x, double y) const {
    const Configuration c = space.at(number);
    return 1 + std::pow(std::stod(c[0]) - x, 2) + std::pow(std::stod(c[1]) - y, 2);
  }
  double time(std::size_t candidate) const { return at(kept[candidate].number, 11, 4); }

  std::vector<std::size_t> run(const std::string &name, std::uint64_t seed, std::size_t most) const {
    const auto searcher = makeSearcher(name, space, kept, seed);
    EXPECT_TRUE(searcher.ok());
    std::vector<std::size_t> out;
    while (out.size() < most) {
      const std::optional<std::size_t> next = (*searcher)->next();
      if (!next)
        break;
      out.push_back(*next);
      (*searcher)->tell(*next, time(*next));
    }
    return out;
  }
  /// How many are measured until the fastest is found.
  std::size_t cost(const std::string &name, std::uint64_t seed) const {
    const std::vector<std::size_t> order = run(name, seed, kept.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      if (time(order[i]) == 1)
        return i + 1;
    return order.size() + 1;
  }
};

TEST(SearchTest, EachGivesEveryCandidateOnce) {
  const Bowl bowl;
  for (const char *name : {"exhaustive", "random", "model"}) {
    const std::vector<std::size_t> order = bowl.run(name, 1, 1000);
    EXPECT_EQ(order.size(), 256u) << name;
    EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), 256u) << name;
  }
}

TEST(SearchTest, TheSeedSaysTheOrder) {
  const Bowl bowl;
  EXPECT_EQ(bowl.run("random", 7, 50), bowl.run("random", 7, 50));
  EXPECT_NE(bowl.run("random", 7, 50), bowl.run("random", 8, 50));
  EXPECT_EQ(bowl.run("model", 7, 50), bowl.run("model", 7, 50));
  EXPECT_NE(bowl.run("model", 7, 8), bowl.run("model", 8, 8)); // between equal estimates
  EXPECT_EQ(bowl.run("exhaustive", 7, 50), bowl.run("exhaustive", 8, 50));
}

TEST(SearchTest, TheModelGuidedOneStartsWithTheDefault) {
  Bowl bowl;
  bowl.kept[3].isDefault = true;
  const std::vector<std::size_t> order = bowl.run("model", 1, 2);
  EXPECT_EQ(order[0], 3u);
  EXPECT_EQ(bowl.space.text(bowl.space.at(bowl.kept[order[1]].number)), "x=8, y=8");
}

TEST(SearchTest, TheModelGuidedOneStartsWithTheModelsBest) {
  const Bowl bowl;
  EXPECT_EQ(bowl.space.text(bowl.space.at(bowl.kept[bowl.run("model", 1, 1)[0]].number)), "x=8, y=8");
}

TEST(SearchTest, NeighboursLeadToTheFastestSoonerThanChance) {
  const Bowl bowl;
  double byModel = 0, byChance = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    byModel += static_cast<double>(bowl.cost("model", seed));
    byChance += static_cast<double>(bowl.cost("random", seed));
  }
  EXPECT_LT(byModel / 20, 45);
  EXPECT_GT(byChance / 20, 90); // 128.5 is the mean
}

TEST(SearchTest, FailuresAreNoPlacesToLookNear) {
  const Bowl bowl;
  const auto searcher = makeSearcher("model", bowl.space, bowl.kept, 1);
  ASSERT_TRUE(searcher.ok());
  std::size_t count = 0;
  while (const std::optional<std::size_t> next = (*searcher)->next()) {
    (*searcher)->tell(*next, std::nullopt);
    ++count;
  }
  EXPECT_EQ(count, 256u);
}

TEST(SearchTest, UnknownNamesAreRefused) {
  const Bowl bowl;
  const std::string text = makeSearcher("annealing", bowl.space, bowl.kept, 1).status().toString();
  EXPECT_NE(text.find("annealing"), std::string::npos);
  EXPECT_NE(text.find("exhaustive, random, model"), std::string::npos);
}

} // namespace
} // namespace kiln::tune
